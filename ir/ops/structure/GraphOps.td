// SPDX-License-Identifier: Apache-2.0
// What a model is made of besides arithmetic: graphs, parameters, constants.
#ifndef DG_IR_GRAPHOPS_TD
#define DG_IR_GRAPHOPS_TD

include "ir/dialect/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"

def DG_GraphOp : Op<DG_Dialect, "graph", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "A model, or a part of one";
  let description = [{
    `@loss` returns the loss first, `@forward` results of inference. A `?` in an input type is a symbolic dimension named
    "batch"; `dgc --bind` gives it its size. The names of the arguments are the names by which data is fed.

    Example:
    ```mlir
    dg.graph @loss(%x: tensor<?x10xf32>, %y: tensor<?x1xf32>) {
      %w = dg.parameter "fc.weight" tensor<1x10xf32> uniform 0.3
      %p = dg.linear %x, %w
      %loss = dg.mse %p, %y
      dg.return %loss
    }
    ```
    After the split phase a graph is a chunk: the ops of one `program`, `stage` and `phase`. Where a rank holds several parts of the model,
    `part` says which one it is of (else the stage); a chunk with `weight_gradients` computes what only an update waits for.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       StrArrayAttr:$input_names,
                       TypeArrayAttr:$input_types,
                       OptionalAttr<StrAttr>:$program,
                       OptionalAttr<I64Attr>:$stage,
                       OptionalAttr<DG_Phase>:$phase,
                       OptionalAttr<I64Attr>:$part,
                       UnitAttr:$weight_gradients);
  let builders = [OpBuilder<(ins "mlir::StringAttr":$name, "mlir::ArrayAttr":$input_names, "mlir::ArrayAttr":$input_types,
      "mlir::StringAttr":$program, "mlir::IntegerAttr":$stage, "::dg::ir::PhaseAttr":$phase), [{
    build($_builder, $_state, name, input_names, input_types, program, stage, phase, mlir::IntegerAttr(), mlir::UnitAttr());
  }]>];
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The dg.return that closes the graph.
    ReturnOp getReturn();
    mlir::StringRef getInputName(unsigned index);
    /// Adds an input at the end; its block argument has the type itself.
    mlir::BlockArgument addInput(mlir::StringRef name, mlir::Type type);
    /// Removes an input that nothing reads.
    void eraseInput(unsigned index);
  }];
}

def DG_ReturnOp : DG_OpBase<"return", (ins Variadic<DG_Tensor>:$values, OptionalAttr<StrArrayAttr>:$names), (outs)> {
  let summary = "The results of a graph";
  let description = [{
    `names` are the names under which the runtime reads the results; where left out, the first result of `@loss` is "loss" and
    others are called after the op that makes them.
    Example: `dg.return %loss`.
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The name of a result: as given, else the label of the op that makes it, else "result" and its number.
    std::string getResultName(unsigned index);
  }];
}

def DG_ParameterOp : Op<DG_Dialect, "parameter", [Pure, DeclareOpInterfaceMethods<DG_CostOp, ["getCost"]>]> {
  let summary = "The present value of a parameter or of optimizer state";
  let description = [{
    Example: `%w = dg.parameter "fc1.weight" tensor<20x10xf32> uniform 0.316`. `state` marks what the optimizer keeps.
    A parameter with `frozen` is not trained.
  }];
  let arguments = (ins StrAttr:$param, TypeAttr:$type, DG_InitAttr:$init, UnitAttr:$state, UnitAttr:$frozen, OptionalAttr<DG_PlaceAttr>:$place);
  let results = (outs DG_Tensor:$result);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def DG_UpdateOp : DG_OpBase<"update", (ins DG_Tensor:$value, StrAttr:$param), (outs)> {
  let summary = "The next value of a parameter or of optimizer state";
  let description = [{Example: `dg.update %new {param = "fc1.weight"}`. Each trained parameter has exactly one.}];
  let hasVerifier = 1;
}

def DG_ConstantOp : DG_OpBase<"constant", (ins F64Attr:$value, TypeAttr:$type), (outs DG_Tensor:$result),
    [Pure, TypeFromAttribute, Computes,
     Gradient, ShardedWithShapes, Cost]> {
  let summary = "A tensor with the same value everywhere";
  let hasVerifier = 1;
  let description = [{Example: `%one = dg.constant {value = 1.0, type = tensor<f32>}`.}];
}

def DG_FusedOp : Op<DG_Dialect, "fused", [Pure, SingleBlock, NoTerminator, IsolatedFromAbove, DefaultCost,
    Evaluates]> {
  let summary = "Elementwise ops that one kernel computes";
  let description = [{
    Made by `--dg-fuse-elementwise` after the split phase. The region holds elementwise ops on the same shapes as outside; the
    operands of its dg.return are the results. One loop over the elements of the largest result computes all of it.
  }];
  let arguments = (ins Variadic<DG_Tensor>:$inputs, OptionalAttr<DG_PlaceAttr>:$place);
  let results = (outs Variadic<DG_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$inputs attr-dict `:` functional-type($inputs, $outputs) custom<Isolated>($body)";
}

#endif
