// SPDX-License-Identifier: Apache-2.0
// Matrix products, and the layers that are made of them.
#ifndef DG_IR_CONTRACTIONOPS_TD
#define DG_IR_CONTRACTIONOPS_TD

include "ir/dialect/OpBase.td"

def DG_MatmulOp : DG_Op<"matmul", (ins DG_Tensor:$lhs, DG_Tensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs, OptionalAttr<TypeAttr>:$to),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Composite]> {
  let summary = "Product of matrices, or of batches of them";
  let precision = Product;
  let builders = [OpBuilder<(ins "mlir::Value":$lhs, "mlir::Value":$rhs, "bool":$transpose_lhs, "bool":$transpose_rhs,
      "::dg::ir::PlaceAttr":$place), [{
    build($_builder, $_state, lhs, rhs, transpose_lhs, transpose_rhs, mlir::TypeAttr(), place);
  }]>];
  let description = [{
    An f32 operand beside one of 16 bits is rounded to the other's type first: a cast that is part of the product. The result has the
    narrower type, or `to`, into which the sums in f32 are then rounded once.
    lhs […, m, k] (or […, k, m] with transpose_lhs), rhs […, k, n] (or […, n, k]); leading dimensions broadcast. A vector is a row on the
    left and a column on the right, and its dimension vanishes. Batches of different shapes and vectors are taken apart into reshape,
    expand and a product of equal batches. Example: `%c = dg.matmul %a, %b {transpose_rhs}`.
  }];
  let extraClassDeclaration = [{
    /// Whether both operands are equal batches of matrices: what has a gradient, a rule and a kernel of its own.
    bool isPrimitive();
    /// The element type of both factors when they are multiplied.
    mlir::Type getFactorType();
  }];
}
def DG_LinearOp : DG_Op<"linear", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias), (outs DG_Tensor:$result),
    [Composite]> {
  let summary = "x · wᵀ + b over the last dimension";
  let precision = Product;
  let description = [{The weight is [out, in], as PyTorch stores it. Example: `%h = dg.linear %x, %w, %b`.}];
}

#endif
