// SPDX-License-Identifier: Apache-2.0
// What the split phase inserts between ranks. Before it, no graph holds any of these.
#ifndef DG_IR_COMMUNICATIONOPS_TD
#define DG_IR_COMMUNICATIONOPS_TD

include "ir/dialect/OpBase.td"

class DG_Collective<string mnemonic, dag inputs> : DG_OpBase<mnemonic, inputs, (outs DG_Tensor:$result), [Pure]>;
def DG_AllReduceOp : DG_Collective<"all_reduce", (ins DG_Tensor:$input, StrAttr:$axis)> {
  let summary = "The sum over the ranks of a mesh axis, on each of them";
  let description = [{Example: `%s = dg.all_reduce %partial {axis = "data"} : (tensor<20x10xf32>) -> tensor<20x10xf32>`.}];
}
def DG_AllGatherOp : DG_Collective<"all_gather", (ins DG_Tensor:$input, StrAttr:$axis, I64Attr:$dim)> {
  let summary = "The shards of a mesh axis side by side along `dim`";
  let description = [{Example: `%w = dg.all_gather %shard {axis = "tensor", dim = 1 : i64} : (tensor<64x5xf32>) -> tensor<64x10xf32>`.}];
}
def DG_ReduceScatterOp : DG_Collective<"reduce_scatter", (ins DG_Tensor:$input, StrAttr:$axis, I64Attr:$dim)> {
  let summary = "This rank's block along `dim` of the sum over a mesh axis";
  let description = [{Example: `%s = dg.reduce_scatter %partial {axis = "data", dim = 0 : i64} : (tensor<20x10xf32>) -> tensor<10x10xf32>`.}];
}
def DG_SliceShardOp : DG_Collective<"slice_shard", (ins DG_Tensor:$input, StrAttr:$axis, I64Attr:$dim)> {
  let summary = "This rank's block along `dim` of a value that is whole on each rank; no communication";
  let description = [{Example: `%s = dg.slice_shard %x {axis = "tensor", dim = 1 : i64} : (tensor<64x10xf32>) -> tensor<64x5xf32>`.}];
}
def DG_SendOp : DG_OpBase<"send", (ins DG_Tensor:$value, I64Attr:$channel, I64Attr:$peer_stage), (outs)> {
  let summary = "Hands a value to another pipeline stage, for this micro-batch";
  let description = [{Example: `dg.send %h {channel = 3 : i64, peer_stage = 1 : i64}`.}];
}
def DG_ReceiveOp : DG_OpBase<"receive", (ins I64Attr:$channel, I64Attr:$peer_stage), (outs DG_Tensor:$result)> {
  let summary = "Takes a value from another pipeline stage, for this micro-batch";
  let description = [{Example: `%h = dg.receive {channel = 3 : i64, peer_stage = 0 : i64} : () -> tensor<64x20xf32>`.}];
}
def DG_AccumulateOp : DG_OpBase<"accumulate", (ins DG_Tensor:$value, StrAttr:$accumulator), (outs)> {
  let summary = "Adds this micro-batch's value to a sum that lives for the whole step";
  let description = [{Example: `dg.accumulate %g {accumulator = "grad fc1.weight"}`.}];
}
def DG_AccumulatedOp : DG_OpBase<"accumulated", (ins StrAttr:$accumulator), (outs DG_Tensor:$result)> {
  let summary = "The sum of a step's micro-batches";
  let description = [{Example: `%g = dg.accumulated {accumulator = "grad fc1.weight"} : () -> tensor<20x10xf32>`.}];
}

#endif
