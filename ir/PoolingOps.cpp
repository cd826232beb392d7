// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of images [n, c, h, w].
#include "ir/PoolingOps.h"
#include "ir/ShardingRules.h"
#include "ir/TypeInference.h"

using namespace mlir;

namespace dg::ir {

/// The shape of the pooled images; fails where kernel or strides do not fit them.
template <typename Op>
static FailureOr<SmallVector<int64_t>> pooledShape(std::optional<Location> location, RankedTensorType input,
                                                   DenseI64ArrayAttr kernel, ArrayRef<int64_t> strides) {
  if (input.getRank() != 4)
    return reject<Op>(location, "has input ", input, ", expected [n, c, h, w]");
  if (kernel.size() != 2 || strides.size() != 2 || llvm::any_of(strides, [](int64_t stride) { return stride < 1; }) ||
      llvm::any_of(kernel.asArrayRef(), [](int64_t size) { return size < 1; }))
    return reject<Op>(location, "has kernel ", kernel, ", expected two sizes, and two strides or none, all above 0");
  SmallVector<int64_t> shape(input.getShape());
  for (int64_t i = 0; i < 2; ++i) {
    int64_t &size = shape[2 + i];
    if (ShapedType::isDynamic(size))
      continue;
    if (size < kernel[i])
      return reject<Op>(location, "has a kernel of ", kernel[i], " over ", size, " elements of input ", input,
                        ", expected a kernel that fits");
    size = (size - kernel[i]) / strides[i] + 1;
  }
  return shape;
}

/// Strides are the kernel's size where left out.
template <typename Op> static ArrayRef<int64_t> stridesOf(Op op) {
  return op.getStridesAttr() ? op.getStridesAttr().asArrayRef() : op.getKernel();
}

/// Calls `visit(output, input)` with the place of each output element and of the first largest element in its window.
template <typename Visit>
static void forEachWindow(const HostTensor &input, ArrayRef<int64_t> pooled, ArrayRef<int64_t> kernel,
                          ArrayRef<int64_t> strides, Visit visit) {
  int64_t height = input.shape[2], width = input.shape[3], out = 0;
  for (int64_t image = 0; image < pooled[0] * pooled[1]; ++image)
    for (int64_t row = 0; row < pooled[2]; ++row)
      for (int64_t column = 0; column < pooled[3]; ++column) {
        int64_t corner = (image * height + row * strides[0]) * width + column * strides[1], largest = corner;
        for (int64_t i = 0; i < kernel[0]; ++i)
          for (int64_t j = 0; j < kernel[1]; ++j)
            if (input.data[corner + i * width + j] > input.data[largest])
              largest = corner + i * width + j;
        visit(out++, largest);
      }
}

//===- MaxPool2dOp -----------------------------------------------------------------------------------------------===//

LogicalResult MaxPool2dOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                            SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput());
  auto shape = pooledShape<MaxPool2dOp>(location, input, op.getKernelAttr(), stridesOf(op));
  if (failed(shape))
    return failure();
  inferred.push_back(RankedTensorType::get(*shape, input.getElementType()));
  return success();
}

FailureOr<SmallVector<Value>> MaxPool2dOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{
      builder.create<MaxPool2dGradOp>(getLoc(), grads[0], getInput(), getKernelAttr(), getStridesAttr(), PlaceAttr())};
}

ShardingRule MaxPool2dOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }

OpCost MaxPool2dOp::getCost() {
  return {double(tensorOf(getResult()).getNumElements()) * getKernel()[0] * getKernel()[1],
          operandAndResultBytes(*this)};
}

LogicalResult MaxPool2dOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                    const RunScalars &) {
  forEachWindow(operands[0], results[0].shape, getKernel(), stridesOf(*this),
                [&](int64_t out, int64_t in) { results[0].data[out] = operands[0].data[in]; });
  return success();
}

//===- MaxPool2dGradOp -------------------------------------------------------------------------------------------===//

LogicalResult MaxPool2dGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto grad = tensorOf(op.getGrad()), input = tensorOf(op.getInput());
  auto shape = pooledShape<MaxPool2dGradOp>(location, input, op.getKernelAttr(), stridesOf(op));
  if (failed(shape))
    return failure();
  if (!mayBeEqual(*shape, grad.getShape()))
    return reject<MaxPool2dGradOp>(location, "has gradient ", grad, ", expected the shape of the pooled input, ",
                                   RankedTensorType::get(*shape, input.getElementType()));
  inferred.push_back(input);
  return success();
}

ShardingRule MaxPool2dGradOp::getShardingRule() { return leadingRule(*this, 2, {0, 1}, {0}); }

OpCost MaxPool2dGradOp::getCost() {
  return {double(tensorOf(getGrad()).getNumElements()) * getKernel()[0] * getKernel()[1], operandAndResultBytes(*this)};
}

LogicalResult MaxPool2dGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const RunScalars &) {
  forEachWindow(operands[1], operands[0].shape, getKernel(), stridesOf(*this),
                [&](int64_t out, int64_t in) { results[0].data[in] += operands[0].data[out]; });
  return success();
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addPoolingOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/PoolingOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/PoolingOps.cpp.inc"
