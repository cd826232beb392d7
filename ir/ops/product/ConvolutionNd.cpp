// SPDX-License-Identifier: Apache-2.0
// Convolutions over one to three dimensions with groups and dilation, their gradients, which are convolutions too, and
// the transpose, which is one of the gradients. What conv2d can do becomes conv2d.
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/product/ConvolutionOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ImageRules.h"
#include "ir/rules/Windows.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::ir {

//===- Convolutions of any windows -------------------------------------------------------------------------------===//

/// 1 where they are left out.
template <typename Op> static SmallVector<int64_t> stridesOf(Op op, ArrayRef<int64_t> kernel) {
  return op.getStrides().empty() ? SmallVector<int64_t>(kernel.size(), 1) : SmallVector<int64_t>(op.getStrides());
}

/// What the three forms of a convolution share. `size` and `kernel` are the sizes of places and taps, without batch and
/// channels.
template <typename Op> static Windows windowsOf(Op op, ArrayRef<int64_t> kernel) {
  return Windows(kernel, stridesOf(op, kernel), op.getPadding(), op.getDilation());
}
static Windows windowsOf(ConvOp op) { return windowsOf(op, tensorOf(op.getWeight()).getShape().drop_front(2)); }
static Windows windowsOf(ConvInputGradOp op) {
  return windowsOf(op, tensorOf(op.getWeight()).getShape().drop_front(2));
}
static Windows windowsOf(ConvWeightGradOp op) { return windowsOf(op, op.getKernelSize()); }

/// The channels of all groups, which divide `others`, the channels at the other end of the weight; nothing where they
/// do not, or where the product cannot be counted.
static std::optional<int64_t> channelsOf(int64_t perGroup, int64_t groups, int64_t others) {
  int64_t channels = perGroup;
  if (groups < 1 || (!ShapedType::isDynamic(others) && others % groups != 0) ||
      (!ShapedType::isDynamic(perGroup) && llvm::MulOverflow(perGroup, groups, channels)))
    return std::nullopt;
  return channels;
}

/// Checks [n, c, …], [o, c / groups, …] and the window, and gives the type [n, o, …].
template <typename Adaptor>
static FailureOr<RankedTensorType> inferConv(const Rejection &reject, Adaptor op, RankedTensorType input,
                                             RankedTensorType weight) {
  int64_t groups = op.getGroups();
  bool isGood = input.getRank() >= 3 && input.getRank() <= 5 && weight.getRank() == input.getRank() &&
                input.getElementType() == weight.getElementType() && !isBool(input.getElementType());
  std::optional<int64_t> channels =
      isGood ? channelsOf(weight.getDimSize(1), groups, weight.getDimSize(0)) : std::nullopt;
  if (!channels || !mayBeEqual(input.getDimSize(1), *channels))
    return reject("has input ", input, ", weight ", weight, " and ", groups,
                  " groups, expected [n, c, …] with one to three dimensions of places and [o, c / groups, …] of one "
                  "element type, floats or integers, with groups that divide o");
  ArrayRef<int64_t> kernel = weight.getShape().drop_front(2);
  std::string error = findWindowError(kernel, stridesOf(op, kernel), op.getPadding(), op.getDilation());
  if (!error.empty())
    return reject(error);
  Windows windows = windowsOf(op, kernel);
  SmallVector<int64_t> shape{input.getDimSize(0), weight.getDimSize(0)};
  for (size_t dim = 0; dim < windows.rank(); ++dim) {
    shape.push_back(windows.outputSize(dim, input.getDimSize(2 + dim)));
    if (shape.back() == 0)
      return reject("has a kernel over ", windows.extent(dim), " of the padded ",
                    input.getDimSize(2 + dim) + windows.before[dim] + windows.after[dim], " elements of input ", input,
                    ", expected a kernel that fits");
  }
  return RankedTensorType::get(shape, input.getElementType());
}

/// What a gradient checks: that it has the shape of what it is the gradient of.
template <typename Adaptor>
static LogicalResult checkGradient(const Rejection &reject, Adaptor op, RankedTensorType grad, RankedTensorType input,
                                   RankedTensorType weight) {
  auto expected = inferConv(reject, op, input, weight);
  if (failed(expected) || mayBeEqual(expected->getShape(), grad.getShape()))
    return expected;
  return reject("has gradient ", grad, ", expected ", *expected, " for the input ", input);
}

static LogicalResult checkBias(const Rejection &reject, Value bias, int64_t outputs, RankedTensorType input) {
  if (!bias)
    return success();
  if (tensorOf(bias).getRank() != 1 || !mayBeEqual(tensorOf(bias).getDimSize(0), outputs))
    return reject("has bias ", bias.getType(), ", expected one of ", outputs, " elements");
  if (tensorOf(bias).getElementType() != input.getElementType())
    return reject("has bias ", bias.getType(), " and input ", input, ", expected one element type");
  return success();
}

/// A bias is one number for each channel of [n, o, …].
static Value addBias(OpBuilder &builder, Location loc, Value result, Value bias) {
  SmallVector<int64_t> shape(tensorOf(result).getRank() - 1, 1);
  shape[0] = tensorOf(bias).getDimSize(0);
  return create<AddOp>(builder, loc, result, buildReshape(builder, loc, bias, shape));
}

/// True where conv2d and its gradients can do it, with a dimension of 1 in front of a single one.
template <typename Op> static bool isConv2d(Op op) {
  Windows windows = windowsOf(op);
  return windows.rank() <= 2 && windows.isSymmetric() && !windows.isDilated() && op.getGroups() == 1;
}

/// [n, c, l] as [n, c, 1, l]; [n, c, h, w] as it is.
static Value asImages(OpBuilder &builder, Location loc, Value value) {
  ArrayRef<int64_t> shape = tensorOf(value).getShape();
  if (shape.size() == 4)
    return value;
  return buildReshape(builder, loc, value, {shape[0], shape[1], 1, shape[2]});
}
static SmallVector<int64_t> asImageSizes(ArrayRef<int64_t> sizes, int64_t first) {
  SmallVector<int64_t> two(sizes);
  if (two.size() == 1)
    two.insert(two.begin(), first);
  return two;
}

/// The factors of a convolution. With groups their number is one, major in all channels; else outputs and channels are.
static ShardingRule groupedRule(Operation *op, int64_t groups, ArrayRef<StringRef> operands, StringRef result) {
  if (groups == 1)
    return imageRule(op, operands, result, op->getNumOperands() > 2 ? "no" : "noc");
  ShardingRule rule = emptyShardingRule(op);
  int32_t group = rule.addFactor(groups);
  std::optional<int32_t> batch;
  // In the weight [o, c / groups] only the outputs know their group.
  auto place = [&](StringRef layout, RankedTensorType type, auto &dims) {
    if (layout.starts_with("n")) {
      if (!batch)
        batch = rule.addFactor(type.getDimSize(0));
      dims[0].push_back(*batch);
      dims[1].push_back(group);
    } else {
      dims[0].push_back(group);
    }
  };
  for (auto [index, layout] : llvm::enumerate(operands))
    place(layout, tensorOf(op->getOperand(index)), rule.operands[index]);
  place(result, tensorOf(op->getResult(0)), rule.results[0]);
  return rule;
}

/// Calls `visit(input, weight, output)` with the places of the three elements of each tap that is not in the padding.
template <typename Visit>
static void forEachConvTap(const Windows &windows, int64_t groups, ArrayRef<int64_t> input, ArrayRef<int64_t> weight,
                           ArrayRef<int64_t> output, Visit visit) {
  int64_t channels = weight[1], outputs = weight[0] / groups,
          inputPlaces = ShapedType::getNumElements(input.drop_front(2)),
          places = ShapedType::getNumElements(output.drop_front(2));
  for (int64_t n = 0; n < output[0]; ++n)
    for (int64_t o = 0; o < output[1]; ++o)
      for (int64_t c = 0; c < channels; ++c)
        forEachTap(windows, input.drop_front(2), output.drop_front(2), [&](int64_t out, int64_t in, int64_t tap) {
          visit((n * input[1] + o / outputs * channels + c) * inputPlaces + in,
                (o * channels + c) * windows.numTaps() + tap, (n * output[1] + o) * places + out);
        });
}

static void evaluateBias(const HostTensor &bias, HostTensor &output) {
  size_t images = size_t(output.shape[0] * output.shape[1]), places = images ? output.data.size() / images : 1;
  for (size_t i = 0; i < output.data.size(); ++i)
    output.data[i] += bias.data[i / places % bias.data.size()];
}

//===- ConvOp ----------------------------------------------------------------------------------------------------===//

FailureOr<Type> ConvOp::inferType(Adaptor op, const Rejection &reject) {
  auto type = inferConv(reject, op, tensorOf(op.getInput()), tensorOf(op.getWeight()));
  if (failed(type) || failed(checkBias(reject, op.getBias(), type->getDimSize(1), tensorOf(op.getInput()))))
    return failure();
  return *type;
}

Gradients ConvOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  ArrayRef<int64_t> input = tensorOf(getInput()).getShape(), weight = tensorOf(getWeight()).getShape();
  SmallVector<Value> result{create<ConvInputGradOp>(builder, getLoc(), grads[0], getWeight(), input.drop_front(2),
                                                    getStrides(), getPadding(), getDilation(), getGroups()),
                            create<ConvWeightGradOp>(builder, getLoc(), grads[0], getInput(), weight.drop_front(2),
                                                     getStrides(), getPadding(), getDilation(), getGroups())};
  SmallVector<int64_t> allButChannels{0};
  llvm::append_range(allButChannels, llvm::seq<int64_t>(2, int64_t(input.size())));
  if (getBias())
    result.push_back(create<ReduceSumOp>(builder, getLoc(), grads[0], allButChannels, /*keep=*/false));
  return result;
}

SmallVector<Value> ConvOp::decompose(OpBuilder &builder) {
  if (getBias()) {
    Value product = create<ConvOp>(builder, getLoc(), getInput(), getWeight(), Value(), getStrides(), getPadding(),
                                   getDilation(), getGroups());
    return {addBias(builder, getLoc(), product, getBias())};
  }
  if (!isConv2d(*this))
    return {};
  Windows windows = windowsOf(*this);
  Value result = create<Conv2dOp>(builder, getLoc(), asImages(builder, getLoc(), getInput()),
                                  asImages(builder, getLoc(), getWeight()), Value(), asImageSizes(windows.strides, 1),
                                  asImageSizes(windows.before, 0));
  return {buildReshape(builder, getLoc(), result, tensorOf(getResult()).getShape())};
}

ShardingRule ConvOp::getShardingRule() {
  SmallVector<StringRef> operands{"nc", "oc"};
  if (getBias())
    operands.push_back("o");
  return groupedRule(*this, getGroups(), operands, "no");
}
void ConvOp::localize(TypeRange) {
  setGroups(tensorOf(getInput()).getDimSize(1) / tensorOf(getWeight()).getDimSize(1));
}
OpCost ConvOp::getCost() { return tapCost(*this, tensorOf(getResult()), tensorOf(getWeight())); }

void ConvOp::compute(HostOperands operands, HostResults results) {
  HostTensor &output = results[0];
  forEachConvTap(windowsOf(*this), getGroups(), operands[0].shape, operands[1].shape, output.shape,
                 [&](int64_t x, int64_t w, int64_t y) { output.data[y] += operands[0].data[x] * operands[1].data[w]; });
  if (operands.size() > 2)
    evaluateBias(operands[2], output);
}

//===- ConvInputGradOp -------------------------------------------------------------------------------------------===//

FailureOr<Type> ConvInputGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), weight = tensorOf(op.getWeight());
  std::optional<int64_t> channels;
  if (weight.getRank() >= 3)
    channels = channelsOf(weight.getDimSize(1), int64_t(op.getGroups()), weight.getDimSize(0));
  if (grad.getRank() != weight.getRank() || int64_t(op.getInputSize().size()) != grad.getRank() - 2 || !channels)
    return reject("has gradient ", grad, ", weight ", weight, " and input_size ", op.getInputSizeAttr(),
                  ", expected as many sizes as there are dimensions of places, and groups that divide "
                  "the weight's outputs");
  SmallVector<int64_t> shape{grad.getDimSize(0), *channels};
  llvm::append_range(shape, op.getInputSize());
  auto input = RankedTensorType::get(shape, grad.getElementType());
  if (failed(checkGradient(reject, op, grad, input, weight)))
    return failure();
  return input;
}

Gradients ConvInputGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  ArrayRef<int64_t> kernel = tensorOf(getWeight()).getShape().drop_front(2);
  return SmallVector<Value>{create<ConvOp>(builder, getLoc(), grads[0], getWeight(), Value(), getStrides(),
                                           getPadding(), getDilation(), getGroups()),
                            create<ConvWeightGradOp>(builder, getLoc(), getGrad(), grads[0], kernel, getStrides(),
                                                     getPadding(), getDilation(), getGroups())};
}

SmallVector<Value> ConvInputGradOp::decompose(OpBuilder &builder) {
  if (!isConv2d(*this))
    return {};
  Windows windows = windowsOf(*this);
  Value result = create<Conv2dInputGradOp>(builder, getLoc(), asImages(builder, getLoc(), getGrad()),
                                           asImages(builder, getLoc(), getWeight()), asImageSizes(getInputSize(), 1),
                                           asImageSizes(windows.strides, 1), asImageSizes(windows.before, 0));
  return {buildReshape(builder, getLoc(), result, tensorOf(getResult()).getShape())};
}

ShardingRule ConvInputGradOp::getShardingRule() { return groupedRule(*this, getGroups(), {"no", "oc"}, "nc"); }
void ConvInputGradOp::localize(TypeRange resultTypes) {
  setGroups(cast<RankedTensorType>(resultTypes[0]).getDimSize(1) / tensorOf(getWeight()).getDimSize(1));
}
OpCost ConvInputGradOp::getCost() { return tapCost(*this, tensorOf(getGrad()), tensorOf(getWeight())); }

void ConvInputGradOp::compute(HostOperands operands, HostResults results) {
  forEachConvTap(
      windowsOf(*this), getGroups(), results[0].shape, operands[1].shape, operands[0].shape,
      [&](int64_t x, int64_t w, int64_t y) { results[0].data[x] += operands[0].data[y] * operands[1].data[w]; });
}

//===- ConvWeightGradOp ------------------------------------------------------------------------------------------===//

FailureOr<Type> ConvWeightGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), input = tensorOf(op.getInput());
  int64_t groups = op.getGroups();
  if (grad.getRank() != input.getRank() || grad.getRank() < 3 ||
      int64_t(op.getKernelSize().size()) != grad.getRank() - 2 || groups < 1)
    return reject("has gradient ", grad, ", input ", input, " and kernel_size ", op.getKernelSizeAttr(),
                  ", expected as many sizes as there are dimensions of places");
  SmallVector<int64_t> shape{grad.getDimSize(1),
                             input.isDynamicDim(1) ? ShapedType::kDynamic : input.getDimSize(1) / groups};
  llvm::append_range(shape, op.getKernelSize());
  auto weight = RankedTensorType::get(shape, grad.getElementType());
  if (failed(checkGradient(reject, op, grad, input, weight)))
    return failure();
  return weight;
}

Gradients ConvWeightGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  ArrayRef<int64_t> size = tensorOf(getInput()).getShape().drop_front(2);
  return SmallVector<Value>{create<ConvOp>(builder, getLoc(), getInput(), grads[0], Value(), getStrides(), getPadding(),
                                           getDilation(), getGroups()),
                            create<ConvInputGradOp>(builder, getLoc(), getGrad(), grads[0], size, getStrides(),
                                                    getPadding(), getDilation(), getGroups())};
}

SmallVector<Value> ConvWeightGradOp::decompose(OpBuilder &builder) {
  if (!isConv2d(*this))
    return {};
  Windows windows = windowsOf(*this);
  Value result = create<Conv2dWeightGradOp>(builder, getLoc(), asImages(builder, getLoc(), getGrad()),
                                            asImages(builder, getLoc(), getInput()), asImageSizes(getKernelSize(), 1),
                                            asImageSizes(windows.strides, 1), asImageSizes(windows.before, 0));
  return {buildReshape(builder, getLoc(), result, tensorOf(getResult()).getShape())};
}

ShardingRule ConvWeightGradOp::getShardingRule() { return groupedRule(*this, getGroups(), {"no", "nc"}, "oc"); }
void ConvWeightGradOp::localize(TypeRange resultTypes) {
  setGroups(tensorOf(getInput()).getDimSize(1) / cast<RankedTensorType>(resultTypes[0]).getDimSize(1));
}
OpCost ConvWeightGradOp::getCost() { return tapCost(*this, tensorOf(getGrad()), tensorOf(getResult())); }

void ConvWeightGradOp::compute(HostOperands operands, HostResults results) {
  forEachConvTap(
      windowsOf(*this), getGroups(), operands[1].shape, results[0].shape, operands[0].shape,
      [&](int64_t x, int64_t w, int64_t y) { results[0].data[w] += operands[0].data[y] * operands[1].data[x]; });
}

//===- ConvTransposeOp -------------------------------------------------------------------------------------------===//

FailureOr<Type> ConvTransposeOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight());
  int64_t groups = op.getGroups();
  bool isGood = input.getRank() >= 3 && input.getRank() <= 5 && weight.getRank() == input.getRank() &&
                input.getElementType() == weight.getElementType() && !isBool(input.getElementType()) &&
                mayBeEqual(input.getDimSize(1), weight.getDimSize(0));
  std::optional<int64_t> outputs =
      isGood ? channelsOf(weight.getDimSize(1), groups, weight.getDimSize(0)) : std::nullopt;
  if (!outputs)
    return reject("has input ", input, ", weight ", weight, " and ", groups,
                  " groups, expected [n, c, …] with one to three dimensions of places and "
                  "[c, o / groups, …] of one element type, floats or integers, with groups that divide c");
  ArrayRef<int64_t> kernel = weight.getShape().drop_front(2), extra = op.getOutputPadding();
  std::string error = findWindowError(kernel, stridesOf(op, kernel), op.getPadding(), op.getDilation());
  if (!error.empty())
    return reject(error);
  Windows windows = windowsOf(op, kernel);
  if (failed(checkBias(reject, op.getBias(), *outputs, input)))
    return failure();
  SmallVector<int64_t> shape{input.getDimSize(0), *outputs};
  for (size_t dim = 0; dim < windows.rank(); ++dim) {
    int64_t more = extra.empty() ? 0 : extra.size() == windows.rank() ? extra[dim] : -1;
    if (more < 0 || more >= std::max(windows.strides[dim], windows.dilation[dim]))
      return reject("has output_padding ", op.getOutputPaddingAttr(), ", expected ", windows.rank(),
                    " sizes of 0 or more, each below its stride or dilation");
    int64_t size = input.getDimSize(2 + dim);
    if (!ShapedType::isDynamic(size)) {
      int64_t taken = windows.before[dim] + windows.after[dim] - windows.extent(dim) - more;
      size = llvm::MulOverflow(size - 1, windows.strides[dim], size) ? 0 : size - taken;
      if (size < 1)
        return reject("has ", size, " elements left of its result at dimension ", 2 + dim,
                      ", expected at least one, and as many as can be counted: less padding or stride");
    }
    shape.push_back(size);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

SmallVector<Value> ConvTransposeOp::decompose(OpBuilder &builder) {
  Value result = create<ConvInputGradOp>(builder, getLoc(), getInput(), getWeight(),
                                         tensorOf(getResult()).getShape().drop_front(2), getStrides(), getPadding(),
                                         getDilation(), getGroups());
  return {getBias() ? addBias(builder, getLoc(), result, getBias()) : result};
}

void ConvTransposeOp::compute(HostOperands operands, HostResults results) {
  HostTensor &output = results[0];
  Windows windows = windowsOf(*this, tensorOf(getWeight()).getShape().drop_front(2));
  forEachConvTap(windows, getGroups(), output.shape, operands[1].shape, operands[0].shape,
                 [&](int64_t y, int64_t w, int64_t x) { output.data[y] += operands[0].data[x] * operands[1].data[w]; });
  if (operands.size() > 2)
    evaluateBias(operands[2], output);
}

} // namespace dg::ir
