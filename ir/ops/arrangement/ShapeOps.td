// SPDX-License-Identifier: Apache-2.0
// Ops that move or add up elements without changing them.
#ifndef DG_IR_SHAPEOPS_TD
#define DG_IR_SHAPEOPS_TD

include "ir/dialect/OpBase.td"

def DG_ReshapeOp : DG_Op<"reshape", (ins DG_Tensor:$input, DenseI64ArrayAttr:$shape), (outs DG_Tensor:$result),
    [Gradient, ShardedWithShapes, Cost, View, Rearranges]> {
  let summary = "The same elements in row-major order under another shape";
  let precision = Follows;
  let description = [{0 keeps the dimension at that place, one -1 is deduced. Example: `%f = dg.reshape %x {shape = array<i64: 0, -1>}`.}];
}
def DG_TransposeOp : DG_Op<"transpose", (ins DG_Tensor:$input, DenseI64ArrayAttr:$permutation), (outs DG_Tensor:$result),
    [Gradient, Sharded, DefaultCost, Rearranges]> {
  let summary = "Dimensions in another order: result dimension i is input dimension permutation[i]";
  let precision = Follows;
  let description = [{Example: `%t = dg.transpose %x {permutation = array<i64: 0, 2, 1, 3>}`.}];
}
def DG_ExpandOp : DG_Op<"expand", (ins DG_Tensor:$input, DenseI64ArrayAttr:$shape), (outs DG_Tensor:$result),
    [Gradient, ShardedWithShapes, DefaultCost]> {
  let summary = "Broadcast, as numpy does, to `shape`";
  let precision = Follows;
  let description = [{Example: `%e = dg.expand %bias {shape = array<i64: 64, 20>}`.}];
}
def DG_ReduceSumOp : DG_Op<"reduce_sum", (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims, UnitAttr:$keep), (outs DG_Tensor:$result),
    [Gradient, Sharded, CostPerElement<1>]> {
  let summary = "Sum over `dims`, which vanish, or stay with size 1 with `keep`";
  let precision = Statistics;
  let description = [{Example: `%s = dg.reduce_sum %x {dims = array<i64: 0>}`.}];
}

#endif
