// SPDX-License-Identifier: Apache-2.0
// Attention and the rotation of its queries and keys.
#ifndef DG_IR_ATTENTIONOPS_TD
#define DG_IR_ATTENTIONOPS_TD

include "ir/dialect/OpBase.td"

def DG_AttentionOp : DG_Op<"attention", (ins DG_Tensor:$query, DG_Tensor:$key, DG_Tensor:$value, Optional<DG_Tensor>:$mask, I64Attr:$heads,
    OptionalAttr<I64Attr>:$kv_heads, UnitAttr:$causal, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$scale),
    (outs DG_Tensor:$result), [DeclareOpInterfaceMethods<DG_CompositeOp, ["decomposeWithScores"]>, DeclareOpInterfaceMethods<DG_HeadsOp>]> {
  let summary = "Multi-head scaled dot-product attention";
  let precision = Product;
  let description = [{
    Query, key and value are [batch, tokens, width]; the width of the query is cut into `heads`, that of key and value into `kv_heads` (as many
    unless given; each serves a group of query heads). Scores are multiplied by `scale`, 1/√(head width) unless given. `mask` broadcasts to
    [batch, heads, tokens, seen tokens]: numbers are added to the scores, booleans say what may be seen.
    With `causal` token i sees none after seen token i + `offset` (0 unless given), and with `window` only the last `window` of those.
    A token that sees none at all gives 0.
    Example: `%a = dg.attention %q, %k, %v {heads = 6, causal}`.
  }];
}
def DG_BlockAttentionOp : DG_Op<"block_attention", (ins DG_Tensor:$query, DG_Tensor:$key, DG_Tensor:$value, Optional<DG_Tensor>:$mask, I64Attr:$head_width,
    F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$window),
    (outs DG_Tensor:$result, DG_Tensor:$logsumexp), [Gradient, Sharded, Cost, MixesWholeDims]> {
  let summary = "Attention in blocks of tokens: no matrix of tokens × tokens is stored";
  let precision = AsWritten;
  let description = [{
    What dg.attention is made of where all heads have one width. Query, key and value are [batch, tokens, width], of which each `head_width` elements are
    a head; a head of key and value serves a group of heads of the query. `mask`, `causal`, `offset` and `window` are those of dg.attention. Besides the result it gives the logarithm of the sum of the exponentials of each
    row's scores, [batch, tokens, heads], from which the gradient computes the weights again.
    A token that sees none has the result 0 and the logarithm +infinity.
    Example: `%a, %l = dg.block_attention %q, %k, %v {head_width = 64, scale = 0.125, causal}`.
  }];
  let extraClassDeclaration = [{
    /// A token all whose scores are below sees none.
    static constexpr double leastScore = -1e30;
  }];
}
def DG_BlockAttentionGradOp : DG_Op<"block_attention_grad", (ins DG_Tensor:$grad, DG_Tensor:$query, DG_Tensor:$key, DG_Tensor:$value,
    DG_Tensor:$logsumexp, DG_Tensor:$row_sums, Optional<DG_Tensor>:$mask, I64Attr:$head_width, F64Attr:$scale, UnitAttr:$causal,
    OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$window),
    (outs DG_Tensor:$query_grad, DG_Tensor:$key_grad, DG_Tensor:$value_grad), [Sharded, Cost, MixesWholeDims]> {
  let summary = "The gradients of block_attention at query, key and value";
  let precision = AsWritten;
  let description = [{
    `row_sums` is, for each token and head, Σ grad · result over the head, less the gradient at the logsumexp.
    Example: `%dq, %dk, %dv = dg.block_attention_grad %dy, %q, %k, %v, %l, %s {head_width = 64, scale = 0.125, causal}`.
  }];
}
def DG_RotaryOp : DG_Op<"rotary", (ins DG_Tensor:$input, DG_Tensor:$cos, DG_Tensor:$sin, I64Attr:$heads, UnitAttr:$interleaved),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "Rotary position embedding: pairs of each head's elements turned by an angle that depends on the token";
  let precision = Follows;
  let description = [{
    The input is [batch, tokens, width], cosine and sine of the angles are [tokens, pairs] or [batch, tokens, pairs]. A pair is (i, i + pairs) of a
    head, or (2i, 2i + 1) with `interleaved`; what a head has beyond its pairs stays. Example: `%r = dg.rotary %q, %cos, %sin {heads = 6}`.
  }];
}
def DG_RotatePairsOp : DG_Op<"rotate_pairs", (ins DG_Tensor:$input, DG_Tensor:$cos, DG_Tensor:$sin, UnitAttr:$interleaved),
    (outs DG_Tensor:$result), [Gradient, Sharded, CostPerElement<4>]> {
  let summary = "Pairs of each head's elements turned by an angle that depends on the token";
  let precision = AsWritten;
  let description = [{
    What dg.rotary is made of: the input is [batch, tokens, heads, head width], pairs and angles are those of dg.rotary.
    Example: `%r = dg.rotate_pairs %q, %cos, %sin`.
  }];
}

#endif
