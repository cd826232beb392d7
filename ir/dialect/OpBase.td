// SPDX-License-Identifier: Apache-2.0
// The base class of every op: one text form, one placement attribute, inferred result types.
#ifndef DG_IR_OPBASE_TD
#define DG_IR_OPBASE_TD

include "ir/dialect/Dialect.td"
include "ir/dialect/Interfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Text form: `%r = dg.name %a, %b {attributes}` while types are to be deduced, and `… : (types) -> types` afterwards. The
/// name of the first result becomes the op's label.
class DG_OpBase<string mnemonic, dag inputs, dag outputs, list<Trait> traits = []> : Op<DG_Dialect, mnemonic, traits> {
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

/// A pure op that infers its types and follows the contract. Families add gradient and so on to `traits`.
class DG_Op<string mnemonic, dag inputs, dag outputs, list<Trait> traits = []>
    : DG_OpBase<mnemonic, inputs, outputs, !listconcat(traits, [
        Pure, InferTypeOpAdaptor,
        DeclareOpInterfaceMethods<DG_ReferenceOp>])>;

/// Methods named in the list are overridden by the op; those left out keep the interface's default.
def Gradient : DeclareOpInterfaceMethods<DG_GradientOp>;
def Sharded : DeclareOpInterfaceMethods<DG_ShardingRuleOp>;
def ShardedWithShapes : DeclareOpInterfaceMethods<DG_ShardingRuleOp, ["localize"]>;
def Cost : DeclareOpInterfaceMethods<DG_CostOp, ["getCost"]>;
def DefaultCost : DeclareOpInterfaceMethods<DG_CostOp>;
def Composite : DeclareOpInterfaceMethods<DG_CompositeOp>;

#endif
