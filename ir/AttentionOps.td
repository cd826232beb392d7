// SPDX-License-Identifier: Apache-2.0
// Attention and the rotation of its queries and keys.
#ifndef DG_IR_ATTENTIONOPS_TD
#define DG_IR_ATTENTIONOPS_TD

include "ir/OpBase.td"

def DG_AttentionOp : DG_Op<"attention", (ins DG_Tensor:$query, DG_Tensor:$key, DG_Tensor:$value, Optional<DG_Tensor>:$mask, I64Attr:$heads,
    OptionalAttr<I64Attr>:$kv_heads, UnitAttr:$causal, OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$scale),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "Multi-head scaled dot-product attention";
  let description = [{
    Query, key and value are [batch, tokens, width]; the width of the query is cut into `heads`, that of key and value into `kv_heads` (as many
    unless given; each serves a group of query heads). Scores are multiplied by `scale`, 1/√(head width) unless given. `mask` broadcasts to
    [batch, heads, tokens, seen tokens]: numbers are added to the scores, booleans say what may be seen.
    With `causal` token i sees none after seen token i + `offset` (0 unless given), and with `window` only the last `window` of those.
    Example: `%a = dg.attention %q, %k, %v {heads = 6, causal}`.
  }];
}
def DG_RotaryOp : DG_Op<"rotary", (ins DG_Tensor:$input, DG_Tensor:$cos, DG_Tensor:$sin, I64Attr:$heads, UnitAttr:$interleaved),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "Rotary position embedding: pairs of each head's elements turned by an angle that depends on the token";
  let description = [{
    The input is [batch, tokens, width], cosine and sine of the angles are [tokens, pairs] or [batch, tokens, pairs]. A pair is (i, i + pairs) of a
    head, or (2i, 2i + 1) with `interleaved`; what a head has beyond its pairs stays. Example: `%r = dg.rotary %q, %cos, %sin {heads = 6}`.
  }];
}

#endif
