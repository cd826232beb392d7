// SPDX-License-Identifier: Apache-2.0
// The op contract as interfaces: what an op must bring to be complete. Lowering is the fifth part and lives in codegen/.
#ifndef DG_IR_INTERFACES_TD
#define DG_IR_INTERFACES_TD

include "mlir/IR/OpBase.td"

def DG_GradientOp : OpInterface<"GradientOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{Reverse-mode differentiation of one op.}];
  let methods = [InterfaceMethod<[{
      Builds the gradients of the operands. `outputGrads` has one entry for each result, null where nothing flows back;
      the answer has one entry for each operand, null where the gradient is zero or the operand cannot have one
      (integers). Emits an error on the op where a gradient does not exist.
    }],
    "::dg::ir::Gradients", "buildGradients",
    (ins "mlir::OpBuilder &":$builder, "mlir::ValueRange":$outputGrads)>];
}

def DG_ShardingRuleOp : OpInterface<"ShardingRuleOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{How the dimensions of operands and results move together when the op is cut over a mesh.}];
  let methods = [
    InterfaceMethod<[{The rule, for the op's present types.}], "::dg::ir::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
      Rewrites attributes that hold shapes after the op's operand and result types became those of one shard.
    }], "void", "localize", (ins "mlir::TypeRange":$resultTypes), "",
    [{ (void)resultTypes; /* most ops hold no shapes */ }]>];
}

def DG_CostOp : OpInterface<"CostOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{What the op costs, for its present types.}];
  let methods = [InterfaceMethod<[{Floating-point operations; bytes are those of operands and results.}], "::dg::ir::OpCost", "getCost", (ins), "",
    [{ return ::dg::ir::elementwiseCost($_op.getOperation()); }]>];
}

def DG_ReferenceOp : OpInterface<"ReferenceOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{Slow, obviously correct evaluation: the oracle of the tests.}];
  let methods = [InterfaceMethod<[{
      Computes the results in double. `results` arrive with their shapes set and their elements zero.
    }], "mlir::LogicalResult", "evaluate",
    (ins "::dg::ir::HostOperands":$operands, "::dg::ir::HostResults":$results, "const ::dg::ir::RunScalars &":$scalars), "",
    [{ (void)scalars; $_op.compute(operands, results); return mlir::success(); }]>];
}

def DG_CompositeOp : OpInterface<"CompositeOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{An op that is defined by its parts: whatever it lacks is inherited from them.}];
  let methods = [InterfaceMethod<[{
      Builds the parts before the op and returns the values that replace its results; an empty vector where the op is
      primitive with its present operands.
    }], "llvm::SmallVector<mlir::Value>", "decompose", (ins "mlir::OpBuilder &":$builder)>,
    InterfaceMethod<[{The same for devices without a kernel for attention in blocks: scores of tokens × tokens are stored.}],
      "llvm::SmallVector<mlir::Value>", "decomposeWithScores", (ins "mlir::OpBuilder &":$builder), "", [{ return $_op.decompose(builder); }]>];
}

/// The gradient of a loss is taken per sample: a loss op says how much each sample lost.
def DG_LossOp : OpInterface<"LossOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{A loss: the mean over samples (dimension 0) of a loss per sample.}];
  let methods = [
    InterfaceMethod<[{Builds the loss of each sample.}], "::dg::ir::SampleMeasure", "buildPerSample", (ins "mlir::OpBuilder &":$builder)>,
    InterfaceMethod<[{Builds 1 for each sample (a mean over its positions) that is classified rightly, 0 else; null where the loss is not one of classes.}],
      "::dg::ir::SampleMeasure", "buildPerSampleAccuracy", (ins "mlir::OpBuilder &":$builder), "", [{ (void)builder; return {}; }]>,
    InterfaceMethod<[{Builds what metrics are computed from.}],
      "::dg::ir::SampleFacts", "buildFacts", (ins "mlir::OpBuilder &":$builder), "", [{ (void)builder; return {}; }]>];
}

/// Batch norm and dropout: what they compute while training is built by themselves.
def DG_TrainingOp : OpInterface<"TrainingOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{An op that computes otherwise while a model is trained. Evaluation and inference take it as it is.}];
  let methods = [InterfaceMethod<[{
      Builds what replaces the results while training, and adds to `scope.updates` what the step leaves in state. Emits an error on the op
      where it cannot be trained.
    }], "mlir::FailureOr<llvm::SmallVector<mlir::Value>>", "buildTraining", (ins "mlir::OpBuilder &":$builder, "::dg::ir::TrainingScope &":$scope)>];
}

/// An elementwise op is one scalar function; fusion and codegen work on these as a class.
def DG_ElementwiseOp : OpInterface<"ElementwiseOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{One result whose elements depend on the elements of the operands at the same (broadcast) index.}];
  let methods = [InterfaceMethod<[{The scalar function, in double: the definition.}], "double", "evaluateScalar", (ins "llvm::ArrayRef<double>":$operands)>];
}

/// The op's side of mixed precision; what a class means for types is up to the pass.
def DG_PrecisionOp : OpInterface<"PrecisionOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{What an op gains or loses with 16 bits. `let precision = …` in its definition says it (see OpBase.td).}];
  let methods = [StaticInterfaceMethod<"", "::dg::ir::PrecisionClass", "getPrecisionClass", (ins)>];
}

def DG_IndexOp : OpInterface<"IndexOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{An op that reads or writes at places given by integers.}];
  let methods = [InterfaceMethod<[{Which integers the operand may hold, for the op's present types.}],
    "::dg::ir::IndexBound", "getIndexBound", (ins "unsigned":$operand)>];
}

def DG_HeadsOp : OpInterface<"HeadsOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{An op of heads that are computed apart from each other: an axis that cuts it must divide them.}];
  let methods = [InterfaceMethod<[{How many, in the words of the author.}], "int64_t", "getNumHeads", (ins)>];
}

def DG_OverwritingOp : OpInterface<"OverwritingOp"> {
  let cppNamespace = "::dg::ir";
  let description = [{An op that can write its result where an operand was, if nobody reads that operand afterwards.}];
  let methods = [InterfaceMethod<"", "mlir::OpOperand &", "getOverwritable", (ins)>,
                 InterfaceMethod<"", "void", "setOverwrites", (ins "bool":$overwrites)>];
}

#endif
