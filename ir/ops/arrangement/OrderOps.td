// SPDX-License-Identifier: Apache-2.0
// Ops that look at the order of the elements along one dimension, `axis`, which may be counted from the last (-1).
#ifndef DG_IR_ORDEROPS_TD
#define DG_IR_ORDEROPS_TD

include "ir/dialect/OpBase.td"

class DG_ArgReduction<string mnemonic, string what>
    : DG_Op<mnemonic, (ins DG_Tensor:$input, DefaultValuedAttr<I64Attr, "-1">:$axis, UnitAttr:$keep, UnitAttr:$last), (outs DG_Tensor:$result),
        [Sharded, MixesWholeDims, Cost]> {
  let precision = AsWritten;
  let summary = "Where along `axis` the " # what # " element is, as i64";
  let description = "The first of several equal ones, or the `last`; a NaN before all others. Example: `%i = dg." # mnemonic # " %x {axis = 1, keep}`.";
}
def DG_ArgMaxOp : DG_ArgReduction<"arg_max", "largest">;
def DG_ArgMinOp : DG_ArgReduction<"arg_min", "smallest">;

def DG_CumsumOp : DG_Op<"cumsum", (ins DG_Tensor:$input, DefaultValuedAttr<I64Attr, "-1">:$axis, UnitAttr:$exclusive, UnitAttr:$reverse),
    (outs DG_Tensor:$result), [Gradient, Sharded, CostPerElement<1>, MixesWholeDims]> {
  let summary = "The sum of all elements up to each one along `axis`";
  let precision = Statistics;
  let description = [{Without the element itself with `exclusive`, from the end with `reverse`. Example: `%s = dg.cumsum %x {axis = 0, exclusive}`.}];
}
def DG_TopKOp : DG_Op<"top_k", (ins DG_Tensor:$input, I64Attr:$k, DefaultValuedAttr<I64Attr, "-1">:$axis, UnitAttr:$smallest),
    (outs DG_Tensor:$values, DG_Tensor:$indices), [Gradient, Sharded, Cost, MixesWholeDims]> {
  let summary = "The `k` largest (or `smallest`) elements along `axis`, the first of them first, and where they were, as i64";
  let precision = AsWritten;
  let description = [{Of equal elements the one that came first comes first; NaN is larger than all. Example: `%v, %i = dg.top_k %x {k = 5}`.}];
}
def DG_TopKGradOp : DG_Op<"top_k_grad", (ins DG_Tensor:$grad, DG_Tensor:$indices, I64Attr:$size, DefaultValuedAttr<I64Attr, "-1">:$axis),
    (outs DG_Tensor:$result), [Sharded, CostPerElement<1>, Indices]> {
  let evaluation = Evaluates;
  let summary = "The gradient of top_k at its input: each element goes back to where it was, in a dimension of `size`; the others are 0";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.top_k_grad %dv, %i {size = 10, axis = 1}`.}];
}
def DG_SortOp : DG_Op<"sort", (ins DG_Tensor:$input, DefaultValuedAttr<I64Attr, "-1">:$axis, UnitAttr:$descending),
    (outs DG_Tensor:$values, DG_Tensor:$indices), [Composite]> {
  let summary = "The elements along `axis` in order, and where they were, as i64";
  let precision = AsWritten;
  let description = [{Equal elements stay in their order. Example: `%v, %i = dg.sort %x {axis = 0, descending}`.}];
}
def DG_HardmaxOp : DG_Op<"hardmax", (ins DG_Tensor:$input, DefaultValuedAttr<I64Attr, "-1">:$axis), (outs DG_Tensor:$result),
    [Gradient, Sharded, CostPerElement<1>, MixesWholeDims]> {
  let summary = "1 at the first of the largest elements along `axis`, else 0; its gradient is 0";
  let precision = AsWritten;
  let description = [{Example: `%h = dg.hardmax %x {axis = 1}`.}];
}

#endif
