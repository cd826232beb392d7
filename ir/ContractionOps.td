// SPDX-License-Identifier: Apache-2.0
// Matrix products, and the layers that are made of them.
#ifndef DG_IR_CONTRACTIONOPS_TD
#define DG_IR_CONTRACTIONOPS_TD

include "ir/OpBase.td"

def DG_MatmulOp : DG_Op<"matmul", (ins DG_Tensor:$lhs, DG_Tensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Composite]> {
  let summary = "Product of matrices, or of batches of them";
  let description = [{
    lhs […, m, k] (or […, k, m] with transpose_lhs), rhs […, k, n] (or […, n, k]); leading dimensions broadcast. A vector is a row on the
    left and a column on the right, and its dimension vanishes. Batches of different shapes and vectors are taken apart into reshape,
    expand and a product of equal batches. Example: `%c = dg.matmul %a, %b {transpose_rhs}`.
  }];
  let extraClassDeclaration = [{
    /// Whether both operands are equal batches of matrices: what has a gradient, a rule and a kernel of its own.
    bool isPrimitive();
  }];
}
def DG_LinearOp : DG_Op<"linear", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias), (outs DG_Tensor:$result),
    [Composite]> {
  let summary = "x · wᵀ + b over the last dimension";
  let description = [{The weight is [out, in], as PyTorch stores it. Example: `%h = dg.linear %x, %w, %b`.}];
}

#endif
