// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element.
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

/// The second operand as versions before 7 broadcast it: its dimensions stand at `axis` of the first.
static Value broadcastAtAxis(Node &node, Value a, Value b) {
  if (!a || !b || node.version() >= 7 || !node.hasAttribute("axis"))
    return b;
  RankedTensorType to = tensorOf(a), from = tensorOf(b);
  auto axis = node.dimension(node.integer("axis", 0), to.getRank());
  if (!axis)
    return {};
  SmallVector<int64_t> shape(from.getShape());
  while (int64_t(shape.size()) + *axis < to.getRank())
    shape.push_back(1);
  return node.reshape(b, shape);
}

static NodeFunction unary(const char *op) {
  return [op](Node &node) -> Results { return {node.op(op, {node.input(0)})}; };
}

static NodeFunction binary(const char *op) {
  return [op](Node &node) -> Results {
    Value a = node.input(0), b = broadcastAtAxis(node, a, node.input(1));
    return {node.op(op, {a, b})};
  };
}

static NodeFunction comparison(const char *predicate) {
  return [predicate](Node &node) -> Results {
    Value a = node.input(0), b = broadcastAtAxis(node, a, node.input(1));
    return {node.op("compare", {a, b}, {node.attr("predicate", StringRef(predicate))})};
  };
}

/// One op over any number of inputs, from the left.
static Value overAll(Node &node, StringRef op) {
  Value result = node.input(0);
  for (unsigned index = 1; index < node.numInputs(); ++index)
    result = node.op(op, {result, node.input(index)});
  return result;
}

static NodeFunction variadic(const char *op) {
  return [op](Node &node) -> Results { return {overAll(node, op)}; };
}

/// An activation with numbers that have the same name here and there.
static NodeFunction activation(const char *op, std::vector<std::pair<const char *, double>> numbers) {
  return [=](Node &node) -> Results {
    SmallVector<NamedAttribute> attributes;
    for (auto [name, otherwise] : numbers)
      attributes.push_back(node.attr(name, node.number(name, otherwise)));
    return {node.op(op, {node.input(0)}, attributes)};
  };
}

static Results mean(Node &node) {
  Value sum = overAll(node, "add");
  return {node.op("div", {sum, node.scalarLike(node.numInputs(), sum)})};
}

/// The base's type decides; the exponent may have another.
static Results power(Node &node) {
  Value base = node.input(0), exponent = broadcastAtAxis(node, base, node.input(1));
  if (!base || !exponent)
    return {};
  Type element = tensorOf(base).getElementType(), other = tensorOf(exponent).getElementType();
  if (element == other)
    return {node.op("pow", {base, exponent})};
  // In the wider of the two worlds: 2^0.5 is not 2^0.
  bool isFloat = isa<FloatType>(element) || isa<FloatType>(other);
  Type common = isFloat ? node.builder().getF64Type() : element;
  return {node.cast(node.op("pow", {node.cast(base, common), node.cast(exponent, common)}), element)};
}

static Results modulo(Node &node) {
  SmallVector<NamedAttribute> attributes;
  if (node.integer("fmod", 0) != 0)
    attributes.push_back(node.flag("fmod"));
  return {node.op("mod", {node.input(0), node.input(1)}, attributes)};
}

static Results bitShift(Node &node) {
  std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    node.reject() << "has direction '" << direction << "', expected LEFT or RIGHT";
    return {};
  }
  SmallVector<NamedAttribute> attributes;
  if (direction == "RIGHT")
    attributes.push_back(node.flag("right"));
  return {node.op("shift", {node.input(0), node.input(1)}, attributes)};
}

static Results isInfinite(Node &node) {
  auto wants = [&](StringRef sign) {
    return node.builder().getBoolAttr(node.integer(("detect_" + sign).str(), 1) != 0);
  };
  return {node.op("is_inf", {node.input(0)},
                  {node.builder().getNamedAttr("positive", wants("positive")),
                   node.builder().getNamedAttr("negative", wants("negative"))})};
}

/// Attributes before version 11, inputs since, which need not be constants.
static Results clip(Node &node) {
  Value x = node.input(0);
  if (node.version() < 11) {
    SmallVector<NamedAttribute> attributes;
    for (const char *limit : {"min", "max"})
      if (node.hasAttribute(limit))
        attributes.push_back(node.attr(limit, node.number(limit, 0)));
    return {attributes.empty() ? x : node.op("clip", {x}, attributes)};
  }
  if (Value least = node.optionalInput(1))
    x = node.op("max", {x, least});
  if (Value most = node.optionalInput(2))
    x = node.op("min", {x, most});
  return {x};
}

static Results cast(Node &node) {
  // Version 1 wrote the type out.
  int64_t to = node.integer("to", 0);
  Type type = elementTypeOf(node.context(), int32_t(to));
  if (!type) {
    node.reject() << "casts to " << nameOfDataType(int32_t(to)) << ", expected numbers or booleans";
    return {};
  }
  return {node.cast(node.input(0), type)};
}

static Results castLike(Node &node) {
  Value x = node.input(0), like = node.input(1);
  return {like ? node.cast(x, tensorOf(like).getElementType()) : Value()};
}

static Results gelu(Node &node) {
  return {node.op(node.text("approximate", "none") == "tanh" ? "gelu" : "gelu_erf", {node.input(0)})};
}

/// The slope's dimensions stand at the channels, as PyTorch has it, where they do not broadcast as numpy's do.
static Results prelu(Node &node) {
  Value x = node.input(0), slope = node.input(1);
  if (!x || !slope)
    return {};
  RankedTensorType type = tensorOf(x), slopeType = tensorOf(slope);
  if (slopeType.getRank() == 1 && type.getRank() > 2 && slopeType.getDimSize(0) == type.getDimSize(1) &&
      slopeType.getDimSize(0) != 1) {
    SmallVector<int64_t> shape(size_t(type.getRank() - 1), 1);
    shape[0] = slopeType.getDimSize(0);
    slope = node.reshape(slope, shape);
  }
  return {node.op("prelu", {x, slope})};
}

static void addActivations(NodeTable &table) {
  table["Relu"] = unary("relu");
  table["Sigmoid"] = unary("sigmoid");
  table["Softplus"] = unary("softplus");
  table["Softsign"] = unary("softsign");
  table["HardSwish"] = unary("hard_swish");
  table["Mish"] = unary("mish");
  table["HardSigmoid"] = activation("hard_sigmoid", {{"alpha", 0.2}, {"beta", 0.5}});
  table["Elu"] = activation("elu", {{"alpha", 1}});
  table["Celu"] = activation("celu", {{"alpha", 1}});
  table["Selu"] = activation("selu", {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}});
  table["LeakyRelu"] = activation("leaky_relu", {{"alpha", 0.01}});
  table["ThresholdedRelu"] = activation("thresholded_relu", {{"alpha", 1}});
  table["Shrink"] = activation("shrink", {{"bias", 0}, {"lambd", 0.5}});
  table["Gelu"] = gelu;
  table["PRelu"] = prelu;
}

void addElementwiseNodes(NodeTable &table) {
  table["Add"] = binary("add");
  table["Sub"] = binary("sub");
  table["Mul"] = binary("mul");
  table["Div"] = binary("div");
  table["Pow"] = power;
  table["Mod"] = modulo;
  table["Sum"] = variadic("add");
  table["Min"] = variadic("min");
  table["Max"] = variadic("max");
  table["Mean"] = mean;
  table["Clip"] = clip;
  table["Cast"] = cast;
  table["CastLike"] = castLike;
  for (auto [operator_, op] : std::initializer_list<std::pair<const char *, const char *>>{
           {"Neg", "neg"},      {"Abs", "abs"},           {"Sign", "sign"},   {"Reciprocal", "reciprocal"},
           {"Sqrt", "sqrt"},    {"Exp", "exp"},           {"Log", "log"},     {"Sin", "sin"},
           {"Cos", "cos"},      {"Tan", "tan"},           {"Asin", "asin"},   {"Acos", "acos"},
           {"Atan", "atan"},    {"Sinh", "sinh"},         {"Cosh", "cosh"},   {"Tanh", "tanh"},
           {"Asinh", "asinh"},  {"Acosh", "acosh"},       {"Atanh", "atanh"}, {"Erf", "erf"},
           {"Floor", "floor"},  {"Ceil", "ceil"},         {"Round", "round"}, {"Not", "logical_not"},
           {"IsNaN", "is_nan"}, {"BitwiseNot", "bit_not"}})
    table[operator_] = unary(op);
  table["And"] = binary("logical_and");
  table["Or"] = binary("logical_or");
  table["Xor"] = binary("logical_xor");
  table["BitwiseAnd"] = binary("bit_and");
  table["BitwiseOr"] = binary("bit_or");
  table["BitwiseXor"] = binary("bit_xor");
  table["BitShift"] = bitShift;
  table["IsInf"] = isInfinite;
  table["Equal"] = comparison("eq");
  table["Less"] = comparison("lt");
  table["LessOrEqual"] = comparison("le");
  table["Greater"] = comparison("gt");
  table["GreaterOrEqual"] = comparison("ge");
  table["Where"] = [](Node &node) -> Results {
    return {node.op("select", {node.input(0), node.input(1), node.input(2)})};
  };
  addActivations(table);
}

} // namespace dg::ir::onnx_import
