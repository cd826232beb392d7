// SPDX-License-Identifier: Apache-2.0
// Ops that copy elements to other places: windows, borders, joins, and tensors that follow a pattern.
#ifndef DG_IR_MOVEMENTOPS_TD
#define DG_IR_MOVEMENTOPS_TD

include "ir/dialect/OpBase.td"

def DG_SliceOp : DG_Op<"slice", (ins DG_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes, OptionalAttr<DenseI64ArrayAttr>:$steps),
    (outs DG_Tensor:$result), [Gradient, ShardedWithShapes, DefaultCost]> {
  let summary = "Every steps[d]-th element of each dimension d, from starts[d] on, sizes[d] of them";
  let precision = Follows;
  let description = [{
    One entry for each dimension. A size of -1 takes as many as there are. A negative step walks backwards from its start; steps
    are 1 where left out. Example: `%half = dg.slice %x {starts = array<i64: 0, 4>, sizes = array<i64: -1, 4>}`.
  }];
}
def DG_PadConstantOp : DG_Op<"pad_constant", (ins DG_Tensor:$input, Optional<DG_Tensor>:$fill, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
    OptionalAttr<DenseI64ArrayAttr>:$interior), (outs DG_Tensor:$result), [Gradient, Sharded, DefaultCost]> {
  let summary = "low[d] elements before, high[d] after, and interior[d] between the elements of each dimension d";
  let precision = Follows;
  let description = [{
    New elements are `fill`, a tensor of one element, or 0. No entry is negative; `dg.pad` also cuts and mirrors.
    Example: `%p = dg.pad_constant %x {low = array<i64: 0, 1>, high = array<i64: 0, 1>}`.
  }];
}
def DG_ConcatOp : DG_Op<"concat", (ins Variadic<DG_Tensor>:$inputs, I64Attr:$dim), (outs DG_Tensor:$result), [Gradient, Sharded, DefaultCost]> {
  let summary = "Tensors side by side along `dim`";
  let precision = Follows;
  let description = [{All other dimensions are equal. Example: `%c = dg.concat %a, %b {dim = 1}`.}];
}
def DG_TriluOp : DG_Op<"trilu", (ins DG_Tensor:$input, UnitAttr:$upper, DefaultValuedAttr<I64Attr, "0">:$diagonal), (outs DG_Tensor:$result),
    [Gradient, Sharded, DefaultCost]> {
  let summary = "The lower (or upper) triangle of matrices, up to the given diagonal; 0 elsewhere";
  let precision = AsWritten;
  let description = [{
    Keeps elements [i, j] of the last two dimensions with j - i <= diagonal, or >= with `upper`.
    Example: `%t = dg.trilu %x {upper, diagonal = 1 : i64}`.
  }];
}
def DG_IotaOp : DG_OpBase<"iota", (ins I64Attr:$dim, TypeAttr:$type, DefaultValuedAttr<F64Attr, "0.0">:$start, DefaultValuedAttr<F64Attr, "1.0">:$step),
    (outs DG_Tensor:$result), [Pure, TypeFromAttribute, Computes,
    ShardedWithShapes, DefaultCost]> {
  let summary = "start + step · index along `dim`";
  let description = [{Example: `%r = dg.iota {dim = 0 : i64, type = tensor<10xi64>}`.}];
  let hasVerifier = 1;
}

#endif
