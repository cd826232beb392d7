// SPDX-License-Identifier: Apache-2.0
// Einstein's sum.
#ifndef DG_IR_EINSUMOPS_TD
#define DG_IR_EINSUMOPS_TD

include "ir/dialect/OpBase.td"

def DG_EinsumOp : DG_Op<"einsum", (ins Variadic<DG_Tensor>:$inputs, StrAttr:$equation), (outs DG_Tensor:$result), [Composite]> {
  let summary = "Products of elements with equal letters, summed over the letters that the result does not have";
  let precision = Product;
  let description = [{
    As numpy's: `...` stands for further dimensions, which broadcast; without `->` the result has the letters that stand once, in
    alphabetical order. A letter that stands twice in an operand means its diagonal. Example: `%c = dg.einsum %a, %b {equation = "bij,bjk->bik"}`.
  }];
}

#endif
