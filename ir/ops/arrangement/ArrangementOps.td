// SPDX-License-Identifier: Apache-2.0
// Arrangements that are made of slices, borders, joins, reshapes and broadcasts.
#ifndef DG_IR_ARRANGEMENTOPS_TD
#define DG_IR_ARRANGEMENTOPS_TD

include "ir/dialect/OpBase.td"

class DG_Arrangement<string mnemonic, dag inputs> : DG_Op<mnemonic, inputs, (outs DG_Tensor:$result), [Composite]> {
  let precision = Follows;
}

def DG_PadOp : DG_Arrangement<"pad", (ins DG_Tensor:$input, Optional<DG_Tensor>:$fill, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
    DefaultValuedAttr<StrAttr, "\"constant\"">:$mode, DefaultValuedAttr<F64Attr, "0.0">:$value)> {
  let summary = "low[d] elements before and high[d] after each dimension d; negative numbers cut";
  let description = [{
    Modes: "constant" (`fill`, a tensor of one element, or `value`), "reflect" (mirrored without the border), "edge" (the border repeated),
    "wrap" (periodic). Example: `%p = dg.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, -1>, mode = "edge"}`.
  }];
}
def DG_TileOp : DG_Arrangement<"tile", (ins DG_Tensor:$input, DenseI64ArrayAttr:$repeats)> {
  let summary = "The whole tensor repeats[d] times along each dimension d";
  let description = [{Example: `%t = dg.tile %x {repeats = array<i64: 1, 3>}`.}];
}
def DG_FlipOp : DG_Arrangement<"flip", (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims)> {
  let summary = "The elements in reverse order along `dims`";
  let description = [{Example: `%f = dg.flip %x {dims = array<i64: 1>}`.}];
}
def DG_RollOp : DG_Arrangement<"roll", (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$shifts)> {
  let summary = "Moves elements by shifts[i] along dims[i]; what leaves at the end comes back at the start";
  let description = [{Example: `%r = dg.roll %x {dims = array<i64: 1>, shifts = array<i64: -1>}`.}];
}
def DG_SqueezeOp : DG_Arrangement<"squeeze", (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims)> {
  let summary = "Without the dimensions `dims`, whose size is 1";
  let description = [{Example: `%s = dg.squeeze %x {dims = array<i64: 1>}`.}];
}
def DG_UnsqueezeOp : DG_Arrangement<"unsqueeze", (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims)> {
  let summary = "With dimensions of size 1 that are `dims` of the result";
  let description = [{Example: `%u = dg.unsqueeze %x {dims = array<i64: 0, 2>}`.}];
}
def DG_FlattenOp : DG_Arrangement<"flatten", (ins DG_Tensor:$input, DefaultValuedAttr<I64Attr, "1">:$dim)> {
  let summary = "A matrix: dimensions before `dim` are its rows, the others its columns";
  let description = [{Example: `%f = dg.flatten %x {dim = 1 : i64}`.}];
}
def DG_DepthToSpaceOp : DG_Arrangement<"depth_to_space", (ins DG_Tensor:$input, I64Attr:$block, UnitAttr:$channels_major)> {
  let summary = "Channels of an image [n, block·block·c, h, w] as pixels: [n, c, block·h, block·w]";
  let description = [{
    Channels count (row, column, c), or (c, row, column) with `channels_major` (ONNX's CRD). Example: `%s = dg.depth_to_space %x {block = 2}`.
  }];
}
def DG_SpaceToDepthOp : DG_Arrangement<"space_to_depth", (ins DG_Tensor:$input, I64Attr:$block)> {
  let summary = "Blocks of pixels of an image [n, c, block·h, block·w] as channels: [n, block·block·c, h, w]";
  let description = [{Channels count (row, column, c). Example: `%d = dg.space_to_depth %x {block = 2}`.}];
}
def DG_CenterCropPadOp : DG_Arrangement<"center_crop_pad", (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$sizes)> {
  let summary = "Cut, or padded with 0, around the middle to sizes[i] along dims[i]";
  let description = [{Example: `%c = dg.center_crop_pad %x {dims = array<i64: 2, 3>, sizes = array<i64: 224, 224>}`.}];
}
def DG_EyeOp : DG_OpBase<"eye", (ins TypeAttr:$type, DefaultValuedAttr<I64Attr, "0">:$diagonal), (outs DG_Tensor:$result),
    [Pure, TypeFromAttribute, Computes, Composite]> {
  let summary = "1 on a diagonal of a matrix, 0 elsewhere";
  let description = [{Example: `%i = dg.eye {type = tensor<4x4xf32>}`.}];
  let hasVerifier = 1;
}

#endif
