// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/OpTable.h"

#include "ir/GraphOps.h"
#include "ir/TypeInference.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstdlib>
#include <iostream>

using namespace mlir;

namespace dg::ir::test {

const std::vector<OpSpec> &opTable() {
  static const std::vector<OpSpec> table = {
      {"dg.add %a, %b", {{"n d"}, {"n d"}}},
      {"dg.add %a, %b", {{"n d"}, {"d"}}},
      {"dg.add %a, %b", {{"n 1 d"}, {"m d"}}},
      {"dg.add %a, %b", {{"1 d"}, {"n m d"}}},
      {"dg.sub %a, %b", {{"n d"}, {"n d"}}},
      {"dg.sub %a, %b", {{"d"}, {"n d"}}},
      {"dg.mul %a, %b", {{"n d"}, {"n d"}}},
      {"dg.mul %a, %b", {{"n 1"}, {"1 d"}}},
      {"dg.mul %a, %b", {{"n d"}, {""}}},
      {"dg.div %a, %b", {{"n d"}, {"n d", Elements::positive}}},
      {"dg.div %a, %b", {{"d"}, {"n d", Elements::positive}}},
      {"dg.div %a, %b", {{"n m d"}, {"m 1", Elements::positive}}},
      {"dg.scale %a {factor = -1.5}", {{"n d"}}},
      {"dg.relu %a", {{"n d"}}},
      {"dg.relu_grad %a, %b", {{"n d"}, {"n d"}}},
      {"dg.gelu %a", {{"n d"}}},
      {"dg.gelu_grad %a, %b", {{"n d"}, {"n d"}}},
      {"dg.constant {value = 2.5, type = tensor<$nx$dxf32>}", {}},

      {"dg.matmul %a, %b", {{"m k"}, {"k n"}}},
      {"dg.matmul %a, %b {transpose_lhs}", {{"k m"}, {"k n"}}},
      {"dg.matmul %a, %b {transpose_rhs}", {{"m k"}, {"n k"}}},
      {"dg.matmul %a, %b {transpose_lhs, transpose_rhs}", {{"k m"}, {"n k"}}},
      {"dg.matmul %a, %b", {{"b h m k"}, {"b h k n"}}},
      {"dg.matmul %a, %b {transpose_lhs}", {{"b k m"}, {"b k n"}}},
      {"dg.matmul %a, %b {transpose_rhs}", {{"b m k"}, {"b n k"}}},
      {"dg.linear %a, %b", {{"n i"}, {"o i"}}},
      {"dg.linear %a, %b, %c", {{"n i"}, {"o i"}, {"o"}}},
      {"dg.linear %a, %b, %c", {{"b t i"}, {"o i"}, {"o"}}},
      {"dg.attention %a, %b, %c {heads = $h : i64}", {{"b t h*d"}, {"b s h*d"}, {"b s h*d"}}},
      {"dg.attention %a, %b, %c {heads = $h : i64, causal}", {{"b t h*d"}, {"b t h*d"}, {"b t h*d"}}},
      {"dg.conv2d %a, %b", {{"n c 6 5"}, {"o c 3 2"}}},
      {"dg.conv2d %a, %b, %c", {{"n c 4 4"}, {"o c 3 3"}, {"o"}}},
      {"dg.conv2d %a, %b {strides = array<i64: 2, 1>, padding = array<i64: 1, 2>}", {{"n c 6 5"}, {"o c 3 3"}}},
      {"dg.conv2d_input_grad %a, %b {input_size = array<i64: 6, 5>}", {{"n o 4 4"}, {"o c 3 2"}}},
      {"dg.conv2d_input_grad %a, %b {input_size = array<i64: 6, 5>, strides = array<i64: 2, 1>, padding = array<i64: "
       "1, 2>}",
       {{"n o 3 7"}, {"o c 3 3"}}},
      {"dg.conv2d_weight_grad %a, %b {kernel_size = array<i64: 3, 2>}", {{"n o 4 4"}, {"n c 6 5"}}},
      {"dg.conv2d_weight_grad %a, %b {kernel_size = array<i64: 3, 3>, strides = array<i64: 2, 1>, padding = array<i64: "
       "1, 2>}",
       {{"n o 3 7"}, {"n c 6 5"}}},

      {"dg.reshape %a {shape = array<i64: -1, $d>}", {{"b t d"}}},
      {"dg.reshape %a {shape = array<i64: $b, $t, $h, $d>}", {{"b t h*d"}}},
      {"dg.reshape %a {shape = array<i64: $b, $t, ${h*d}>}", {{"b t h d"}}},
      {"dg.reshape %a {shape = array<i64: 0, -1>}", {{"n 20 4 4"}}},
      {"dg.reshape %a {shape = array<i64: $n, $d>}", {{"n*d"}}},
      {"dg.reshape %a {shape = array<i64: $n, 1, $d>}", {{"n d"}}},
      {"dg.reshape %a {shape = array<i64: 0, 3, 2, $d>}", {{"n 2 3 d"}}},
      {"dg.reshape %a {shape = array<i64: 0, 4, 6, $d>}", {{"n 6 4 d"}}},
      {"dg.reshape %a {shape = array<i64: $d>}", {{"1 d 1"}}},
      {"dg.transpose %a {permutation = array<i64: 0, 2, 1, 3>}", {{"b t h d"}}},
      {"dg.transpose %a {permutation = array<i64: 2, 0, 1>}", {{"b t d"}}},
      {"dg.expand %a {shape = array<i64: $n, $d>}", {{"d"}}},
      {"dg.expand %a {shape = array<i64: $n, $m, $d>}", {{"n 1 d"}}},
      {"dg.expand %a {shape = array<i64: $n>}", {{""}}},
      {"dg.reduce_sum %a {dims = array<i64: 0>}", {{"n d"}}},
      {"dg.reduce_sum %a {dims = array<i64: 0, 2>, keep}", {{"n m d"}}},
      {"dg.reduce_sum %a {dims = array<i64: 1>}", {{"n m d"}}},

      {"dg.softmax %a", {{"n d"}}},
      {"dg.softmax %a {scale = 0.5, causal}", {{"b h t t"}}},
      {"dg.softmax_grad %a, %b {scale = 0.5}", {{"b n d"}, {"b n d", Elements::positive}}},
      {"dg.log_softmax %a", {{"b n d"}}},
      {"dg.log_softmax_grad %a, %b", {{"n d"}, {"n d"}}},
      {"dg.layer_norm %a, %b, %c", {{"b t 5"}, {"5"}, {"5"}}},
      {"dg.layer_norm %a, %b, %c {epsilon = 0.1}", {{"n 4"}, {"4"}, {"4"}}},
      {"dg.layer_norm_grad %a, %b, %c", {{"b t 5"}, {"b t 5"}, {"5"}}},

      {"dg.max_pool2d %a {kernel = array<i64: 2, 2>}", {{"n c 4 5"}}},
      {"dg.max_pool2d %a {kernel = array<i64: 3, 2>, strides = array<i64: 1, 2>}", {{"n c 5 5"}}},
      {"dg.max_pool2d_grad %a, %b {kernel = array<i64: 2, 2>}", {{"n c 2 2"}, {"n c 4 5"}}},
      {"dg.max_pool2d_grad %a, %b {kernel = array<i64: 3, 2>, strides = array<i64: 1, 2>}", {{"n c 3 2"}, {"n c 5 5"}}},

      {"dg.embedding %a, %b", {{"v d"}, {"b t", Elements::index, "v"}}},
      {"dg.embedding_grad %a, %b {rows = $v : i64}", {{"b t d"}, {"b t", Elements::index, "v"}}},
      {"dg.pick %a, %b", {{"b t c"}, {"b t", Elements::index, "c"}}},
      {"dg.pick_grad %a, %b {classes = $c : i64}", {{"n"}, {"n", Elements::index, "c"}}},
      {"dg.correct %a, %b", {{"n c"}, {"n", Elements::index, "c"}}},

      {"dg.mse %a, %b", {{"n d"}, {"n d"}}},
      {"dg.mse %a, %b", {{"n"}, {"n"}}},
      {"dg.mse %a, %b", {{"n c h w"}, {"n c h w"}}},
      {"dg.nll %a, %b", {{"n c"}, {"n", Elements::index, "c"}}},
      {"dg.nll %a, %b", {{"b t c"}, {"b t", Elements::index, "c"}}},
      {"dg.cross_entropy %a, %b", {{"n c"}, {"n", Elements::index, "c"}}},
      {"dg.cross_entropy %a, %b", {{"b t c"}, {"b t", Elements::index, "c"}}},

      {"dg.sgd %a, %b {weight_decay = 0.1}", {{"o i"}, {"o i"}}},
      {"dg.momentum %a, %b, %c {momentum = 0.9}", {{"o i"}, {"o i"}, {"o i"}}},
      {"dg.momentum %a, %b, %c {momentum = 0.9, nesterov, weight_decay = 0.1}", {{"o"}, {"o"}, {"o"}}},
      {"dg.adam %a, %b, %c, %d", {{"o i"}, {"o i"}, {"o i"}, {"o i", Elements::positive}}},
      {"dg.adam %a, %b, %c, %d {weight_decay = 0.1, decoupled}", {{"o"}, {"o"}, {"o"}, {"o", Elements::positive}}},
  };
  return table;
}

//===- Instances -------------------------------------------------------------------------------------------------===//

namespace {

/// The sizes of letters, drawn when they are first met.
class Sizes {
public:
  Sizes(ArrayRef<int64_t> choices, std::mt19937_64 &random) : choices(choices), random(random) {}

  int64_t product(StringRef text) {
    SmallVector<StringRef> parts;
    text.split(parts, '*');
    int64_t size = 1;
    for (StringRef part : parts) {
      int64_t number;
      if (part.getAsInteger(10, number)) {
        auto [found, isNew] = letters.try_emplace(part.str(), 0);
        if (isNew)
          found->second = choices[random() % choices.size()];
        number = found->second;
      }
      size *= number;
    }
    return size;
  }

  SmallVector<int64_t> shape(StringRef text) {
    SmallVector<StringRef> parts;
    text.split(parts, ' ', -1, /*KeepEmpty=*/false);
    SmallVector<int64_t> sizes;
    for (StringRef part : parts)
      sizes.push_back(product(part));
    return sizes;
  }

  /// `text` with sizes for $x and ${x*y}.
  std::string substitute(StringRef text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '$') {
        out += text[i];
        continue;
      }
      bool isBraced = text[i + 1] == '{';
      StringRef name = isBraced ? text.slice(i + 2, text.find('}', i)) : text.substr(i + 1, 1);
      out += std::to_string(product(name));
      i += isBraced ? name.size() + 2 : 1;
    }
    return out;
  }

private:
  ArrayRef<int64_t> choices;
  std::mt19937_64 &random;
  std::map<std::string, int64_t> letters;
};

} // namespace

HostTensor randomTensor(ArrayRef<int64_t> shape, std::mt19937_64 &random) {
  HostTensor tensor{shape.vec(), {}};
  std::uniform_real_distribution<double> magnitude(0.05, 1.0);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.data.push_back(random() % 2 ? magnitude(random) : -magnitude(random));
  return tensor;
}

OpInstance instantiate(const OpSpec &spec, ArrayRef<int64_t> choices, std::mt19937_64 &random, MLIRContext &context) {
  OpInstance instance;
  Sizes sizes(choices, random);
  std::string arguments;
  for (auto [index, operand] : llvm::enumerate(spec.operands)) {
    SmallVector<int64_t> shape = sizes.shape(operand.shape);
    HostTensor tensor = randomTensor(shape, random);
    for (double &element : tensor.data) {
      if (operand.elements == Elements::positive)
        element = 0.5 + std::abs(element);
      if (operand.elements == Elements::index)
        element = double(random() % sizes.product(operand.bound));
    }
    instance.operands.push_back(std::move(tensor));
    arguments += (index ? ", %" : "%") + std::string(1, char('a' + index)) + ": tensor<";
    for (int64_t size : shape)
      arguments += std::to_string(size) + "x";
    arguments += operand.elements == Elements::index ? "i64>" : "f32>";
  }
  std::string op = sizes.substitute(spec.text);
  // The results are returned under their own names so that nothing is dead.
  size_t numResults = StringRef(op).starts_with("dg.layer_norm_grad") || StringRef(op).starts_with("dg.adam") ? 3
                      : StringRef(op).starts_with("dg.momentum")                                              ? 2
                                                                                                              : 1;
  std::string results, names;
  for (size_t i = 0; i < numResults; ++i) {
    results += (i ? ", %r" : "%r") + std::to_string(i);
    names += (i ? ", \"r" : "\"r") + std::to_string(i) + "\"";
  }
  instance.text = "dg.graph @one(" + arguments + ") {\n  " + results + " = " + op + "\n  dg.return " + results +
                  " {names = [" + names + "]}\n}\n";
  instance.module = parse(context, instance.text);
  if (!instance.module || failed(deduce(instance.graph()))) {
    std::cerr << "in the table of ops:\n" << instance.text;
    std::abort();
  }
  return instance;
}

GraphOp OpInstance::graph() { return *module->getOps<GraphOp>().begin(); }
Operation *OpInstance::op() { return &graph().getBody().front().front(); }

TensorMap OpInstance::inputs() {
  TensorMap map;
  for (auto [index, operand] : llvm::enumerate(operands))
    map[graph().getInputName(index).str()] = operand;
  return map;
}

//===- Modules ---------------------------------------------------------------------------------------------------===//

OwningOpRef<ModuleOp> parse(MLIRContext &context, const std::string &text) {
  return parseSourceString<ModuleOp>(text, ParserConfig(&context));
}

LogicalResult deduce(GraphOp graph) {
  for (auto [argument, type] : llvm::zip_equal(graph.getBody().getArguments(), graph.getInputTypes()))
    argument.setType(cast<TypeAttr>(type).getValue());
  for (Operation &op : graph.getBody().front()) {
    if (auto parameter = dyn_cast<ParameterOp>(op))
      parameter.getResult().setType(cast<RankedTensorType>(parameter.getType()));
    auto inferable = dyn_cast<InferTypeOpInterface>(op);
    if (!inferable)
      continue;
    SmallVector<Type> types;
    if (failed(inferable.inferReturnTypes(op.getContext(), op.getLoc(), op.getOperands(), op.getAttrDictionary(),
                                          op.getPropertiesStorage(), op.getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
      result.setType(type);
  }
  return success();
}

std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<DGDialect>();
  return context;
}

uint64_t suiteSeed() {
  const char *text = std::getenv("DG_TEST_SEED");
  uint64_t seed = text ? std::strtoull(text, nullptr, 10) : 20261116;
  std::cout << "seed " << seed << " (set DG_TEST_SEED to change it)\n";
  return seed;
}

double difference(const HostTensor &a, const HostTensor &b) {
  if (a.shape != b.shape)
    return std::numeric_limits<double>::infinity();
  double largest = 1, worst = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    largest = std::max({largest, std::abs(a.data[i]), std::abs(b.data[i])});
    worst = std::max(worst, std::abs(a.data[i] - b.data[i]));
  }
  return worst / largest;
}

} // namespace dg::ir::test
