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

/// The shape of the pooled images; fails where kernel or strides do not fit them.
template <typename Op>
static FailureOr<SmallVector<int64_t>> pooledShape(std::optional<Location> location, RankedTensorType input,
                                                   DenseI64ArrayAttr kernel, ArrayRef<int64_t> strides) {
  if (input.getRank() != 4 || !isa<FloatType>(input.getElementType()))
    return reject<Op>(location, "has input ", input, ", expected floats (dg.cast makes them) in [n, c, h, w]");
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
  if (!mayBeEqual(*shape, grad.getShape()) || input.getElementType() != grad.getElementType())
    return reject<MaxPool2dGradOp>(location, "has gradient ", grad, ", expected the type of the pooled input, ",
                                   RankedTensorType::get(*shape, input.getElementType()));
  inferred.push_back(input);
  return success();
}

/// The elements of `value` at the places that max_pool_indices found: what max_pool does, with another's choice. It is
/// the derivative of max_pool's gradient, which is linear in what it hands out and does not change with the input.
static Value buildPicked(OpBuilder &builder, Location loc, Value value, Value indices) {
  auto flat = [&](Value image) {
    ArrayRef<int64_t> shape = tensorOf(image).getShape();
    int64_t places = 1;
    for (int64_t size : shape.drop_front(2))
      places *= size;
    return buildReshape(builder, loc, image, {shape[0], shape[1], places});
  };
  Value picked =
      builder.create<GatherElementsOp>(loc, flat(value), flat(indices), builder.getI64IntegerAttr(2), PlaceAttr());
  return buildReshape(builder, loc, picked, tensorOf(indices).getShape());
}

FailureOr<SmallVector<Value>> MaxPool2dGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto none = builder.getDenseI64ArrayAttr({});
  Value indices = builder.create<MaxPoolIndicesOp>(getLoc(), getInput(), getKernelAttr(), getStridesAttr(), none, none,
                                                   UnitAttr(), PlaceAttr());
  return SmallVector<Value>{buildPicked(builder, getLoc(), grads[0], indices),
                            buildZeros(builder, getLoc(), getInput())};
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

//===- Pools of any windows --------------------------------------------------------------------------------------===//

template <typename Op> static Windows windowsOf(Op op) {
  return Windows(op.getKernel(), stridesOf(op), op.getPadding(), op.getDilation(), op.getCeil());
}

/// The type of the pooled input [n, c, …]; fails where the windows do not fit it.
template <typename Op, typename Adaptor>
static FailureOr<RankedTensorType> inferPool(std::optional<Location> location, Adaptor op, RankedTensorType input) {
  std::string error = findWindowError(op.getKernel(), stridesOf(op), op.getPadding(), op.getDilation());
  if (!error.empty())
    return reject<Op>(location, error);
  Windows windows = windowsOf(op);
  if (input.getRank() != int64_t(windows.rank()) + 2 || !isa<FloatType>(input.getElementType()))
    return reject<Op>(location, "has input ", input, ", expected floats (dg.cast makes them) in [n, c] and ",
                      windows.rank(), " more dimensions, as the kernel has sizes");
  SmallVector<int64_t> shape(input.getShape());
  for (size_t dim = 0; dim < windows.rank(); ++dim) {
    int64_t &size = shape[2 + dim];
    if (std::max(windows.before[dim], windows.after[dim]) >= windows.extent(dim))
      return reject<Op>(location, "has padding ", std::max(windows.before[dim], windows.after[dim]), " for windows of ",
                        windows.extent(dim), ", expected less: a window must reach the input");
    int64_t windowed = windows.outputSize(dim, size);
    if (windowed == 0)
      return reject<Op>(location, "has a kernel over ", windows.extent(dim), " of the ", size, " elements of input ",
                        input, ", expected a kernel that fits");
    size = windowed;
  }
  return RankedTensorType::get(shape, input.getElementType());
}

/// What a gradient checks: that pooling the input gives the gradient's shape.
template <typename Op, typename Adaptor>
static LogicalResult inferPoolGrad(std::optional<Location> location, Adaptor op, RankedTensorType grad,
                                   RankedTensorType input, SmallVectorImpl<Type> &inferred) {
  auto pooled = inferPool<Op>(location, op, input);
  if (failed(pooled))
    return failure();
  if (!mayBeEqual(pooled->getShape(), grad.getShape()) || pooled->getElementType() != grad.getElementType())
    return reject<Op>(location, "has gradient ", grad, ", expected the type of the pooled input, ", *pooled);
  inferred.push_back(input);
  return success();
}

template <typename Op> static OpCost poolCost(Op op, Value pooled) {
  return {double(tensorOf(pooled).getNumElements()) * double(windowsOf(op).numTaps()), operandAndResultBytes(op)};
}

/// Calls `visit(output, input)` for each tap inside, over all images; both count elements of the whole tensors.
template <typename Visit>
static void forEachPoolTap(const Windows &windows, ArrayRef<int64_t> input, ArrayRef<int64_t> output, Visit visit) {
  auto places = [](ArrayRef<int64_t> shape) {
    int64_t count = 1;
    for (int64_t size : shape.drop_front(2))
      count *= size;
    return count;
  };
  for (int64_t image = 0; image < input[0] * input[1]; ++image)
    forEachTap(windows, input.drop_front(2), output.drop_front(2), [&](int64_t out, int64_t in, int64_t) {
      visit(image * places(output) + out, image * places(input) + in);
    });
}

/// The place of the first largest element of each window in the whole input; -1 for a window that lies in the padding.
static std::vector<int64_t> findLargest(const Windows &windows, const HostTensor &input, ArrayRef<int64_t> output) {
  int64_t count = 1;
  for (int64_t size : output)
    count *= size;
  std::vector<int64_t> places(size_t(count), -1);
  forEachPoolTap(windows, input.shape, output, [&](int64_t out, int64_t in) {
    int64_t &place = places[size_t(out)];
    if (place < 0 || input.data[in] > input.data[place])
      place = in;
  });
  return places;
}

//===- MaxPoolOp -------------------------------------------------------------------------------------------------===//

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                          SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto type = inferPool<MaxPoolOp>(location, op, tensorOf(op.getInput()));
  if (failed(type))
    return failure();
  inferred.push_back(*type);
  return success();
}

FailureOr<SmallVector<Value>> MaxPoolOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<MaxPoolGradOp>(getLoc(), grads[0], getInput(), getKernelAttr(),
                                                          getStridesAttr(), getPaddingAttr(), getDilationAttr(),
                                                          getCeilAttr(), PlaceAttr())};
}

SmallVector<Value> MaxPoolOp::decompose(OpBuilder &builder) {
  Windows windows = windowsOf(*this);
  if (windows.rank() != 2 || windows.isPadded() || windows.isDilated() || getCeil())
    return {};
  return {builder.create<MaxPool2dOp>(getLoc(), getInput(), getKernelAttr(), getStridesAttr(), PlaceAttr())};
}

ShardingRule MaxPoolOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost MaxPoolOp::getCost() { return poolCost(*this, getResult()); }

LogicalResult MaxPoolOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const RunScalars &) {
  for (auto [out, place] :
       llvm::zip_equal(results[0].data, findLargest(windowsOf(*this), operands[0], results[0].shape)))
    out = place < 0 ? -std::numeric_limits<double>::infinity() : operands[0].data[place];
  return success();
}

//===- MaxPoolIndicesOp ------------------------------------------------------------------------------------------===//

LogicalResult MaxPoolIndicesOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                 SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto type = inferPool<MaxPoolIndicesOp>(location, op, tensorOf(op.getInput()));
  if (failed(type))
    return failure();
  inferred.push_back(RankedTensorType::get(type->getShape(), IntegerType::get(context, 64)));
  return success();
}

ShardingRule MaxPoolIndicesOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost MaxPoolIndicesOp::getCost() { return poolCost(*this, getResult()); }

LogicalResult MaxPoolIndicesOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                         const RunScalars &) {
  int64_t places = operands[0].numElements() / std::max<int64_t>(1, operands[0].shape[0] * operands[0].shape[1]);
  for (auto [out, place] :
       llvm::zip_equal(results[0].data, findLargest(windowsOf(*this), operands[0], results[0].shape)))
    out = place < 0 ? -1 : double(place % places);
  return success();
}

//===- MaxPoolGradOp ---------------------------------------------------------------------------------------------===//

LogicalResult MaxPoolGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                              SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  return inferPoolGrad<MaxPoolGradOp>(location, op, tensorOf(op.getGrad()), tensorOf(op.getInput()), inferred);
}

FailureOr<SmallVector<Value>> MaxPoolGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value indices = builder.create<MaxPoolIndicesOp>(getLoc(), getInput(), getKernelAttr(), getStridesAttr(),
                                                   getPaddingAttr(), getDilationAttr(), getCeilAttr(), PlaceAttr());
  return SmallVector<Value>{buildPicked(builder, getLoc(), grads[0], indices),
                            buildZeros(builder, getLoc(), getInput())};
}

ShardingRule MaxPoolGradOp::getShardingRule() { return leadingRule(*this, 2, {0, 1}, {0}); }
OpCost MaxPoolGradOp::getCost() { return poolCost(*this, getGrad()); }

LogicalResult MaxPoolGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const RunScalars &) {
  for (auto [grad, place] :
       llvm::zip_equal(operands[0].data, findLargest(windowsOf(*this), operands[1], operands[0].shape)))
    if (place >= 0)
      results[0].data[place] += grad;
  return success();
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

LogicalResult AvgPoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                          SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto type = inferPool<AvgPoolOp>(location, op, tensorOf(op.getInput()));
  if (failed(type))
    return failure();
  inferred.push_back(*type);
  return success();
}

FailureOr<SmallVector<Value>> AvgPoolOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto sizes = builder.getDenseI64ArrayAttr(tensorOf(getInput()).getShape().drop_front(2));
  return SmallVector<Value>{builder.create<AvgPoolGradOp>(getLoc(), grads[0], sizes, getKernelAttr(), getStridesAttr(),
                                                          getPaddingAttr(), getDilationAttr(), getCeilAttr(),
                                                          getCountIncludePadAttr(), getSumAttr(), PlaceAttr())};
}

ShardingRule AvgPoolOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost AvgPoolOp::getCost() { return poolCost(*this, getResult()); }

LogicalResult AvgPoolOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const RunScalars &) {
  ArrayRef<int64_t> in = operands[0].shape, out = results[0].shape;
  std::vector<double> divisors = divisorsOf(*this, in.drop_front(2), out.drop_front(2));
  forEachPoolTap(windowsOf(*this), in, out, [&](int64_t to, int64_t from) {
    results[0].data[to] += operands[0].data[from] / divisors[size_t(to) % divisors.size()];
  });
  return success();
}

LogicalResult AvgPoolGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                              SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto grad = tensorOf(op.getGrad());
  if (grad.getRank() != int64_t(op.getKernel().size()) + 2 || op.getInputSize().size() != op.getKernel().size() ||
      llvm::any_of(op.getInputSize(), [](int64_t size) { return size < 1; }))
    return reject<AvgPoolGradOp>(location, "has gradient ", grad, " and input_size ", op.getInputSizeAttr(),
                                 ", expected [n, c] and as many sizes above 0 as the kernel has");
  SmallVector<int64_t> shape{grad.getDimSize(0), grad.getDimSize(1)};
  llvm::append_range(shape, op.getInputSize());
  return inferPoolGrad<AvgPoolGradOp>(location, op, grad, RankedTensorType::get(shape, grad.getElementType()),
                                      inferred);
}

/// Both are linear, and each is the other's transpose.
FailureOr<SmallVector<Value>> AvgPoolGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<AvgPoolOp>(getLoc(), grads[0], getKernelAttr(), getStridesAttr(),
                                                      getPaddingAttr(), getDilationAttr(), getCeilAttr(),
                                                      getCountIncludePadAttr(), getSumAttr(), PlaceAttr())};
}

ShardingRule AvgPoolGradOp::getShardingRule() { return leadingRule(*this, 2, {0}, {0}); }
OpCost AvgPoolGradOp::getCost() { return poolCost(*this, getGrad()); }

LogicalResult AvgPoolGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const RunScalars &) {
  ArrayRef<int64_t> in = results[0].shape, out = operands[0].shape;
  std::vector<double> divisors = divisorsOf(*this, in.drop_front(2), out.drop_front(2));
  forEachPoolTap(windowsOf(*this), in, out, [&](int64_t from, int64_t to) {
    results[0].data[to] += operands[0].data[from] / divisors[size_t(from) % divisors.size()];
  });
  return success();
}

//===- LpPoolOp --------------------------------------------------------------------------------------------------===//

LogicalResult LpPoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                         SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  if (int64_t(op.getP()) < 1)
    return reject<LpPoolOp>(location, "has p = ", int64_t(op.getP()), ", expected at least 1");
  auto type = inferPool<LpPoolOp>(location, op, tensorOf(op.getInput()));
  if (failed(type))
    return failure();
  inferred.push_back(*type);
  return success();
}

/// A sum of powers, and its root. The largest element cannot be divided out first, so p stays what a float can hold.
SmallVector<Value> LpPoolOp::decompose(OpBuilder &builder) {
  Expression x(builder, getLoc(), getInput());
  double p = double(getP());
  Expression powers = p == 1 ? x.apply<AbsOp>() : p == 2 ? x * x : x.apply<AbsOp>().with<PowOp>(x.number(p));
  Expression sum(builder, getLoc(),
                 builder.create<AvgPoolOp>(getLoc(), powers.value(), getKernelAttr(), getStridesAttr(),
                                           getPaddingAttr(), getDilationAttr(), getCeilAttr(), UnitAttr(),
                                           builder.getUnitAttr(), PlaceAttr()));
  return {p == 1 ? sum : rootOfSum(builder, getLoc(), sum, p)};
}

LogicalResult LpPoolOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                 const RunScalars &) {
  double p = double(getP());
  forEachPoolTap(windowsOf(*this), operands[0].shape, results[0].shape, [&](int64_t to, int64_t from) {
    results[0].data[size_t(to)] += std::pow(std::abs(operands[0].data[size_t(from)]), p);
  });
  for (double &sum : results[0].data)
    sum = std::pow(sum, 1 / p);
  return success();
}

//===- Global pools ----------------------------------------------------------------------------------------------===//

template <typename Op>
static LogicalResult inferGlobalPool(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                     SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, operands, 1, inferred))
    return success();
  auto input = tensorOf(operands[0]);
  if (input.getRank() < 3 || !isa<FloatType>(input.getElementType()) ||
      llvm::is_contained(input.getShape().drop_front(2), 0))
    return reject<Op>(location, "has input ", input,
                      ", expected floats (dg.cast makes them) in [n, c, …] with at least one place");
  SmallVector<int64_t> shape(input.getRank(), 1);
  shape[0] = input.getDimSize(0), shape[1] = input.getDimSize(1);
  inferred.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

LogicalResult GlobalAvgPoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                SmallVectorImpl<Type> &inferred) {
  return inferGlobalPool<GlobalAvgPoolOp>(context, location, op.getOperands(), inferred);
}

SmallVector<Value> GlobalAvgPoolOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(2, input.getRank()));
  Value sum = builder.create<ReduceSumOp>(getLoc(), getInput(), dims, /*keep=*/true, PlaceAttr());
  int64_t images = std::max<int64_t>(1, input.getDimSize(0) * input.getDimSize(1));
  return {buildScale(builder, getLoc(), sum, double(images) / double(std::max<int64_t>(1, input.getNumElements())))};
}

LogicalResult GlobalAvgPoolOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const RunScalars &) {
  size_t images = results[0].data.size(), places = images ? operands[0].data.size() / images : 0;
  for (size_t i = 0; i < operands[0].data.size(); ++i)
    results[0].data[i / places] += operands[0].data[i] / double(places);
  return success();
}

LogicalResult GlobalMaxPoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                SmallVectorImpl<Type> &inferred) {
  if (auto input = dyn_cast<RankedTensorType>(op.getInput().getType()); input && input.getRank() >= 3) {
    int64_t places = 1;
    for (int64_t size : input.getShape().drop_front(2))
      if (!ShapedType::isDynamic(size) && (llvm::MulOverflow(places, size, places) || places > maxWindowSize))
        return reject<GlobalMaxPoolOp>(location, "has input ", input, ", expected at most ", maxWindowSize,
                                       " places: one window is over all of them");
  }
  return inferGlobalPool<GlobalMaxPoolOp>(context, location, op.getOperands(), inferred);
}

/// One window over all places, which lie in a row.
SmallVector<Value> GlobalMaxPoolOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t places = 1;
  for (int64_t size : input.getShape().drop_front(2))
    places *= size;
  Value row = buildReshape(builder, getLoc(), getInput(), {input.getDimSize(0), input.getDimSize(1), places});
  auto kernel = builder.getDenseI64ArrayAttr({places}), none = builder.getDenseI64ArrayAttr({});
  Value largest =
      builder.create<MaxPoolOp>(getLoc(), row, kernel, DenseI64ArrayAttr(), none, none, UnitAttr(), PlaceAttr());
  return {buildReshape(builder, getLoc(), largest, tensorOf(getResult()).getShape())};
}

LogicalResult GlobalMaxPoolOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const RunScalars &) {
  size_t images = results[0].data.size(), places = images ? operands[0].data.size() / images : 0;
  for (size_t image = 0; image < images && places; ++image)
    results[0].data[image] = *std::max_element(operands[0].data.begin() + long(image * places),
                                               operands[0].data.begin() + long((image + 1) * places));
  return success();
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addPoolingOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/reduction/PoolingOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ops/reduction/PoolingOps.cpp.inc"
