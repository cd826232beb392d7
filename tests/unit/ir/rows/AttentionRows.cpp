// SPDX-License-Identifier: Apache-2.0
// The rows of AttentionOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> attentionRows() {
  return {
      {"dg.attention %a, %b, %c {heads = $h : i64}", {{"b t h*d"}, {"b s h*d"}, {"b s h*d"}}},
      {"dg.attention %a, %b, %c {heads = $h : i64, causal}", {{"b t h*d"}, {"b t h*d"}, {"b t h*d"}}},
      {"dg.attention %a, %b, %c {heads = ${g*h} : i64, kv_heads = $h : i64}",
       {{"b t g*h*d"}, {"b s h*d"}, {"b s h*e"}}},
      {"dg.attention %a, %b, %c, %d {heads = $h : i64, scale = 0.3}",
       {{"b t h*d"}, {"b s h*d"}, {"b s h*d"}, {"b 1 t s"}}},
      {"dg.attention %a, %b, %c, %d {heads = ${2*h} : i64, kv_heads = $h : i64, causal}",
       {{"b t 2*h*d"}, {"b t h*d"}, {"b t h*d"}, {"2*h t t"}}},
      {"dg.attention %a, %b, %c {heads = $h : i64, causal, offset = 3 : i64, window = 2 : i64}",
       {{"b 4 h*d"}, {"b 7 h*d"}, {"b 7 h*d"}}},
      {"dg.attention %a, %b, %c, %d {heads = $h : i64}",
       {{"b t h*d"}, {"b s h*d"}, {"b s h*d"}, {"t s", Elements::boolean}}},
      {"dg.block_attention %a, %b, %c {head_width = $d : i64, scale = 0.5 : f64}",
       {{"b t h*d"}, {"b s h*d"}, {"b s h*d"}},
       2},
      {"dg.block_attention %a, %b, %c {head_width = $d : i64, scale = 0.5 : f64, causal}",
       {{"b t h*d"}, {"b t h*d"}, {"b t h*d"}},
       2},
      {"dg.block_attention_grad %a, %b, %c, %d, %e, %f {head_width = $d : i64, scale = 0.5 : f64}",
       {{"b t h*d"}, {"b t h*d"}, {"b s h*d"}, {"b s h*d"}, {"b t h"}, {"b t h"}},
       3},
      {"dg.block_attention_grad %a, %b, %c, %d, %e, %f {head_width = $d : i64, scale = 0.5 : f64, causal}",
       {{"b t h*d"}, {"b t h*d"}, {"b t h*d"}, {"b t h*d"}, {"b t h"}, {"b t h"}},
       3},
      {"dg.block_attention %a, %b, %c, %d {head_width = $d : i64, scale = 0.5 : f64}",
       {{"b t g*h*d"}, {"b s h*d"}, {"b s h*d"}, {"b g*h t s"}},
       2},
      {"dg.block_attention %a, %b, %c, %d {head_width = $d : i64, scale = 0.5 : f64, causal, offset = 3 : i64, window "
       "= 2 : i64}",
       {{"b 4 g*h*d"}, {"b 7 h*d"}, {"b 7 h*d"}, {"4 7"}},
       2},
      {"dg.block_attention_grad %a, %b, %c, %d, %e, %f, %g {head_width = $d : i64, scale = 0.5 : f64, causal}",
       {{"b t g*h*d"}, {"b t g*h*d"}, {"b t h*d"}, {"b t h*d"}, {"b t g*h"}, {"b t g*h"}, {"b g*h 1 t"}},
       3},
      {"dg.attention %a, %b, %c, %d {heads = ${g*h} : i64, kv_heads = $h : i64, causal, offset = 1 : i64, window = "
       "3 : "
       "i64}",
       {{"b 5 g*h*d"}, {"b 6 h*d"}, {"b 6 h*d"}, {"5 6", Elements::boolean}}},
      {"dg.rotate_pairs %a, %b, %c", {{"b t h 2*d"}, {"t d"}, {"t d"}}},
      {"dg.rotate_pairs %a, %b, %c {interleaved}", {{"b t h 6"}, {"b t 2"}, {"b t 2"}}},
      {"dg.rotary %a, %b, %c {heads = $h : i64}", {{"b t h*2*d"}, {"t d"}, {"t d"}}},
      {"dg.rotary %a, %b, %c {heads = $h : i64, interleaved}", {{"b t h*6"}, {"b t 2"}, {"b t 2"}}},
  };
}

} // namespace dg::ir::test
