// SPDX-License-Identifier: Apache-2.0
// The base class of the ops that compute each element by itself. Binary ops broadcast as numpy does.
#ifndef DG_IR_ELEMENTWISEBASE_TD
#define DG_IR_ELEMENTWISEBASE_TD

include "ir/dialect/OpBase.td"

/// The numbers that an op is defined for (see Domain). The result has elements of the operands' type, unless given.
class DG_Domain<string name, string element = "mlir::Type()"> : DG_Code<"InDomain", "", [{
    mlir::FailureOr<mlir::Type> $cppClass::inferType(Adaptor op, const ::dg::ir::Rejection &reject) {
      return ::dg::ir::inferElementwise(reject, op.getOperands(), ::dg::ir::Domain::}] # name # ", " # element # [{);
    }
  }]>;
def Numbers : DG_Domain<"number">;
def Reals : DG_Domain<"real">;
def Integers : DG_Domain<"integer">;
def Bools : DG_Domain<"boolean">;
def TestedReals : DG_Domain<"real", "mlir::IntegerType::get(op.getInput().getContext(), 1)">;
/// The op infers its type itself.
def OwnDomain : TraitList<[]>;

/// An op brings its scalar function, and its gradient or its parts.
class DG_Elementwise<string mnemonic, dag inputs, Trait domain, list<Trait> traits = []>
    : DG_Op<mnemonic, inputs, (outs DG_Tensor:$result), !listconcat(traits, [
        domain, ShardedAsBroadcast, DefaultCost, DeclareOpInterfaceMethods<DG_ElementwiseOp>])> {
  let extraClassDefinition = parsePrint # [{
    void $cppClass::compute(::dg::ir::HostOperands operands, ::dg::ir::HostResults results) {
      ::dg::ir::evaluateElementwise(*this, operands, results[0]);
    }
  }];
}
class DG_Binary<string mnemonic, Trait kind> : DG_Elementwise<mnemonic, (ins DG_Tensor:$lhs, DG_Tensor:$rhs), Numbers, [Gradient]> {
  let precision = kind;
}

#endif
