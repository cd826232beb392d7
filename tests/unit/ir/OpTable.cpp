// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ir/OpTable.h"

#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/TypeInference.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numeric>

using namespace mlir;

namespace dg::ir::test {

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
  // Each magnitude has a slot of its own, so that no two are closer than a step of central differences: the largest of
  // two equal elements has no gradient.
  std::vector<int64_t> slots(size_t(tensor.numElements()));
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), random);
  std::uniform_real_distribution<double> place(0.25, 0.75);
  for (int64_t slot : slots) {
    double magnitude = 0.05 + 0.95 * (double(slot) + place(random)) / double(slots.size());
    tensor.data.push_back(random() % 2 ? magnitude : -magnitude);
  }
  return tensor;
}

OpInstance draw(const OpSpec &spec, ArrayRef<int64_t> choices, std::mt19937_64 &random) {
  OpInstance instance;
  Sizes sizes(choices, random);
  std::string arguments;
  for (auto [index, operand] : llvm::enumerate(spec.operands)) {
    SmallVector<int64_t> shape = sizes.shape(operand.shape);
    HostTensor tensor = randomTensor(shape, random);
    for (double &element : tensor.data) {
      if (operand.elements == Elements::positive)
        element = 0.5 + std::abs(element);
      if (operand.elements == Elements::small)
        element *= 0.9;
      if (operand.elements == Elements::aboveOne)
        element = 1.2 + std::abs(element);
      if (operand.elements == Elements::index)
        element = double(random() % std::max<int64_t>(1, sizes.product(operand.bound)));
      if (operand.elements == Elements::boolean)
        element = double(random() % 2);
    }
    instance.operands.push_back(std::move(tensor));
    arguments += (index ? ", %" : "%") + std::string(1, char('a' + index)) + ": tensor<";
    for (int64_t size : shape)
      arguments += std::to_string(size) + "x";
    arguments += (operand.elements == Elements::index     ? "i64>"
                  : operand.elements == Elements::boolean ? "i1>"
                                                          : "f32>");
  }
  std::string op = sizes.substitute(spec.text);
  // The results are returned under their own names so that nothing is dead.
  size_t numResults = spec.numResults;
  std::string results, names;
  for (size_t i = 0; i < numResults; ++i) {
    results += (i ? ", %r" : "%r") + std::to_string(i);
    names += (i ? ", \"r" : "\"r") + std::to_string(i) + "\"";
  }
  instance.text = "dg.graph @one(" + arguments + ") {\n  " + results + " = " + op + "\n  dg.return " + results +
                  " {names = [" + names + "]}\n}\n";
  return instance;
}

OpInstance instantiate(const OpSpec &spec, ArrayRef<int64_t> choices, std::mt19937_64 &random, MLIRContext &context) {
  OpInstance instance = draw(spec, choices, random);
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
