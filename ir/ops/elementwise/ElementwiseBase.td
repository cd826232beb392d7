// SPDX-License-Identifier: Apache-2.0
// The base class of the ops that compute each element by itself. Binary ops broadcast as numpy does.
#ifndef DG_IR_ELEMENTWISEBASE_TD
#define DG_IR_ELEMENTWISEBASE_TD

include "ir/dialect/OpBase.td"

class DG_Elementwise<string mnemonic, dag inputs, list<Trait> traits = []>
    : DG_Op<mnemonic, inputs, (outs DG_Tensor:$result), !listconcat(traits, [
        Sharded, DefaultCost, DeclareOpInterfaceMethods<DG_ElementwiseOp>])>;
class DG_Binary<string mnemonic, Trait kind> : DG_Elementwise<mnemonic, (ins DG_Tensor:$lhs, DG_Tensor:$rhs), [Gradient]> {
  let precision = kind;
}

#endif
