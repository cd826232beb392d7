// SPDX-License-Identifier: Apache-2.0
// Ops are made with `!dg.any` results and get the inferred type right after, by the road that type deduction takes: an
// op that does not fit is a diagnostic, not the end of the process.
#include "ir/build/Builder.h"
#include "ir/ops/arrangement/IndexingOps.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ActivationOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/elementwise/RandomOps.h"
#include "ir/ops/product/AttentionOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/product/ConvolutionOps.h"
#include "ir/ops/reduction/NormalizationOps.h"
#include "ir/ops/reduction/PoolingOps.h"
#include "ir/ops/reduction/StatisticsOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/ops/training/LossOps.h"

#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

Init Init::fanIn(int64_t fanIn) { return uniform(std::floor(1e8 / std::sqrt(double(fanIn))) / 1e8); }

GraphBuilder::GraphBuilder(ModuleOp module, StringRef graphName) : builder(module.getContext()) {
  module.getContext()->getOrLoadDialect<DGDialect>();
  builder.setInsertionPointToEnd(module.getBody());
  graph = builder.create<GraphOp>(locationOf(graphName), builder.getStringAttr(graphName), builder.getArrayAttr({}),
                                  builder.getArrayAttr({}), StringAttr(), IntegerAttr(), PhaseAttr());
  builder.setInsertionPointToStart(&graph.getBody().emplaceBlock());
}

Location GraphBuilder::locationOf(StringRef label) {
  if (label.empty())
    return builder.getUnknownLoc();
  return NameLoc::get(builder.getStringAttr(label));
}

Value GraphBuilder::input(StringRef name, ArrayRef<int64_t> shape, Type elementType) {
  return graph.addInput(name, RankedTensorType::get(shape, elementType));
}

Value GraphBuilder::parameter(const Twine &name, ArrayRef<int64_t> shape, Init init, Type elementType) {
  auto type = RankedTensorType::get(shape, elementType ? elementType : f32());
  StringAttr nameAttr = builder.getStringAttr(name);
  auto initAttr = InitAttr::get(builder.getContext(), init.kind, builder.getF64FloatAttr(init.value));
  return create<ParameterOp>(builder, locationOf(nameAttr), type, nameAttr, TypeAttr::get(type), initAttr,
                             /*state=*/UnitAttr(), /*frozen=*/UnitAttr());
}

Value GraphBuilder::state(const Twine &name, ArrayRef<int64_t> shape, Init init, Type elementType) {
  Value value = parameter(name, shape, init, elementType);
  value.getDefiningOp<ParameterOp>().setState(true);
  return value;
}

template <typename Op, typename... Arguments> Value GraphBuilder::make(const Twine &label, Arguments &&...arguments) {
  MLIRContext *context = builder.getContext();
  StringAttr labelAttr = builder.getStringAttr(label);
  PlaceAttr place;
  if (!labelAttr.empty())
    place = PlaceAttr::get(context, labelAttr, -1, Phase::forward, -1, {});
  Operation *op =
      builder.create<Op>(locationOf(labelAttr), AnyType::get(context), std::forward<Arguments>(arguments)..., place);
  SmallVector<Type> types;
  if (failed(cast<InferTypeOpInterface>(op).inferReturnTypes(context, op->getLoc(), op->getOperands(),
                                                             op->getDiscardableAttrDictionary(),
                                                             op->getPropertiesStorage(), op->getRegions(), types)))
    isRejected = true;
  else
    op->getResult(0).setType(types[0]);
  return op->getResult(0);
}

std::optional<int64_t> GraphBuilder::inputSize(Value x, int64_t dim, StringRef layer) {
  auto type = dyn_cast<RankedTensorType>(x.getType());
  if (!type) // made by an op that was rejected and reported
    return std::nullopt;
  int64_t index = dim < 0 ? dim + type.getRank() : dim;
  if (index >= 0 && index < type.getRank() && !type.isDynamicDim(index))
    return type.getDimSize(index);
  isRejected = true;
  emitError(locationOf(layer)) << "layer '" << layer << "' has an input of type " << type
                               << ", expected a known size in "
                               << (dim < 0 ? std::string("the last dimension") : "dimension " + std::to_string(dim))
                               << ", which shapes its parameters";
  return std::nullopt;
}

//===- Layers ----------------------------------------------------------------------------------------------------===//

Value GraphBuilder::linear(Value x, const Twine &name, int64_t outWidth, const LayerOptions &options) {
  std::string layer = name.str();
  std::optional<int64_t> inWidth = inputSize(x, -1, layer);
  if (!inWidth)
    return x;
  Type elementType = tensorOf(x).getElementType();
  Init init = Init::fanIn(*inWidth);
  Value weight = parameter(layer + ".weight", {outWidth, *inWidth}, options.weight.value_or(init), elementType), bias;
  if (options.hasBias)
    bias = parameter(layer + ".bias", {outWidth}, options.bias.value_or(init), elementType);
  return make<LinearOp>(options.label.empty() ? layer : options.label, x, weight, bias);
}

Value GraphBuilder::conv2d(Value x, const Twine &name, int64_t outChannels, const ConvWindow &window,
                           const LayerOptions &options) {
  std::string layer = name.str();
  std::optional<int64_t> inChannels = inputSize(x, 1, layer);
  if (!inChannels)
    return x;
  Type elementType = tensorOf(x).getElementType();
  auto [height, width] = window.kernel;
  Init init = Init::fanIn(*inChannels * height * width);
  Value weight = parameter(layer + ".weight", {outChannels, *inChannels, height, width}, options.weight.value_or(init),
                           elementType),
        bias;
  if (options.hasBias)
    bias = parameter(layer + ".bias", {outChannels}, options.bias.value_or(init), elementType);
  return make<Conv2dOp>(options.label.empty() ? layer : options.label, x, weight, bias,
                        builder.getDenseI64ArrayAttr(window.strides), builder.getDenseI64ArrayAttr(window.padding));
}

Value GraphBuilder::layerNorm(Value x, const Twine &name, const LayerOptions &options) {
  std::string layer = name.str();
  std::optional<int64_t> width = inputSize(x, -1, layer);
  if (!width)
    return x;
  Type elementType = tensorOf(x).getElementType();
  Value weight = parameter(layer + ".weight", {*width}, options.weight.value_or(Init::constant(1)), elementType);
  Value bias = parameter(layer + ".bias", {*width}, options.bias.value_or(Init::constant(0)), elementType);
  return make<LayerNormOp>(options.label.empty() ? layer : options.label, x, weight, bias,
                           builder.getF64FloatAttr(1e-5), /*axis=*/IntegerAttr());
}

Value GraphBuilder::rmsNorm(Value x, const Twine &name, const LayerOptions &options) {
  std::string layer = name.str();
  std::optional<int64_t> width = inputSize(x, -1, layer);
  if (!width)
    return x;
  Value weight =
      parameter(layer + ".weight", {*width}, options.weight.value_or(Init::constant(1)), tensorOf(x).getElementType());
  return make<RmsNormOp>(options.label.empty() ? layer : options.label, x, weight, builder.getF64FloatAttr(1e-5));
}

Value GraphBuilder::batchNorm(Value x, const Twine &name, const LayerOptions &options) {
  std::string layer = name.str();
  std::optional<int64_t> channels = inputSize(x, 1, layer);
  if (!channels)
    return x;
  Type elementType = tensorOf(x).getElementType();
  Value weight = parameter(layer + ".weight", {*channels}, options.weight.value_or(Init::constant(1)), elementType);
  Value bias = parameter(layer + ".bias", {*channels}, options.bias.value_or(Init::constant(0)), elementType);
  Value mean = state(layer + ".running_mean", {*channels}, Init::constant(0), elementType);
  Value variance = state(layer + ".running_var", {*channels}, Init::constant(1), elementType);
  return make<BatchNormOp>(options.label.empty() ? layer : options.label, x, weight, bias, mean, variance,
                           builder.getF64FloatAttr(1e-5), builder.getF64FloatAttr(0.1));
}

Value GraphBuilder::embedding(Value tokens, const Twine &name, int64_t rows, int64_t width,
                              const LayerOptions &options) {
  std::string layer = name.str();
  Value table = parameter(layer + ".weight", {rows, width}, options.weight.value_or(Init::normal(1)));
  return make<EmbeddingOp>(options.label.empty() ? layer : options.label, table, tokens, IntegerAttr());
}

//===- Ops -------------------------------------------------------------------------------------------------------===//

Value GraphBuilder::relu(Value x, const Twine &label) { return make<ReluOp>(label, x); }

Value GraphBuilder::gelu(Value x, const Twine &label) { return make<GeluOp>(label, x); }

Value GraphBuilder::silu(Value x, const Twine &label) { return make<SiluOp>(label, x); }

Value GraphBuilder::mul(Value lhs, Value rhs, const Twine &label) { return make<MulOp>(label, lhs, rhs); }

Value GraphBuilder::dropout(Value x, double rate, const Twine &label) {
  return make<DropoutOp>(label, x, builder.getF64FloatAttr(rate), builder.getI64IntegerAttr(0));
}

Value GraphBuilder::add(Value lhs, Value rhs, const Twine &label) { return make<AddOp>(label, lhs, rhs); }

Value GraphBuilder::reshape(Value x, ArrayRef<int64_t> shape, const Twine &label) {
  return make<ReshapeOp>(label, x, builder.getDenseI64ArrayAttr(shape));
}

Value GraphBuilder::maxPool2d(Value x, std::array<int64_t, 2> kernel, const Twine &label) {
  return make<MaxPool2dOp>(label, x, builder.getDenseI64ArrayAttr(kernel), /*strides=*/DenseI64ArrayAttr());
}

Value GraphBuilder::maxPool(Value x, const ConvWindow &window, const Twine &label) {
  return make<MaxPoolOp>(label, x, builder.getDenseI64ArrayAttr(window.kernel),
                         builder.getDenseI64ArrayAttr(window.strides), builder.getDenseI64ArrayAttr(window.padding),
                         builder.getDenseI64ArrayAttr({}), UnitAttr());
}

Value GraphBuilder::globalAvgPool(Value x, const Twine &label) { return make<GlobalAvgPoolOp>(label, x); }

Value GraphBuilder::logSoftmax(Value x, const Twine &label) { return make<LogSoftmaxOp>(label, x, IntegerAttr()); }

Value GraphBuilder::attention(Value query, Value key, Value value, int64_t heads, bool isCausal, const Twine &label,
                              std::optional<int64_t> kvHeads) {
  return make<AttentionOp>(label, query, key, value, /*mask=*/Value(), builder.getI64IntegerAttr(heads),
                           kvHeads ? builder.getI64IntegerAttr(*kvHeads) : IntegerAttr(),
                           isCausal ? builder.getUnitAttr() : UnitAttr(), /*offset=*/IntegerAttr(),
                           /*window=*/IntegerAttr(), /*scale=*/FloatAttr());
}

std::pair<Value, Value> GraphBuilder::rotaryAngles(int64_t tokens, int64_t pairs, double base) {
  auto type = TypeAttr::get(RankedTensorType::get({tokens, pairs}, f32()));
  auto number = [&](double value) { return builder.getF64FloatAttr(value); };
  Value places = make<IotaOp>("places", builder.getI64IntegerAttr(0), type, number(0), number(1));
  Value logarithms = make<IotaOp>("logarithms", builder.getI64IntegerAttr(1), type, number(0),
                                  number(-std::log(base) / double(pairs)));
  Value angles = mul(places, make<ExpOp>("frequencies", logarithms), "angles");
  return {make<CosOp>("cos", angles), make<SinOp>("sin", angles)};
}

Value GraphBuilder::rotary(Value x, std::pair<Value, Value> angles, int64_t heads, const Twine &label) {
  return make<RotaryOp>(label, x, angles.first, angles.second, builder.getI64IntegerAttr(heads),
                        /*interleaved=*/UnitAttr());
}

Value GraphBuilder::mse(Value prediction, Value target, const Twine &label) {
  return make<MseOp>(label, prediction, target);
}

Value GraphBuilder::nll(Value logProbabilities, Value target, const Twine &label) {
  return make<NllOp>(label, logProbabilities, target, /*weight=*/Value(), /*ignore_index=*/IntegerAttr());
}

Value GraphBuilder::crossEntropy(Value logits, Value target, const ClassLossOptions &options) {
  IntegerAttr ignored;
  if (options.ignoreIndex)
    ignored = builder.getI64IntegerAttr(*options.ignoreIndex);
  return make<CrossEntropyOp>(options.label, logits, target, /*weight=*/Value(), ignored,
                              builder.getF64FloatAttr(options.labelSmoothing));
}

LogicalResult GraphBuilder::returns(ValueRange values) {
  create<ReturnOp>(builder, graph.getLoc(), values, /*names=*/ArrayAttr());
  Type any = AnyType::get(builder.getContext());
  Block &block = graph.getBody().front();
  for (BlockArgument argument : block.getArguments())
    argument.setType(any);
  for (Operation &op : block)
    for (Value result : op.getResults())
      result.setType(any);
  return failure(isRejected || failed(verify(graph)));
}

} // namespace dg::ir
