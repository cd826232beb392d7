// SPDX-License-Identifier: Apache-2.0
// Matrix products, and the layers that are made of them.
#ifndef DG_IR_CONTRACTIONOPS_TD
#define DG_IR_CONTRACTIONOPS_TD

include "ir/OpBase.td"

def DG_MatmulOp : DG_Op<"matmul", (ins DG_Tensor:$lhs, DG_Tensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost]> {
  let summary = "Product of matrices, or of two equally long batches of them";
  let description = [{
    lhs […, m, k] (or […, k, m] with transpose_lhs), rhs […, k, n] (or […, n, k]); leading dimensions are equal.
    Example: `%c = dg.matmul %a, %b {transpose_rhs}`.
  }];
}
def DG_LinearOp : DG_Op<"linear", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias), (outs DG_Tensor:$result),
    [Composite]> {
  let summary = "x · wᵀ + b over the last dimension";
  let description = [{The weight is [out, in], as PyTorch stores it. Example: `%h = dg.linear %x, %w, %b`.}];
}

#endif
