// SPDX-License-Identifier: Apache-2.0
// Ops whose elements are weighted sums of a few elements along each dimension, by weights that are known beforehand.
#ifndef DG_IR_RESAMPLEOPS_TD
#define DG_IR_RESAMPLEOPS_TD

include "ir/dialect/OpBase.td"

def DG_ResampleOp : DG_Op<"resample", (ins DG_Tensor:$input, I64Attr:$dim, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$places,
    DenseF64ArrayAttr:$weights), (outs DG_Tensor:$result), [Gradient, Sharded, Cost]> {
  let summary = "A sparse matrix of constants times the input, along dimension `dim`";
  let precision = AsWritten;
  let description = [{
    Row j of the matrix has weights[k] in column places[k], for k from offsets[j] to before offsets[j + 1]; sums are taken in this order.
    Tensors of integers are copied: a row has one place at most, with weight 1. Example, the mean of neighbours:
    `%m = dg.resample %x {dim = 1, offsets = array<i64: 0, 2, 4>, places = array<i64: 0, 1, 1, 2>, weights = array<f64: 0.5, 0.5, 0.5, 0.5>}`.
  }];
}
def DG_ResizeOp : DG_Op<"resize", (ins DG_Tensor:$input, DenseI64ArrayAttr:$sizes, OptionalAttr<DenseF64ArrayAttr>:$scales,
    DefaultValuedAttr<StrAttr, "\"nearest\"">:$mode, DefaultValuedAttr<StrAttr, "\"half_pixel\"">:$coordinates,
    DefaultValuedAttr<StrAttr, "\"round_prefer_floor\"">:$rounding, DefaultValuedAttr<F64Attr, "-0.75">:$cubic_coefficient,
    UnitAttr:$exclude_outside, UnitAttr:$antialias, OptionalAttr<DenseF64ArrayAttr>:$roi, DefaultValuedAttr<F64Attr, "0.0">:$extrapolation),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "The input sampled at other sizes, as ONNX's Resize does";
  let precision = AsWritten;
  let description = [{
    `sizes` has one entry for each dimension, -1 to keep it; `scales` are the ratios of the sizes unless given. `mode`: nearest, linear, cubic.
    `coordinates`: half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, tf_crop_and_resize (with `roi`: all starts, then
    all ends). `rounding`, of nearest: round_prefer_floor, round_prefer_ceil, floor, ceil.
    Example: `%r = dg.resize %x {sizes = array<i64: -1, -1, 56, 56>, mode = "linear"}`.
  }];
}
def DG_Col2ImOp : DG_Op<"col2im", (ins DG_Tensor:$input, DenseI64ArrayAttr:$image, DenseI64ArrayAttr:$kernel,
    OptionalAttr<DenseI64ArrayAttr>:$strides, OptionalAttr<DenseI64ArrayAttr>:$dilations, OptionalAttr<DenseI64ArrayAttr>:$low,
    OptionalAttr<DenseI64ArrayAttr>:$high), (outs DG_Tensor:$result), [Composite]> {
  let summary = "Patches [n, c · kernel, positions] added up to an image [n, c, image…]";
  let precision = AsWritten;
  let description = [{
    The reverse of cutting an image, padded by `low` and `high`, into patches of size `kernel`.
    Example: `%i = dg.col2im %p {image = array<i64: 5, 5>, kernel = array<i64: 3, 3>}`.
  }];
}

#endif
