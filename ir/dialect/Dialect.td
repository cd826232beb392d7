// SPDX-License-Identifier: Apache-2.0
// The dg dialect itself, the type of values whose shape is still to be deduced, and the attributes every op can carry.
#ifndef DG_IR_DIALECT_TD
#define DG_IR_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def DG_Dialect : Dialect {
  let name = "dg";
  let cppNamespace = "::dg::ir";
  let summary = "Deep-learning graphs: models, their gradients, and their partition over a mesh of devices";
  let description = [{
    A model is a `dg.graph` of ops on tensors. What a person writes has no types but those of inputs and parameters: every
    other value is `!dg.any` until `--dg-deduce-types` has run. After `--dg-split-shards` and `--dg-split-stages` only
    local types and explicit collectives remain.
  }];
  let extraClassDeclaration = [{
    /// For an op that does not exist: an error with the nearest name.
    std::optional<ParseOpHook> getParseOperationHook(mlir::StringRef name) const override;

    // Each registers the ops of one family, and is in its source.
    void addGraphOps();
    void addLiteralOps();
    void addElementwiseOps();
    void addMathOps();
    void addLogicOps();
    void addActivationOps();
    void addReductionOps();
    void addOrderOps();
    void addEinsumOps();
    void addContractionOps();
    void addConvolutionOps();
    void addBlockedOps();
    void addShapeOps();
    void addMovementOps();
    void addArrangementOps();
    void addNormalizationOps();
    void addStatisticsOps();
    void addPoolingOps();
    void addIndexingOps();
    void addGatherOps();
    void addResampleOps();
    void addAttentionOps();
    void addControlOps();
    void addRecurrentOps();
    void addRandomOps();
    void addLossOps();
    void addOptimizerOps();
    void addCommunicationOps();
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1; // mesh, cuts and the like, in Decisions.cpp
}

def DG_Any : TypeDef<DG_Dialect, "Any"> {
  let mnemonic = "any";
  let summary = "A tensor whose element type and shape are not deduced yet";
}

/// Every value of the dialect: a ranked tensor, or one that will be.
def DG_Tensor : AnyTypeOf<[AnyRankedTensor, DG_Any], "tensor, or a value whose type is still to be deduced">;

def DG_Phase : I32EnumAttr<"Phase", "part of a step",
                           [I32EnumAttrCase<"begin", 0>, I32EnumAttrCase<"forward", 1>, I32EnumAttrCase<"backward", 2>,
                            I32EnumAttrCase<"update", 3>]> {
  let cppNamespace = "::dg::ir";
}

/// In the order of plan::Axis, outermost first.
def DG_Axis : I32EnumAttr<"Axis", "axis of the mesh",
                          [I32EnumAttrCase<"pipe", 0>, I32EnumAttrCase<"data", 1>, I32EnumAttrCase<"tensor", 2>]> {
  let cppNamespace = "::dg::ir";
  let genSpecializedAttr = 0;
}

def DG_MeshAttr : AttrDef<DG_Dialect, "Mesh"> {
  let mnemonic = "mesh";
  let summary = "Over which ranks a module is to be split";
  let description = [{
    The size of each axis; one that the text leaves out is 1. The attribute `dg.mesh` of a module; without it there is one rank.
    Example: `#dg.mesh<data = 2, tensor = 1, pipe = 3>`.
  }];
  let parameters = (ins "int64_t":$data, "int64_t":$tensor, "int64_t":$pipe);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t sizeOf(::dg::ir::Axis axis) const;
  }];
}

def DG_CutOf : I32EnumAttr<"CutOf", "what a cut names a dimension of",
                           [I32EnumAttrCase<"whole", 0>, I32EnumAttrCase<"operand", 1>, I32EnumAttrCase<"result", 2>]> {
  let cppNamespace = "::dg::ir";
  let genSpecializedAttr = 0;
}

def DG_CutAttr : AttrDef<DG_Dialect, "Cut"> {
  let mnemonic = "cut";
  let summary = "How a forward op is cut over the tensor axis";
  let description = [{
    Along this dimension of a result or operand, and with it every operand and result that shares it; `whole`: every rank does all of the
    op. The attribute `dg.cut` of an op, from `--dg-plan-graph` to `--dg-assign-shardings`.
    Examples: `#dg.cut<result 0, dim 1>`, `#dg.cut<operand 1, dim 0>`, `#dg.cut<whole>`.
  }];
  let parameters = (ins "::dg::ir::CutOf":$of, "int64_t":$index, "int64_t":$dim);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def DG_PrecisionAttr : AttrDef<DG_Dialect, "Precision"> {
  let mnemonic = "precision";
  let summary = "In which type an op is computed, and why";
  let description = [{
    `label` and `kind` name the op. The attribute `dg.precision` of a module has one for each op with floats; the decisions themselves are
    the casts. Example: `#dg.precision<"h", "linear", bf16, "products sum in f32 whatever their factors have">`.
  }];
  let parameters = (ins "mlir::StringAttr":$label, "mlir::StringAttr":$kind, "mlir::Type":$type, "mlir::StringAttr":$why);
  let assemblyFormat = "`<` $label `,` $kind `,` $type `,` $why `>`";
  let genVerifyDecl = 1;
}

def DG_ShardingAttr : AttrDef<DG_Dialect, "Sharding"> {
  let mnemonic = "sharding";
  let summary = "How a tensor lies over the mesh";
  let description = [{
    `dims` has one entry for each dimension: the mesh axis that cuts it, data or tensor, or "" where it is whole. `partial` are the
    axes over which the ranks hold summands of the tensor instead of the tensor.
    Example: `#dg.sharding<["data", ""], ["tensor"]>`.
  }];
  let parameters = (ins OptionalArrayRefParameter<"mlir::StringAttr">:$dims,
      OptionalArrayRefParameter<"mlir::StringAttr">:$partial);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def DG_PlaceAttr : AttrDef<DG_Dialect, "Place"> {
  let mnemonic = "place";
  let summary = "What the compiler has decided about an op";
  let description = [{
    `label`: the author's name of the op, for messages and pictures. `origin`: the number of the forward op that this op
    belongs to (its own, or the one it is a gradient of; -1 = none), by which backward ops follow their forward op to its
    pipeline stage. `stage` is -1 until the partition phase.
  }];
  let parameters = (ins DefaultValuedParameter<"mlir::StringAttr", "mlir::StringAttr::get($_ctxt, \"\")">:$label,
      DefaultValuedParameter<"int64_t", "-1">:$origin,
      DefaultValuedParameter<"::dg::ir::Phase", "::dg::ir::Phase::forward">:$phase,
      DefaultValuedParameter<"int64_t", "-1">:$stage, OptionalArrayRefParameter<"::dg::ir::ShardingAttr">:$shardings);
  let assemblyFormat = "`<` struct($label, $origin, $phase, $stage, $shardings) `>`";
  let genVerifyDecl = 1;
}

def DG_InitKind : I32EnumAttr<"InitKind", "how a parameter starts",
                              [I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"uniform", 1>,
                               I32EnumAttrCase<"normal", 2>, I32EnumAttrCase<"file", 3>]> {
  let cppNamespace = "::dg::ir";
}

def DG_InitAttr : AttrDef<DG_Dialect, "Init"> {
  let mnemonic = "init";
  let summary = "How a parameter starts: a recipe, not bytes";
  let description = [{
    `constant`: every element is `value`. `uniform`: in [-value, value). `normal`: deviation `value`. `file`: the tensor of the
    parameter's name in the package. Random elements depend on the run's seed, the parameter's name and the index only.
  }];
  let parameters = (ins "::dg::ir::InitKind":$kind, "mlir::FloatAttr":$value);
  let assemblyFormat = "`<` $kind `,` $value `>`";
}

#endif
