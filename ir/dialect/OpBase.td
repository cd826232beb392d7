// SPDX-License-Identifier: Apache-2.0
// The base class of every op: one text form, one placement attribute, inferred result types.
#ifndef DG_IR_OPBASE_TD
#define DG_IR_OPBASE_TD

include "ir/dialect/Dialect.td"
include "ir/dialect/Interfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// A fact of an op that is a template of OpFacts.h.
class DG_Fact<string name, string value> : ParamNativeOpTrait<name, value> { let cppNamespace = "::dg::ir"; }

/// What 16 bits do to an op. The classes are described at PrecisionClass.
class DG_Precision<string kind> : TraitList<[DG_PrecisionOp, DG_Fact<"HasPrecision", "::dg::ir::PrecisionClass::" # kind>]>;
def Product : DG_Precision<"product">;
def Table : DG_Precision<"table">;
def Follows : DG_Precision<"follows">;
def Rows : DG_Precision<"rows">;
def Loss : DG_Precision<"loss">;
def Statistics : DG_Precision<"statistics">;
def Steep : DG_Precision<"steep">;
def AsWritten : DG_Precision<"asWritten">;
/// Of an op whose definition has forgotten it: does not compile.
def Undecided : DG_Fact<"HasPrecision", "::dg::ir::PrecisionClass::undecided">;
/// Of what is not computed from operands.
def NoPrecision : TraitList<[]>;

/// The result is the memory of the operand under another shape.
def View : NativeOpTrait<"View"> { let cppNamespace = "::dg::ir"; }
/// The elements of the operand in another order or shape and nothing else: what is a summand before is one afterwards.
def Rearranges : NativeOpTrait<"Rearranges"> { let cppNamespace = "::dg::ir"; }
/// Each element of a result depends on all of a dimension that the sharding rule does not follow, as those of a softmax do: where that
/// dimension counts samples, the op mixes them. A test measures it.
def MixesWholeDims : NativeOpTrait<"MixesWholeDims"> { let cppNamespace = "::dg::ir"; }

/// What an op with this trait (of OpFacts.h) declares and defines.
class DG_Code<string trait, string declaration, string definition> : NativeOpTrait<trait, [], declaration, definition> {
  let cppNamespace = "::dg::ir";
}
class DG_InfersTypes<string declaration, string definition>
    : TraitList<[DeclareOpInterfaceMethods<InferTypeOpInterface>, DG_Code<"InfersTypes", declaration, definition>]>;

/// The op's `inferType`, or its `inferTypes` where it has several results, makes the types of the results from the operands. It is not
/// called while the type of an operand is not deduced yet.
class FromOperands<int numResults> : DG_InfersTypes<
    "static mlir::FailureOr<" # !if(!eq(numResults, 1), "mlir::Type> inferType", "llvm::SmallVector<mlir::Type>> inferTypes") #
        "(Adaptor op, const ::dg::ir::Rejection &reject);", [{
    mlir::LogicalResult $cppClass::inferReturnTypes(
        mlir::MLIRContext *context, std::optional<mlir::Location> location, mlir::ValueRange operands, mlir::DictionaryAttr attributes,
        mlir::OpaqueProperties properties, mlir::RegionRange regions, llvm::SmallVectorImpl<mlir::Type> &inferred) {
      if (::dg::ir::deferInference(context, operands, }] # numResults # [{, inferred))
        return mlir::success();
      return ::dg::ir::store($cppClass::}] # !if(!eq(numResults, 1), "inferType", "inferTypes") # [{(
          Adaptor(operands, attributes, properties, regions), {location, getOperationName()}), inferred);
    }
  }]>;

/// The types do not follow from those of operands, and an author writes none: `!dg.any` fits them.
class DG_OwnTypes<string definition> : DG_InfersTypes<"static bool isCompatibleReturnTypes(mlir::TypeRange inferred, mlir::TypeRange actual);", [{
    bool $cppClass::isCompatibleReturnTypes(mlir::TypeRange inferred, mlir::TypeRange actual) {
      return inferred == actual || llvm::all_of(actual, ::dg::ir::isAny);
    }
  }] # definition>;
def OwnTypes : DG_OwnTypes<"">;
/// The result has the type that the attribute `type` says.
def TypeFromAttribute : DG_OwnTypes<[{
    mlir::LogicalResult $cppClass::inferReturnTypes(
        mlir::MLIRContext *, std::optional<mlir::Location>, mlir::ValueRange, mlir::DictionaryAttr, mlir::OpaqueProperties properties,
        mlir::RegionRange, llvm::SmallVectorImpl<mlir::Type> &inferred) {
      inferred.push_back(properties.as<Properties *>()->type.getValue());
      return mlir::success();
    }
  }]>;

/// The op has `compute`, which makes the results from the operands.
def Computes : TraitList<[DeclareOpInterfaceMethods<DG_ReferenceOp>,
    DG_Code<"Computed", "void compute(::dg::ir::HostOperands operands, ::dg::ir::HostResults results);", "">]>;
/// The op has `evaluate`: it can fail, or depends on the scalars of the run.
def Evaluates : DeclareOpInterfaceMethods<DG_ReferenceOp, ["evaluate"]>;
def NoEvaluation : TraitList<[]>;

/// Text form: `%r = dg.name %a, %b {attributes}` while types are to be deduced, and `… : (types) -> types` afterwards. The
/// name of the first result becomes the op's label.
class DG_OpBase<string mnemonic, dag inputs, dag outputs, list<Trait> given = []> : Op<DG_Dialect, mnemonic> {
  Trait precision = NoPrecision;
  Trait evaluation = NoEvaluation;
  let traits = !listconcat(given, [precision, evaluation]);
  let arguments = !con(inputs, (ins OptionalAttr<DG_PlaceAttr>:$place));
  let results = outputs;
  let hasCustomAssemblyFormat = 1;
  // skipDefaultBuilders stays off: ops infer their result types, so `create(loc, operands…)` is enough.
  string parsePrint = [{
    mlir::ParseResult $cppClass::parse(mlir::OpAsmParser &parser, mlir::OperationState &state) {
      return ::dg::ir::parseOp(parser, state, }] # !size(outputs) # [{);
    }
    void $cppClass::print(mlir::OpAsmPrinter &printer) { ::dg::ir::printOp(printer, getOperation()); }
  }];
  let extraClassDefinition = parsePrint;
}

/// A pure op that infers its types and follows the contract. Families add gradient and so on to `traits`; each op, or its family, says
/// `let precision = …`.
class DG_Op<string mnemonic, dag inputs, dag outputs, list<Trait> traits = []>
    : DG_OpBase<mnemonic, inputs, outputs, !listconcat(traits, [
        Pure, FromOperands<!size(outputs)>])> {
  let precision = Undecided;
  let evaluation = Computes;
}

/// Methods named in the list are overridden by the op; those left out keep the interface's default.
def Gradient : DeclareOpInterfaceMethods<DG_GradientOp>;
def Sharded : DeclareOpInterfaceMethods<DG_ShardingRuleOp>;
def ShardedWithShapes : DeclareOpInterfaceMethods<DG_ShardingRuleOp, ["localize"]>;
def Cost : DeclareOpInterfaceMethods<DG_CostOp, ["getCost"]>;
def DefaultCost : DeclareOpInterfaceMethods<DG_CostOp>;
/// So many flops for each element of the first operand.
class CostPerElement<int flops> : TraitList<[DeclareOpInterfaceMethods<DG_CostOp>,
    DG_Code<"HasCost", "::dg::ir::OpCost getCost() { return ::dg::ir::costPerElement(*this, " # flops # "); }", "">]>;
/// Dimensions of equal place and size, counted from the last, move together: see broadcastRule.
def ShardedAsBroadcast : TraitList<[DeclareOpInterfaceMethods<DG_ShardingRuleOp>, DG_Code<"Broadcasts", "", [{
    ::dg::ir::ShardingRule $cppClass::getShardingRule() { return ::dg::ir::broadcastRule(*this); }
  }]>]>;
def Composite : DeclareOpInterfaceMethods<DG_CompositeOp>;
def Indices : DeclareOpInterfaceMethods<DG_IndexOp>;

#endif
