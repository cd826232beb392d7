// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions, and the layers and attention that are made of them.
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
def DG_AttentionOp : DG_Op<"attention", (ins DG_Tensor:$query, DG_Tensor:$key, DG_Tensor:$value, I64Attr:$heads, UnitAttr:$causal),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "Multi-head scaled dot-product attention";
  let description = [{
    Query, key and value are [batch, tokens, width]; the width is cut into `heads`. With `causal` a token sees none after it.
    Example: `%a = dg.attention %q, %k, %v {heads = 6, causal}`.
  }];
}

class DG_Conv<string mnemonic, dag inputs, list<Trait> traits = []>
    : DG_Op<mnemonic, !con(inputs, (ins DefaultValuedAttr<DenseI64ArrayAttr, "{1, 1}">:$strides, DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0}">:$padding)),
            (outs DG_Tensor:$result), !listconcat(traits, [Sharded, Cost])>;
def DG_Conv2dOp : DG_Conv<"conv2d", (ins DG_Tensor:$input, DG_Tensor:$weight, Optional<DG_Tensor>:$bias), [Gradient, Composite]> {
  let summary = "Two-dimensional convolution (correlation, as every framework has it)";
  let description = [{
    Input [n, c, h, w], weight [o, c, kh, kw], bias [o]; `padding` rows and columns of zeros on both sides.
    Example: `%c = dg.conv2d %x, %w, %b {strides = array<i64: 1, 1>}`.
  }];
}
def DG_Conv2dInputGradOp : DG_Conv<"conv2d_input_grad", (ins DG_Tensor:$grad, DG_Tensor:$weight, DenseI64ArrayAttr:$input_size)> {
  let summary = "The gradient of conv2d at its input; `input_size` is [h, w]";
  let description = [{Example: `%dx = dg.conv2d_input_grad %dy, %w {input_size = array<i64: 28, 28>}`.}];
}
def DG_Conv2dWeightGradOp : DG_Conv<"conv2d_weight_grad", (ins DG_Tensor:$grad, DG_Tensor:$input, DenseI64ArrayAttr:$kernel_size)> {
  let summary = "The gradient of conv2d at its weight; `kernel_size` is [kh, kw]";
  let description = [{Example: `%dw = dg.conv2d_weight_grad %dy, %x {kernel_size = array<i64: 5, 5>}`.}];
}

#endif
