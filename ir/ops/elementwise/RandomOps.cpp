// SPDX-License-Identifier: Apache-2.0
// Random numbers: the generator, and the graphs that give each element its place in the global tensor.
#include "ir/ops/elementwise/RandomOps.h"
#include "ir/dialect/Expression.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/rules/ElementwiseSupport.h"
#include "ir/rules/GradientBuilding.h"
#include "runtime/support/CounterRandom.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- The generator ---------------------------------------------------------------------------------------------===//

/// 53 bits, which a double holds.
static uint64_t keyOf(const RunScalars &scalars, int64_t stream) {
  auto words = philox(scalars.seed, uint64_t(stream), uint64_t(scalars.step));
  return uint64_t(words[1] & 0x1FFFFF) << 32 | words[0];
}

/// 24 bits, as initial values have them.
static double unitOf(uint64_t key, uint64_t index, int64_t word) {
  return double(philox(key, 0, index)[size_t(word)] >> 8) * 0x1p-24;
}

LogicalResult RandomKeyOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &inferred) {
  inferred.push_back(RankedTensorType::get({}, IntegerType::get(context, 64)));
  return success();
}

ShardingRule RandomKeyOp::getShardingRule() { return emptyShardingRule(*this); }
OpCost RandomKeyOp::getCost() { return {50, 8}; }

LogicalResult RandomKeyOp::evaluate(HostOperands, HostResults results, const RunScalars &scalars) {
  results[0].data[0] = double(keyOf(scalars, int64_t(getStream())));
  return success();
}

FailureOr<Type> RandomBitsOp::inferType(Adaptor op, const Rejection &reject) {
  int64_t word = int64_t(op.getWord());
  if (word < 0 || word > 3)
    return reject("has word ", word, ", expected 0 to 3");
  if (!isa<FloatType>(op.getTo()))
    return reject("gives ", op.getTo(), ", expected a type of floats");
  for (Value operand : op.getOperands())
    if (!tensorOf(operand).getElementType().isSignlessInteger(64))
      return reject("has an operand ", operand.getType(), ", expected elements of type i64");
  return inferElementwise(reject, op.getOperands(), Domain::integer, op.getTo());
}

double RandomBitsOp::evaluateScalar(ArrayRef<double> operands) {
  return unitOf(uint64_t(operands[0]), uint64_t(operands[1]), int64_t(getWord()));
}

//===- Places ----------------------------------------------------------------------------------------------------===//

/// The number of the author's op, which all plans agree on: the stream of its random numbers.
static int64_t streamNumber(Operation *op) { return getPlace(op).getOrigin(); }

/// 0, step, 2 · step, … along one dimension of `rank`.
static Value buildSteps(OpBuilder &builder, Location loc, int64_t count, int64_t step, int64_t dim, int64_t rank) {
  auto type = RankedTensorType::get({count}, builder.getI64Type());
  Value steps = create<IotaOp>(builder, loc, type, builder.getI64IntegerAttr(0), TypeAttr::get(type),
                               builder.getF64FloatAttr(0), builder.getF64FloatAttr(double(step)));
  SmallVector<int64_t> shape(size_t(rank), 1);
  shape[size_t(dim)] = count;
  return buildReshape(builder, loc, steps, shape);
}

/// The place of each element in row-major order. Where `samples` numbers the rows of dimension `sampleDim`, they are
/// the major ones: a sample's places are its own wherever it lies. Dimensions are added one by one, so that only the
/// last sum has all elements, and it can be part of a larger kernel.
static Value buildIndex(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, int64_t sampleDim, Value samples) {
  int64_t rank = int64_t(shape.size()), stride = 1;
  SmallVector<Value> parts;
  for (int64_t dim = rank - 1; dim >= 0; --dim) {
    if (samples && dim == sampleDim)
      continue;
    if (shape[size_t(dim)] != 1)
      parts.push_back(buildSteps(builder, loc, shape[size_t(dim)], stride, dim, rank));
    stride *= shape[size_t(dim)];
  }
  SmallVector<int64_t> ones(size_t(rank), 1);
  if (samples) {
    Value size = buildFilled(builder, loc, RankedTensorType::get({}, builder.getI64Type()), double(stride));
    ones[size_t(sampleDim)] = shape[size_t(sampleDim)];
    parts.push_back(create<MulOp>(builder, loc, buildReshape(builder, loc, samples, ones), size));
  }
  if (parts.empty())
    return buildFilled(builder, loc, RankedTensorType::get(shape, builder.getI64Type()), 0);
  Value index = parts.pop_back_val();
  while (!parts.empty())
    index = create<AddOp>(builder, loc, index, parts.pop_back_val());
  return index;
}

namespace {
/// The source of an op's numbers: the shape in which they are drawn, and the place of each.
struct Source {
  SmallVector<int64_t> shape;
  Value key, index;
  Type element;

  Expression unit(OpBuilder &builder, Location loc, int64_t word) const {
    return Expression(
        builder, loc,
        create<RandomBitsOp>(builder, loc, key, index, builder.getI64IntegerAttr(word), TypeAttr::get(element)));
  }
};
} // namespace

/// Without samples (`scope` null, or the op has none) places are those of the tensor.
static FailureOr<Source> buildSource(OpBuilder &builder, Operation *op, int64_t sampleDim, TrainingScope *scope) {
  Location loc = op->getLoc();
  auto type = tensorOf(op->getResult(0));
  Source source{SmallVector<int64_t>(type.getShape()), {}, {}, type.getElementType()};
  source.key = create<RandomKeyOp>(builder, loc, RankedTensorType::get({}, builder.getI64Type()),
                                   builder.getI64IntegerAttr(streamNumber(op)));
  if (!scope || sampleDim < 0) {
    source.index = buildIndex(builder, loc, source.shape, -1, {});
    return source;
  }
  int64_t rows = tensorOf(scope->share).getDimSize(0);
  if (sampleDim >= type.getRank() || rows == 0 || type.getDimSize(unsigned(sampleDim)) % rows != 0)
    return op->emitOpError() << "has batch_dim " << sampleDim << " and the result " << type << ", expected a dimension "
                             << "of " << rows << " samples, or of several rows for each; -1 where it has none";
  // Several rows for a sample become a dimension of their own.
  if (int64_t each = type.getDimSize(unsigned(sampleDim)) / rows; each > 1) {
    source.shape[size_t(sampleDim)] = rows;
    source.shape.insert(source.shape.begin() + sampleDim + 1, each);
  }
  source.index = buildIndex(builder, loc, source.shape, sampleDim, scope->sampleIndex());
  return source;
}

/// An op in a graph inside another would draw the same numbers in each trip.
static LogicalResult checkParent(Operation *op) {
  if (Operation *parent = op->getParentOp(); parent && !isa<GraphOp>(parent))
    return op->emitOpError() << "is in the body of '" << parent->getName()
                             << "', where every trip would draw the same numbers, expected it directly in a dg.graph";
  return success();
}

//===- Numbers of a distribution ---------------------------------------------------------------------------------===//

static LogicalResult inferDrawn(const Rejection &reject, ValueRange operands, TypeAttr attribute,
                                SmallVectorImpl<Type> &inferred) {
  if (operands.empty() == !attribute)
    return reject("has ", operands.size(), " operands and ", attribute ? "a" : "no",
                  " type, expected either a tensor that the result is like, or its type");
  Type type = attribute ? attribute.getValue() : operands[0].getType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  bool isDeduced = attribute || !isAny(type);
  if (isDeduced && (!tensor || !isa<FloatType>(tensor.getElementType()) || (attribute && !tensor.hasStaticShape())))
    return reject("draws numbers of ", type,
                  ", expected a tensor of floats whose sizes are all numbers; an operand in "
                  "place of the type gives its shape, with the batch");
  inferred.push_back(type);
  return success();
}

#define DG_DRAWN(Op)                                                                                                   \
  LogicalResult Op::inferReturnTypes(MLIRContext *, std::optional<Location> location, ValueRange operands,             \
                                     DictionaryAttr, OpaqueProperties properties, RegionRange,                         \
                                     SmallVectorImpl<Type> &inferred) {                                                \
    return inferDrawn({location, getOperationName()}, operands, properties.as<Properties *>()->type, inferred);        \
  }                                                                                                                    \
  LogicalResult Op::verify() { return checkParent(*this); }                                                            \
  SmallVector<Value> Op::decompose(OpBuilder &builder) {                                                               \
    return {drawn(*this, builder, *buildSource(builder, *this, -1, nullptr))};                                         \
  }                                                                                                                    \
  FailureOr<SmallVector<Value>> Op::buildTraining(OpBuilder &builder, TrainingScope &scope) {                          \
    FailureOr<Source> source = buildSource(builder, *this, getSampleDim(), &scope);                                    \
    if (failed(source))                                                                                                \
      return failure();                                                                                                \
    return SmallVector<Value>{drawn(*this, builder, *source)};                                                         \
  }

static Value drawn(RandomUniformOp op, OpBuilder &builder, const Source &source) {
  double low = op.getLow().convertToDouble(), high = op.getHigh().convertToDouble();
  Expression number = source.unit(builder, op.getLoc(), 0) * (high - low) + low;
  return buildReshape(builder, op.getLoc(), number, tensorOf(op.getResult()).getShape());
}

/// The radius takes 1 - u, which is never 0.
static Value drawn(RandomNormalOp op, OpBuilder &builder, const Source &source) {
  Expression u = source.unit(builder, op.getLoc(), 0), v = source.unit(builder, op.getLoc(), 1);
  Expression radius = ((-u).apply<Log1pOp>() * -2.0).apply<SqrtOp>();
  Expression number =
      radius * (v * (2 * M_PI)).apply<CosOp>() * op.getDeviation().convertToDouble() + op.getMean().convertToDouble();
  return buildReshape(builder, op.getLoc(), number, tensorOf(op.getResult()).getShape());
}

DG_DRAWN(RandomUniformOp)
DG_DRAWN(RandomNormalOp)
#undef DG_DRAWN

LogicalResult RandomUniformOp::evaluate(HostOperands, HostResults results, const RunScalars &scalars) {
  uint64_t key = keyOf(scalars, streamNumber(*this));
  double low = getLow().convertToDouble(), high = getHigh().convertToDouble();
  for (size_t i = 0; i < results[0].data.size(); ++i)
    results[0].data[i] = low + (high - low) * unitOf(key, i, 0);
  return success();
}

LogicalResult RandomNormalOp::evaluate(HostOperands, HostResults results, const RunScalars &scalars) {
  uint64_t key = keyOf(scalars, streamNumber(*this));
  for (size_t i = 0; i < results[0].data.size(); ++i)
    results[0].data[i] = getMean().convertToDouble() + getDeviation().convertToDouble() *
                                                           std::sqrt(-2 * std::log1p(-unitOf(key, i, 0))) *
                                                           std::cos(2 * M_PI * unitOf(key, i, 1));
  return success();
}

//===- DropoutOp -------------------------------------------------------------------------------------------------===//

FailureOr<Type> DropoutOp::inferType(Adaptor op, const Rejection &reject) {
  double rate = op.getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return reject("has rate ", op.getRateAttr(), ", expected at least 0 and less than 1");
  return inferElementwise(reject, op.getOperands(), Domain::real);
}

LogicalResult DropoutOp::verify() { return checkParent(*this); }

SmallVector<Value> DropoutOp::decompose(OpBuilder &) { return {getInput()}; }

/// A mask of 0 and 1 / (1 - rate), which the gradient multiplies by too.
FailureOr<SmallVector<Value>> DropoutOp::buildTraining(OpBuilder &builder, TrainingScope &scope) {
  double rate = getRate().convertToDouble();
  if (rate == 0)
    return SmallVector<Value>{getInput()};
  FailureOr<Source> source = buildSource(builder, *this, int64_t(getBatchDim()), &scope);
  if (failed(source))
    return failure();
  Expression unit = source->unit(builder, getLoc(), 0);
  Value isKept =
      create<CompareOp>(builder, getLoc(), unit.value(), unit.number(rate).value(), builder.getStringAttr("ge"));
  Value mask = create<CastOp>(builder, getLoc(), isKept, TypeAttr::get(source->element));
  mask = buildReshape(builder, getLoc(), buildScale(builder, getLoc(), mask, 1 / (1 - rate)),
                      tensorOf(getInput()).getShape());
  return SmallVector<Value>{create<MulOp>(builder, getLoc(), getInput(), mask)};
}

void DropoutOp::compute(HostOperands operands, HostResults results) { results[0].data = operands[0].data; }

} // namespace dg::ir

#define DG_OPS "ir/ops/elementwise/RandomOps.cpp.inc"
#define DG_ADD_OPS addRandomOps
#include "ir/ops/Family.inc"
