// SPDX-License-Identifier: Apache-2.0
// ONNX's forms of reading and writing at places given by integers. A negative place counts from the end.
#ifndef DG_IR_GATHEROPS_TD
#define DG_IR_GATHEROPS_TD

include "ir/dialect/OpBase.td"

def DG_GatherOp : DG_Op<"gather", (ins DG_Tensor:$input, DG_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$dim), (outs DG_Tensor:$result),
    [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "The slices of the input along `dim` that the indices name, in their shape";
  let precision = Follows;
  let description = [{
    The shape of the result is the input's with `dim` replaced by the shape of the indices. Example: `%r = dg.gather %x, %i {dim = 1 : i64}`.
  }];
}
def DG_GatherGradOp : DG_Op<"gather_grad", (ins DG_Tensor:$grad, DG_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$dim, I64Attr:$size),
    (outs DG_Tensor:$result), [Gradient, Sharded, CostPerElement<1>, Indices]> {
  let evaluation = Evaluates;
  let summary = "The gradient of gather: slices added up where they came from, in the order of the indices";
  let precision = AsWritten;
  let description = [{`size` is that of the input's dimension `dim`. Example: `%dx = dg.gather_grad %dy, %i {dim = 1 : i64, size = 10 : i64}`.}];
}
def DG_GatherElementsOp : DG_Op<"gather_elements", (ins DG_Tensor:$input, DG_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$dim),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "For each index the element of the input at the same place, but at the index along `dim`";
  let precision = AsWritten;
  let description = [{Example: `%r = dg.gather_elements %x, %i {dim = 1 : i64}`.}];
}
def DG_ScatterElementsOp : DG_Op<"scatter_elements", (ins DG_Tensor:$input, DG_Tensor:$indices, DG_Tensor:$updates,
    DefaultValuedAttr<I64Attr, "0">:$dim, DefaultValuedAttr<StrAttr, "\"none\"">:$reduction), (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "The input with each update put at its own place, but at its index along `dim`";
  let precision = AsWritten;
  let description = [{
    `reduction` says how an update meets what is there: "none" replaces it (the last update wins), "add", "mul", "min", "max". Updates are
    taken in their row-major order. Example: `%r = dg.scatter_elements %x, %i, %u {dim = 1 : i64, reduction = "add"}`.
  }];
}
def DG_GatherNdOp : DG_Op<"gather_nd", (ins DG_Tensor:$input, DG_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "The slices of the input that the rows of the indices name";
  let precision = AsWritten;
  let description = [{
    A row of the indices (their last dimension) is a place in as many dimensions of the input, after `batch_dims` dimensions that both have.
    Example: `%r = dg.gather_nd %x, %i`.
  }];
}
def DG_ScatterNdOp : DG_Op<"scatter_nd", (ins DG_Tensor:$input, DG_Tensor:$indices, DG_Tensor:$updates,
    DefaultValuedAttr<I64Attr, "0">:$batch_dims, DefaultValuedAttr<StrAttr, "\"none\"">:$reduction), (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "The input with each slice of the updates put where its row of the indices says";
  let precision = AsWritten;
  let description = [{`reduction` is that of scatter_elements. Example: `%r = dg.scatter_nd %x, %i, %u {reduction = "add"}`.}];
}
def DG_OneHotOp : DG_Op<"one_hot", (ins DG_Tensor:$indices, I64Attr:$depth, I64Attr:$dim, TypeAttr:$type), (outs DG_Tensor:$result),
    [Sharded, DefaultCost]> {
  let summary = "1 at each index along a new dimension `dim` of size `depth`, 0 elsewhere";
  let precision = AsWritten;
  let description = [{
    `type` is that of the elements. An index outside of [-depth, depth) gives zeros. Example: `%h = dg.one_hot %i {depth = 10 : i64, dim = 1 : i64, type = f32}`.
  }];
}
def DG_ReverseSequenceOp : DG_Op<"reverse_sequence", (ins DG_Tensor:$input, DG_Tensor:$lengths, DefaultValuedAttr<I64Attr, "1">:$batch_dim),
    (outs DG_Tensor:$result), [Gradient, Sharded, DefaultCost, Indices]> {
  let evaluation = Evaluates;
  let summary = "The first lengths[b] steps of each sequence b in reverse order";
  let precision = AsWritten;
  let description = [{
    The first two dimensions are time and batch, or batch and time where `batch_dim` is 0.
    Example: `%r = dg.reverse_sequence %x, %lengths {batch_dim = 0 : i64}`.
  }];
}

#endif
