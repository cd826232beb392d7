// SPDX-License-Identifier: Apache-2.0
// Tensors whose elements are part of the model.
#ifndef DG_IR_LITERALOPS_TD
#define DG_IR_LITERALOPS_TD

include "ir/dialect/OpBase.td"

def DG_LiteralOp : DG_OpBase<"literal", (ins ElementsAttr:$value), (outs DG_Tensor:$result),
                             [Pure, OwnTypes, Computes, Gradient, Sharded, Cost]> {
  let summary = "A tensor whose elements are written out";
  let hasVerifier = 1;
  let description = [{
    For tables and masks that belong to the model and are not trained; `dg.constant` has the same value everywhere and costs nothing in the package.
    Example: `%t = dg.literal {value = dense<[1.0, 2.0]> : tensor<2xf32>}`.
  }];
}

#endif
