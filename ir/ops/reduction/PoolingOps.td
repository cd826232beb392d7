// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [n, c, …] with one to three dimensions of places.
#ifndef DG_IR_POOLINGOPS_TD
#define DG_IR_POOLINGOPS_TD

include "ir/dialect/OpBase.td"

def DG_MaxPool2dOp : DG_Op<"max_pool2d", (ins DG_Tensor:$input, DenseI64ArrayAttr:$kernel, OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost]> {
  let summary = "The largest element of each window; strides are the kernel's size where left out; no padding";
  let precision = Follows;
  let description = [{Example: `%p = dg.max_pool2d %x {kernel = array<i64: 2, 2>}`.}];
}
def DG_MaxPool2dGradOp : DG_Op<"max_pool2d_grad", (ins DG_Tensor:$grad, DG_Tensor:$input, DenseI64ArrayAttr:$kernel, OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost]> {
  let summary = "The gradient of max_pool2d: it goes to the first largest element of each window";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.max_pool2d_grad %dy, %x {kernel = array<i64: 2, 2>}`.}];
}

/// `strides` are the kernel's sizes where left out; `padding` has one size for each dimension, or all starts and then all ends;
/// with `ceil` a last window may reach past the padding.
class DG_Pool<string mnemonic, dag inputs, dag extra = (ins), list<Trait> traits = []>
    : DG_Op<mnemonic, !con(inputs, (ins DenseI64ArrayAttr:$kernel, OptionalAttr<DenseI64ArrayAttr>:$strides,
              DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$padding, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dilation, UnitAttr:$ceil), extra),
            (outs DG_Tensor:$result), !listconcat(traits, [Sharded, Cost])>;
def DG_MaxPoolOp : DG_Pool<"max_pool", (ins DG_Tensor:$input), (ins), [Gradient, Composite]> {
  let summary = "The largest element of each window; padding does not count";
  let precision = Follows;
  let description = [{Example: `%p = dg.max_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1>}`.}];
}
def DG_MaxPoolIndicesOp : DG_Pool<"max_pool_indices", (ins DG_Tensor:$input)> {
  let summary = "Where max_pool finds its elements: the row-major place in the image of the channel, an i64";
  let precision = AsWritten;
  let description = [{The first of equal ones. Example: `%i = dg.max_pool_indices %x {kernel = array<i64: 2, 2>}`.}];
}
def DG_MaxPoolGradOp : DG_Pool<"max_pool_grad", (ins DG_Tensor:$grad, DG_Tensor:$input), (ins), [Gradient]> {
  let summary = "The gradient of max_pool: it goes to the first largest element of each window";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.max_pool_grad %dy, %x {kernel = array<i64: 2, 2>}`.}];
}
def DG_AvgPoolOp : DG_Pool<"avg_pool", (ins DG_Tensor:$input), (ins UnitAttr:$count_include_pad, UnitAttr:$sum), [Gradient]> {
  let summary = "The mean of each window";
  let precision = Statistics;
  let description = [{
    Padding counts only with `count_include_pad`, and never what lies beyond it. With `sum` nothing is divided.
    Example: `%p = dg.avg_pool %x {kernel = array<i64: 2, 2>}`.
  }];
}
def DG_AvgPoolGradOp : DG_Pool<"avg_pool_grad", (ins DG_Tensor:$grad, DenseI64ArrayAttr:$input_size), (ins UnitAttr:$count_include_pad, UnitAttr:$sum),
    [Gradient]> {
  let summary = "The gradient of avg_pool; `input_size` are the sizes of its input's places";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.avg_pool_grad %dy {input_size = array<i64: 8, 8>, kernel = array<i64: 2, 2>}`.}];
}
def DG_LpPoolOp : DG_Op<"lp_pool", (ins DG_Tensor:$input, DenseI64ArrayAttr:$kernel, OptionalAttr<DenseI64ArrayAttr>:$strides,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$padding, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dilation, UnitAttr:$ceil,
      DefaultValuedAttr<I64Attr, "2">:$p), (outs DG_Tensor:$result), [Composite]> {
  let summary = "(Σ |x|^p)^(1/p) of each window";
  let precision = AsWritten;
  let description = [{Example: `%p = dg.lp_pool %x {kernel = array<i64: 2, 2>, p = 3}`.}];
}
class DG_GlobalPool<string mnemonic> : DG_Op<mnemonic, (ins DG_Tensor:$input), (outs DG_Tensor:$result), [Composite]>;
def DG_GlobalAvgPoolOp : DG_GlobalPool<"global_avg_pool"> {
  let summary = "The mean over all places of each channel: [n, c, 1, …]";
  let precision = Statistics;
  let description = [{Example: `%p = dg.global_avg_pool %x`.}];
}
def DG_GlobalMaxPoolOp : DG_GlobalPool<"global_max_pool"> {
  let summary = "The largest element of each channel: [n, c, 1, …]";
  let precision = Follows;
  let description = [{Example: `%p = dg.global_max_pool %x`.}];
}

#endif
