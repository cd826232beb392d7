// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [n, c, …]. The two-dimensional max pool without padding is an op of its own, with a kernel of
// its own; the general one becomes it where it can.
#include "ir/ops/reduction/PoolingOps.h"
#include "ir/dialect/Expression.h"
#include "ir/ops/arrangement/GatherOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/RootOfSum.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"
#include "ir/rules/Windows.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dg::ir {

/// The type of the pooled images; fails where kernel or strides do not fit them.
static FailureOr<Type> inferPool2d(const Rejection &reject, RankedTensorType input, DenseI64ArrayAttr kernel,
                                   ArrayRef<int64_t> strides) {
  if (input.getRank() != 4 || !isa<FloatType>(input.getElementType()))
    return reject("has input ", input, ", expected floats (dg.cast makes them) in [n, c, h, w]");
  if (kernel.size() != 2 || strides.size() != 2 || llvm::any_of(strides, [](int64_t stride) { return stride < 1; }) ||
      llvm::any_of(kernel.asArrayRef(), [](int64_t size) { return size < 1; }))
    return reject("has kernel ", kernel, ", expected two sizes, and two strides or none, all above 0");
  SmallVector<int64_t> shape(input.getShape());
  for (int64_t i = 0; i < 2; ++i) {
    int64_t &size = shape[2 + i];
    if (ShapedType::isDynamic(size))
      continue;
    if (size < kernel[i])
      return reject("has a kernel of ", kernel[i], " over ", size, " elements of input ", input,
                    ", expected a kernel that fits");
    size = (size - kernel[i]) / strides[i] + 1;
  }
  return RankedTensorType::get(shape, input.getElementType());
}

/// What a gradient checks: that pooling the input gives the gradient's type. The answer is the input's.
static FailureOr<Type> checkPooled(const Rejection &reject, RankedTensorType grad, RankedTensorType input,
                                   FailureOr<Type> pooled) {
  if (failed(pooled))
    return failure();
  auto expected = cast<RankedTensorType>(*pooled);
  if (!mayBeEqual(expected.getShape(), grad.getShape()) || expected.getElementType() != grad.getElementType())
    return reject("has gradient ", grad, ", expected the type of the pooled input, ", expected);
  return input;
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

FailureOr<Type> MaxPool2dOp::inferType(Adaptor op, const Rejection &reject) {
  return inferPool2d(reject, tensorOf(op.getInput()), op.getKernelAttr(), stridesOf(op));
}

Gradients MaxPool2dOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{
      create<MaxPool2dGradOp>(builder, getLoc(), grads[0], getInput(), getKernelAttr(), getStridesAttr())};
}

ShardingRule MaxPool2dOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }

OpCost MaxPool2dOp::getCost() {
  return {double(tensorOf(getResult()).getNumElements()) * getKernel()[0] * getKernel()[1],
          operandAndResultBytes(*this)};
}

void MaxPool2dOp::compute(HostOperands operands, HostResults results) {
  forEachWindow(operands[0], results[0].shape, getKernel(), stridesOf(*this),
                [&](int64_t out, int64_t in) { results[0].data[out] = operands[0].data[in]; });
}

//===- MaxPool2dGradOp -------------------------------------------------------------------------------------------===//

FailureOr<Type> MaxPool2dGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  return checkPooled(reject, tensorOf(op.getGrad()), input,
                     inferPool2d(reject, input, op.getKernelAttr(), stridesOf(op)));
}

/// The elements of `value` at the places that max_pool_indices found: what max_pool does, with another's choice. It is
/// the derivative of max_pool's gradient, which is linear in what it hands out and does not change with the input.
static Value buildPicked(OpBuilder &builder, Location loc, Value value, Value indices) {
  auto flat = [&](Value image) {
    ArrayRef<int64_t> shape = tensorOf(image).getShape();
    return buildReshape(builder, loc, image, {shape[0], shape[1], ShapedType::getNumElements(shape.drop_front(2))});
  };
  Value picked = create<GatherElementsOp>(builder, loc, flat(value), flat(indices), builder.getI64IntegerAttr(2));
  return buildReshape(builder, loc, picked, tensorOf(indices).getShape());
}

Gradients MaxPool2dGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto none = builder.getDenseI64ArrayAttr({});
  Value indices = create<MaxPoolIndicesOp>(builder, getLoc(), getInput(), getKernelAttr(), getStridesAttr(), none, none,
                                           UnitAttr());
  return SmallVector<Value>{buildPicked(builder, getLoc(), grads[0], indices),
                            buildZeros(builder, getLoc(), getInput())};
}

ShardingRule MaxPool2dGradOp::getShardingRule() { return leadingRule(*this, 2, {0, 1}, {0}); }

OpCost MaxPool2dGradOp::getCost() {
  return {double(tensorOf(getGrad()).getNumElements()) * getKernel()[0] * getKernel()[1], operandAndResultBytes(*this)};
}

void MaxPool2dGradOp::compute(HostOperands operands, HostResults results) {
  forEachWindow(operands[1], operands[0].shape, getKernel(), stridesOf(*this),
                [&](int64_t out, int64_t in) { results[0].data[in] += operands[0].data[out]; });
}

//===- Pools of any windows --------------------------------------------------------------------------------------===//

template <typename Op> static Windows windowsOf(Op op) {
  return Windows(op.getKernel(), stridesOf(op), op.getPadding(), op.getDilation(), op.getCeil());
}

/// The type of the pooled input [n, c, …]; fails where the windows do not fit it.
template <typename Adaptor>
static FailureOr<Type> inferPool(const Rejection &reject, Adaptor op, RankedTensorType input) {
  std::string error = findWindowError(op.getKernel(), stridesOf(op), op.getPadding(), op.getDilation());
  if (!error.empty())
    return reject(error);
  Windows windows = windowsOf(op);
  if (input.getRank() != int64_t(windows.rank()) + 2 || !isa<FloatType>(input.getElementType()))
    return reject("has input ", input, ", expected floats (dg.cast makes them) in [n, c] and ", windows.rank(),
                  " more dimensions, as the kernel has sizes");
  SmallVector<int64_t> shape(input.getShape());
  for (size_t dim = 0; dim < windows.rank(); ++dim) {
    int64_t &size = shape[2 + dim];
    if (std::max(windows.before[dim], windows.after[dim]) >= windows.extent(dim))
      return reject("has padding ", std::max(windows.before[dim], windows.after[dim]), " for windows of ",
                    windows.extent(dim), ", expected less: a window must reach the input");
    int64_t windowed = windows.outputSize(dim, size);
    if (windowed == 0)
      return reject("has a kernel over ", windows.extent(dim), " of the ", size, " elements of input ", input,
                    ", expected a kernel that fits");
    size = windowed;
  }
  return RankedTensorType::get(shape, input.getElementType());
}

template <typename Op> static OpCost poolCost(Op op, Value pooled) {
  return {double(tensorOf(pooled).getNumElements()) * double(windowsOf(op).numTaps()), operandAndResultBytes(op)};
}

/// Calls `visit(output, input)` for each tap inside, over all images; both count elements of the whole tensors.
template <typename Visit>
static void forEachPoolTap(const Windows &windows, ArrayRef<int64_t> input, ArrayRef<int64_t> output, Visit visit) {
  int64_t places = ShapedType::getNumElements(input.drop_front(2)),
          windowed = ShapedType::getNumElements(output.drop_front(2));
  for (int64_t image = 0; image < input[0] * input[1]; ++image)
    forEachTap(windows, input.drop_front(2), output.drop_front(2),
               [&](int64_t out, int64_t in, int64_t) { visit(image * windowed + out, image * places + in); });
}

/// The place of the first largest element of each window in the whole input; -1 for a window that lies in the padding.
static std::vector<int64_t> findLargest(const Windows &windows, const HostTensor &input, ArrayRef<int64_t> output) {
  std::vector<int64_t> places(size_t(ShapedType::getNumElements(output)), -1);
  forEachPoolTap(windows, input.shape, output, [&](int64_t out, int64_t in) {
    int64_t &place = places[size_t(out)];
    if (place < 0 || input.data[in] > input.data[place])
      place = in;
  });
  return places;
}

//===- MaxPoolOp -------------------------------------------------------------------------------------------------===//

FailureOr<Type> MaxPoolOp::inferType(Adaptor op, const Rejection &reject) {
  return inferPool(reject, op, tensorOf(op.getInput()));
}

Gradients MaxPoolOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<MaxPoolGradOp>(builder, getLoc(), grads[0], getInput(), getKernelAttr(),
                                                  getStridesAttr(), getPaddingAttr(), getDilationAttr(),
                                                  getCeilAttr())};
}

SmallVector<Value> MaxPoolOp::decompose(OpBuilder &builder) {
  Windows windows = windowsOf(*this);
  if (windows.rank() != 2 || windows.isPadded() || windows.isDilated() || getCeil())
    return {};
  return {create<MaxPool2dOp>(builder, getLoc(), getInput(), getKernelAttr(), getStridesAttr())};
}

ShardingRule MaxPoolOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost MaxPoolOp::getCost() { return poolCost(*this, getResult()); }

void MaxPoolOp::compute(HostOperands operands, HostResults results) {
  for (auto [out, place] :
       llvm::zip_equal(results[0].data, findLargest(windowsOf(*this), operands[0], results[0].shape)))
    out = place < 0 ? -std::numeric_limits<double>::infinity() : operands[0].data[place];
}

//===- MaxPoolIndicesOp ------------------------------------------------------------------------------------------===//

FailureOr<Type> MaxPoolIndicesOp::inferType(Adaptor op, const Rejection &reject) {
  FailureOr<Type> pooled = inferPool(reject, op, tensorOf(op.getInput()));
  if (failed(pooled))
    return failure();
  return cast<RankedTensorType>(*pooled).clone(IntegerType::get(pooled->getContext(), 64));
}

ShardingRule MaxPoolIndicesOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost MaxPoolIndicesOp::getCost() { return poolCost(*this, getResult()); }

void MaxPoolIndicesOp::compute(HostOperands operands, HostResults results) {
  int64_t places = operands[0].numElements() / std::max<int64_t>(1, operands[0].shape[0] * operands[0].shape[1]);
  for (auto [out, place] :
       llvm::zip_equal(results[0].data, findLargest(windowsOf(*this), operands[0], results[0].shape)))
    out = place < 0 ? -1 : double(place % places);
}

//===- MaxPoolGradOp ---------------------------------------------------------------------------------------------===//

FailureOr<Type> MaxPoolGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  return checkPooled(reject, tensorOf(op.getGrad()), input, inferPool(reject, op, input));
}

Gradients MaxPoolGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value indices = create<MaxPoolIndicesOp>(builder, getLoc(), getInput(), getKernelAttr(), getStridesAttr(),
                                           getPaddingAttr(), getDilationAttr(), getCeilAttr());
  return SmallVector<Value>{buildPicked(builder, getLoc(), grads[0], indices),
                            buildZeros(builder, getLoc(), getInput())};
}

ShardingRule MaxPoolGradOp::getShardingRule() { return leadingRule(*this, 2, {0, 1}, {0}); }
OpCost MaxPoolGradOp::getCost() { return poolCost(*this, getGrad()); }

void MaxPoolGradOp::compute(HostOperands operands, HostResults results) {
  for (auto [grad, place] :
       llvm::zip_equal(operands[0].data, findLargest(windowsOf(*this), operands[1], operands[0].shape)))
    if (place >= 0)
      results[0].data[place] += grad;
}

//===- AvgPoolOp and AvgPoolGradOp -------------------------------------------------------------------------------===//

/// By how much the elements of each window are divided, for the places of one image.
template <typename Op>
static std::vector<double> divisorsOf(Op op, ArrayRef<int64_t> inputSizes, ArrayRef<int64_t> outputSizes) {
  Windows w = windowsOf(op).inThreeDimensions();
  auto in = inThreeDimensions(inputSizes), out = inThreeDimensions(outputSizes);
  SmallVector<SmallVector<double>, 3> counts(3);
  for (size_t dim = 0; dim < 3; ++dim)
    for (int64_t place = 0; place < out[dim]; ++place) {
      int64_t from = op.getCountIncludePad() ? -w.before[dim] : 0,
              to = in[dim] + (op.getCountIncludePad() ? w.after[dim] : 0), count = 0;
      for (int64_t tap = 0; tap < w.kernel[dim]; ++tap)
        count += w.position(dim, place, tap) >= from && w.position(dim, place, tap) < to;
      counts[dim].push_back(op.getSum() ? 1 : double(std::max<int64_t>(count, 1)));
    }
  std::vector<double> all;
  for (double a : counts[0])
    for (double b : counts[1])
      for (double c : counts[2])
        all.push_back(a * b * c);
  return all;
}

FailureOr<Type> AvgPoolOp::inferType(Adaptor op, const Rejection &reject) {
  return inferPool(reject, op, tensorOf(op.getInput()));
}

Gradients AvgPoolOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto sizes = builder.getDenseI64ArrayAttr(tensorOf(getInput()).getShape().drop_front(2));
  return SmallVector<Value>{create<AvgPoolGradOp>(builder, getLoc(), grads[0], sizes, getKernelAttr(), getStridesAttr(),
                                                  getPaddingAttr(), getDilationAttr(), getCeilAttr(),
                                                  getCountIncludePadAttr(), getSumAttr())};
}

ShardingRule AvgPoolOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost AvgPoolOp::getCost() { return poolCost(*this, getResult()); }

void AvgPoolOp::compute(HostOperands operands, HostResults results) {
  ArrayRef<int64_t> in = operands[0].shape, out = results[0].shape;
  std::vector<double> divisors = divisorsOf(*this, in.drop_front(2), out.drop_front(2));
  forEachPoolTap(windowsOf(*this), in, out, [&](int64_t to, int64_t from) {
    results[0].data[to] += operands[0].data[from] / divisors[size_t(to) % divisors.size()];
  });
}

FailureOr<Type> AvgPoolGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad());
  if (grad.getRank() != int64_t(op.getKernel().size()) + 2 || op.getInputSize().size() != op.getKernel().size() ||
      llvm::any_of(op.getInputSize(), [](int64_t size) { return size < 1; }))
    return reject("has gradient ", grad, " and input_size ", op.getInputSizeAttr(),
                  ", expected [n, c] and as many sizes above 0 as the kernel has");
  SmallVector<int64_t> shape{grad.getDimSize(0), grad.getDimSize(1)};
  llvm::append_range(shape, op.getInputSize());
  auto input = RankedTensorType::get(shape, grad.getElementType());
  return checkPooled(reject, grad, input, inferPool(reject, op, input));
}

/// Both are linear, and each is the other's transpose.
Gradients AvgPoolGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<AvgPoolOp>(builder, getLoc(), grads[0], getKernelAttr(), getStridesAttr(),
                                              getPaddingAttr(), getDilationAttr(), getCeilAttr(),
                                              getCountIncludePadAttr(), getSumAttr())};
}

ShardingRule AvgPoolGradOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost AvgPoolGradOp::getCost() { return poolCost(*this, getGrad()); }

void AvgPoolGradOp::compute(HostOperands operands, HostResults results) {
  ArrayRef<int64_t> in = results[0].shape, out = operands[0].shape;
  std::vector<double> divisors = divisorsOf(*this, in.drop_front(2), out.drop_front(2));
  forEachPoolTap(windowsOf(*this), in, out, [&](int64_t from, int64_t to) {
    results[0].data[to] += operands[0].data[from] / divisors[size_t(from) % divisors.size()];
  });
}

//===- LpPoolOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> LpPoolOp::inferType(Adaptor op, const Rejection &reject) {
  if (int64_t(op.getP()) < 1)
    return reject("has p = ", int64_t(op.getP()), ", expected at least 1");
  return inferPool(reject, op, tensorOf(op.getInput()));
}

/// A sum of powers, and its root. The largest element cannot be divided out first, so p stays what a float can hold.
SmallVector<Value> LpPoolOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  double p = double(getP());
  Expression powers = p == 1 ? x.apply<AbsOp>() : p == 2 ? x * x : x.apply<AbsOp>().with<PowOp>(x.number(p));
  Expression sum(builder, getLoc(),
                 create<AvgPoolOp>(builder, getLoc(), powers.value(), getKernelAttr(), getStridesAttr(),
                                   getPaddingAttr(), getDilationAttr(), getCeilAttr(), UnitAttr(),
                                   builder.getUnitAttr()));
  return {p == 1 ? sum : rootOfSum(builder, getLoc(), sum, p)};
}

void LpPoolOp::compute(HostOperands operands, HostResults results) {
  double p = double(getP());
  forEachPoolTap(windowsOf(*this), operands[0].shape, results[0].shape, [&](int64_t to, int64_t from) {
    results[0].data[size_t(to)] += std::pow(std::abs(operands[0].data[size_t(from)]), p);
  });
  for (double &sum : results[0].data)
    sum = std::pow(sum, 1 / p);
}

//===- Global pools ----------------------------------------------------------------------------------------------===//

static FailureOr<Type> inferGlobalPool(const Rejection &reject, RankedTensorType input) {
  if (input.getRank() < 3 || !isa<FloatType>(input.getElementType()) ||
      llvm::is_contained(input.getShape().drop_front(2), 0))
    return reject("has input ", input, ", expected floats (dg.cast makes them) in [n, c, …] with at least one place");
  SmallVector<int64_t> shape(input.getRank(), 1);
  shape[0] = input.getDimSize(0), shape[1] = input.getDimSize(1);
  return RankedTensorType::get(shape, input.getElementType());
}

FailureOr<Type> GlobalAvgPoolOp::inferType(Adaptor op, const Rejection &reject) {
  return inferGlobalPool(reject, tensorOf(op.getInput()));
}

SmallVector<Value> GlobalAvgPoolOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(2, input.getRank()));
  Value sum = create<ReduceSumOp>(builder, getLoc(), getInput(), dims, /*keep=*/true);
  int64_t images = std::max<int64_t>(1, input.getDimSize(0) * input.getDimSize(1));
  return {buildScale(builder, getLoc(), sum, double(images) / double(std::max<int64_t>(1, input.getNumElements())))};
}

void GlobalAvgPoolOp::compute(HostOperands operands, HostResults results) {
  size_t images = results[0].data.size(), places = images ? operands[0].data.size() / images : 0;
  for (size_t i = 0; i < operands[0].data.size(); ++i)
    results[0].data[i / places] += operands[0].data[i] / double(places);
}

FailureOr<Type> GlobalMaxPoolOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  int64_t places = 1;
  for (int64_t size : input.getShape().drop_front(std::min<int64_t>(2, input.getRank())))
    if (!ShapedType::isDynamic(size) && (llvm::MulOverflow(places, size, places) || places > maxWindowSize))
      return reject("has input ", input, ", expected at most ", maxWindowSize,
                    " places: one window is over all of them");
  return inferGlobalPool(reject, input);
}

/// One window over all places, which lie in a row.
SmallVector<Value> GlobalMaxPoolOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t places = ShapedType::getNumElements(input.getShape().drop_front(2));
  Value row = buildReshape(builder, getLoc(), getInput(), {input.getDimSize(0), input.getDimSize(1), places});
  auto kernel = builder.getDenseI64ArrayAttr({places}), none = builder.getDenseI64ArrayAttr({});
  Value largest = create<MaxPoolOp>(builder, getLoc(), row, kernel, DenseI64ArrayAttr(), none, none, UnitAttr());
  return {buildReshape(builder, getLoc(), largest, tensorOf(getResult()).getShape())};
}

void GlobalMaxPoolOp::compute(HostOperands operands, HostResults results) {
  size_t images = results[0].data.size(), places = images ? operands[0].data.size() / images : 0;
  for (size_t image = 0; image < images && places; ++image)
    results[0].data[image] = *std::max_element(operands[0].data.begin() + long(image * places),
                                               operands[0].data.begin() + long((image + 1) * places));
}

} // namespace dg::ir

#define DG_OPS "ir/ops/reduction/PoolingOps.cpp.inc"
#define DG_ADD_OPS addPoolingOps
#include "ir/ops/Family.inc"
