// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of images [n, c, h, w].
#ifndef DG_IR_POOLINGOPS_TD
#define DG_IR_POOLINGOPS_TD

include "ir/OpBase.td"

def DG_MaxPool2dOp : DG_Op<"max_pool2d", (ins DG_Tensor:$input, DenseI64ArrayAttr:$kernel, OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs DG_Tensor:$result), [Gradient, Sharded, Cost]> {
  let summary = "The largest element of each window; strides are the kernel's size where left out; no padding";
  let description = [{Example: `%p = dg.max_pool2d %x {kernel = array<i64: 2, 2>}`.}];
}
def DG_MaxPool2dGradOp : DG_Op<"max_pool2d_grad", (ins DG_Tensor:$grad, DG_Tensor:$input, DenseI64ArrayAttr:$kernel, OptionalAttr<DenseI64ArrayAttr>:$strides),
    (outs DG_Tensor:$result), [Sharded, Cost]> {
  let summary = "The gradient of max_pool2d: it goes to the first largest element of each window";
  let description = [{Example: `%dx = dg.max_pool2d_grad %dy, %x {kernel = array<i64: 2, 2>}`.}];
}

#endif
