// SPDX-License-Identifier: Apache-2.0
// The rows of EinsumOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> einsumRows() {
  return {
      {"dg.einsum %a, %b {equation = \"ij,jk->ik\"}", {{"n m"}, {"m k"}}},
      {"dg.einsum %a, %b {equation = \"bij,bjk\"}", {{"b n m"}, {"b m k"}}},
      {"dg.einsum %a, %b {equation = \"bhid, bhjd -> bhij\"}", {{"b h n d"}, {"b h m d"}}},
      {"dg.einsum %a {equation = \"ij->ji\"}", {{"n m"}}},
      {"dg.einsum %a {equation = \"ijk->j\"}", {{"n m k"}}},
      {"dg.einsum %a, %b {equation = \"i,j->ij\"}", {{"n"}, {"m"}}},
      {"dg.einsum %a, %b {equation = \"i,i\"}", {{"n"}, {"n"}}},
      {"dg.einsum %a, %b {equation = \"...ij,...jk->...ik\"}", {{"b n m"}, {"m k"}}},
      {"dg.einsum %a, %b {equation = \"...i,...i->...\"}", {{"b 1 n"}, {"h n"}}},
      {"dg.einsum %a, %b, %c {equation = \"ab,bc,cd->ad\"}", {{"n m"}, {"m k"}, {"k d"}}},
      {"dg.einsum %a, %b {equation = \"ij,k->j\"}", {{"n m"}, {"k"}}},
      {"dg.einsum %a {equation = \"ii->i\"}", {{"n n"}}},
      {"dg.einsum %a {equation = \"ii\"}", {{"n n"}}},
      {"dg.einsum %a {equation = \"...ii->...i\"}", {{"b c n n"}}},
      {"dg.einsum %a, %b {equation = \"iji,jk->ik\"}", {{"n m n"}, {"m k"}}},
      {"dg.einsum %a {equation = \"iii->i\"}", {{"n n n"}}},
      {"dg.einsum %a, %b {equation = \"ii,i->i\"}", {{"1 1"}, {"n"}}},
  };
}

} // namespace dg::ir::test
