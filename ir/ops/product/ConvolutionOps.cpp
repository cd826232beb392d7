// SPDX-License-Identifier: Apache-2.0
// Two-dimensional convolution and its two gradients: one set of taps (input element, weight element, output element),
// walked three ways.
#include "ir/ops/product/ConvolutionOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/product/BlockedOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ImageRules.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

//===- Shapes ----------------------------------------------------------------------------------------------------===//

/// The size of the output along one dimension of an image; `?` where the input's is.
static int64_t outputSize(int64_t input, int64_t kernel, int64_t stride, int64_t padding) {
  if (ShapedType::isDynamic(input) || ShapedType::isDynamic(kernel))
    return ShapedType::kDynamic;
  return input + 2 * padding < kernel ? 0 : (input + 2 * padding - kernel) / stride + 1;
}

static LogicalResult checkWindow(const Rejection &reject, DenseI64ArrayAttr strides, DenseI64ArrayAttr padding) {
  bool isGood = strides.size() == 2 && padding.size() == 2 && strides[0] > 0 && strides[1] > 0 && padding[0] >= 0 &&
                padding[1] >= 0;
  return isGood ? success()
                : reject("has strides ", strides, " and padding ", padding,
                         ", expected two strides above 0 and two paddings of 0 or more");
}

/// Two tensors of rank 4 whose dimensions `lhsDim` and `rhsDim` have one size.
static LogicalResult checkImages(const Rejection &reject, RankedTensorType lhs, int64_t lhsDim, RankedTensorType rhs,
                                 int64_t rhsDim, StringRef layouts) {
  bool isGood = lhs.getRank() == 4 && rhs.getRank() == 4 && lhs.getElementType() == rhs.getElementType() &&
                !isBool(lhs.getElementType()) && mayBeEqual(lhs.getDimSize(lhsDim), rhs.getDimSize(rhsDim));
  return isGood ? success()
                : reject("has operands ", lhs, " and ", rhs, ", expected ", layouts,
                         " of one element type, floats or integers");
}

FailureOr<Type> Conv2dOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight());
  if (failed(checkImages(reject, input, 1, weight, 1, "[n, c, h, w] and [o, c, kh, kw]")) ||
      failed(checkWindow(reject, op.getStridesAttr(), op.getPaddingAttr())))
    return failure();
  if (op.getBias()) {
    auto bias = tensorOf(op.getBias());
    if (bias.getRank() != 1 || !mayBeEqual(bias.getDimSize(0), weight.getDimSize(0)))
      return reject("has bias ", bias, ", expected one of ", weight.getDimSize(0),
                    " elements, the first size of weight ", weight);
    if (bias.getElementType() != input.getElementType())
      return reject("has bias ", bias, " and input ", input, ", expected one element type");
  }
  SmallVector<int64_t> shape{input.getDimSize(0), weight.getDimSize(0)};
  for (int64_t i = 0; i < 2; ++i) {
    shape.push_back(
        outputSize(input.getDimSize(2 + i), weight.getDimSize(2 + i), op.getStrides()[i], op.getPadding()[i]));
    if (shape.back() == 0)
      return reject("has a kernel of ", weight.getDimSize(2 + i), " over a padded input of ",
                    input.getDimSize(2 + i) + 2 * op.getPadding()[i], " in weight ", weight, " and input ", input,
                    ", expected a kernel that fits");
  }
  return RankedTensorType::get(shape, input.getElementType());
}

/// What both gradients check: that the size they are told gives the size of the gradient that they get.
static LogicalResult checkGradientSize(const Rejection &reject, RankedTensorType grad, ArrayRef<int64_t> input,
                                       ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding) {
  for (int64_t i = 0; i < 2; ++i) {
    int64_t size = outputSize(input[i], kernel[i], strides[i], padding[i]);
    if (!mayBeEqual(size, grad.getDimSize(2 + i)))
      return reject("has gradient ", grad, ", expected ", size, " at dimension ", 2 + i, " for an input of ", input[i],
                    " and a kernel of ", kernel[i]);
  }
  return success();
}

FailureOr<Type> Conv2dInputGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), weight = tensorOf(op.getWeight());
  if (failed(checkImages(reject, grad, 1, weight, 0, "[n, o, h, w] and [o, c, kh, kw]")) ||
      failed(checkWindow(reject, op.getStridesAttr(), op.getPaddingAttr())))
    return failure();
  if (op.getInputSize().size() != 2)
    return reject("has input_size ", op.getInputSizeAttr(), ", expected [h, w]");
  if (failed(checkGradientSize(reject, grad, op.getInputSize(), weight.getShape().drop_front(2), op.getStrides(),
                               op.getPadding())))
    return failure();
  return RankedTensorType::get({grad.getDimSize(0), weight.getDimSize(1), op.getInputSize()[0], op.getInputSize()[1]},
                               grad.getElementType());
}

FailureOr<Type> Conv2dWeightGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), input = tensorOf(op.getInput());
  if (failed(checkImages(reject, grad, 0, input, 0, "[n, o, h, w] and [n, c, h, w]")) ||
      failed(checkWindow(reject, op.getStridesAttr(), op.getPaddingAttr())))
    return failure();
  if (op.getKernelSize().size() != 2)
    return reject("has kernel_size ", op.getKernelSizeAttr(), ", expected [kh, kw]");
  if (failed(checkGradientSize(reject, grad, input.getShape().drop_front(2), op.getKernelSize(), op.getStrides(),
                               op.getPadding())))
    return failure();
  return RankedTensorType::get({grad.getDimSize(1), input.getDimSize(1), op.getKernelSize()[0], op.getKernelSize()[1]},
                               grad.getElementType());
}

//===- Gradient and parts ----------------------------------------------------------------------------------------===//

Gradients Conv2dOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  ArrayRef<int64_t> input = tensorOf(getInput()).getShape(), weight = tensorOf(getWeight()).getShape();
  SmallVector<Value> result{create<Conv2dInputGradOp>(builder, getLoc(), grads[0], getWeight(), input.drop_front(2),
                                                      getStrides(), getPadding()),
                            create<Conv2dWeightGradOp>(builder, getLoc(), grads[0], getInput(), weight.drop_front(2),
                                                       getStrides(), getPadding())};
  const int64_t allButChannels[] = {0, 2, 3};
  if (getBias())
    result.push_back(create<ReduceSumOp>(builder, getLoc(), grads[0], allButChannels, /*keep=*/false));
  return result;
}

/// A convolution is linear in input and weight, and so are its gradients: each derivative is another of the three.
Gradients Conv2dInputGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  ArrayRef<int64_t> kernel = tensorOf(getWeight()).getShape().drop_front(2);
  return SmallVector<Value>{
      create<Conv2dOp>(builder, getLoc(), grads[0], getWeight(), Value(), getStrides(), getPadding()),
      create<Conv2dWeightGradOp>(builder, getLoc(), getGrad(), grads[0], kernel, getStrides(), getPadding())};
}

Gradients Conv2dWeightGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  ArrayRef<int64_t> size = tensorOf(getInput()).getShape().drop_front(2);
  return SmallVector<Value>{
      create<Conv2dOp>(builder, getLoc(), getInput(), grads[0], Value(), getStrides(), getPadding()),
      create<Conv2dInputGradOp>(builder, getLoc(), getGrad(), grads[0], size, getStrides(), getPadding())};
}

SmallVector<Value> Conv2dOp::decompose(OpBuilder &builder) {
  if (!getBias())
    return {};
  Value product = create<Conv2dOp>(builder, getLoc(), getInput(), getWeight(), Value(), getStrides(), getPadding());
  Value bias = buildReshape(builder, getLoc(), getBias(), {tensorOf(getBias()).getDimSize(0), 1, 1});
  return {create<AddOp>(builder, getLoc(), product, bias)};
}

//===- Sharding --------------------------------------------------------------------------------------------------===//

ShardingRule Conv2dOp::getShardingRule() {
  // A partial sum over c would count the bias once on each rank.
  if (getBias())
    return imageRule(*this, {"nc", "oc", "o"}, "no", "no");
  return imageRule(*this, {"nc", "oc"}, "no", "noc");
}
ShardingRule Conv2dInputGradOp::getShardingRule() { return imageRule(*this, {"no", "oc"}, "nc", "noc"); }
ShardingRule Conv2dWeightGradOp::getShardingRule() { return imageRule(*this, {"no", "nc"}, "oc", "noc"); }

//===- Cost ------------------------------------------------------------------------------------------------------===//

OpCost Conv2dOp::getCost() { return tapCost(*this, tensorOf(getResult()), tensorOf(getWeight())); }
OpCost Conv2dInputGradOp::getCost() { return tapCost(*this, tensorOf(getGrad()), tensorOf(getWeight())); }
OpCost Conv2dWeightGradOp::getCost() { return tapCost(*this, tensorOf(getGrad()), tensorOf(getResult())); }

//===- Evaluation ------------------------------------------------------------------------------------------------===//

/// Calls `visit(input, weight, output)` with the places of the three elements of each tap that is not in the padding.
template <typename Visit>
static void forEachTap(ArrayRef<int64_t> input, ArrayRef<int64_t> weight, ArrayRef<int64_t> output,
                       ArrayRef<int64_t> strides, ArrayRef<int64_t> padding, Visit visit) {
  for (int64_t n = 0; n < output[0]; ++n)
    for (int64_t o = 0; o < output[1]; ++o)
      for (int64_t c = 0; c < input[1]; ++c)
        for (int64_t kh = 0; kh < weight[2]; ++kh)
          for (int64_t kw = 0; kw < weight[3]; ++kw)
            for (int64_t oh = 0; oh < output[2]; ++oh)
              for (int64_t ow = 0; ow < output[3]; ++ow) {
                int64_t h = oh * strides[0] + kh - padding[0], w = ow * strides[1] + kw - padding[1];
                if (h >= 0 && h < input[2] && w >= 0 && w < input[3])
                  visit(((n * input[1] + c) * input[2] + h) * input[3] + w,
                        ((o * input[1] + c) * weight[2] + kh) * weight[3] + kw,
                        ((n * output[1] + o) * output[2] + oh) * output[3] + ow);
              }
}

void Conv2dOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0], &weight = operands[1];
  HostTensor &output = results[0];
  forEachTap(input.shape, weight.shape, output.shape, getStrides(), getPadding(),
             [&](int64_t x, int64_t w, int64_t y) { output.data[y] += input.data[x] * weight.data[w]; });
  int64_t imageSize = output.shape[2] * output.shape[3];
  if (operands.size() > 2)
    for (size_t i = 0; i < output.data.size(); ++i)
      output.data[i] += operands[2].data[i / imageSize % output.shape[1]];
}

void Conv2dInputGradOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &grad = operands[0], &weight = operands[1];
  forEachTap(results[0].shape, weight.shape, grad.shape, getStrides(), getPadding(),
             [&](int64_t x, int64_t w, int64_t y) { results[0].data[x] += grad.data[y] * weight.data[w]; });
}

void Conv2dWeightGradOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &grad = operands[0], &input = operands[1];
  forEachTap(input.shape, results[0].shape, grad.shape, getStrides(), getPadding(),
             [&](int64_t x, int64_t w, int64_t y) { results[0].data[w] += grad.data[y] * input.data[x]; });
}

} // namespace dg::ir

#define DG_OPS "ir/ops/product/ConvolutionOps.cpp.inc"
#define DG_ADD_OPS addConvolutionOps
#include "ir/ops/Family.inc"
