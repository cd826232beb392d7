// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: the dg ops of these names, with samples in the second dimension.
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

namespace {
/// What RNN, GRU and LSTM differ in.
struct Kind {
  StringRef op;
  unsigned numStates;
  unsigned numActivations; ///< of one direction
};
} // namespace

/// Whether a value has as many dimensions; rejects the node where it has not.
static bool checkRank(Node &node, Value x, int64_t rank, StringRef what) {
  if (!x || tensorOf(x).getRank() == rank)
    return bool(x);
  node.reject() << "has " << what << " of type " << tensorOf(x) << ", expected " << rank << " dimensions";
  return false;
}

/// The names of the activations as dg has them, for all directions; nothing where the node names none, or is rejected.
static SmallVector<StringRef> activationsOf(Node &node, const Kind &kind, int64_t numDirections) {
  SmallVector<std::string> named = node.texts("activations");
  SmallVector<StringRef> names;
  for (const std::string &name : named) {
    names.push_back(llvm::StringSwitch<StringRef>(name)
                        .Case("Sigmoid", "sigmoid")
                        .Case("Tanh", "tanh")
                        .Case("Relu", "relu")
                        .Case("Softsign", "softsign")
                        .Case("Softplus", "softplus")
                        .Default(""));
    if (names.back().empty())
      node.reject() << "has the activation '" << name << "', expected Sigmoid, Tanh, Relu, Softsign or Softplus";
  }
  size_t all = kind.numActivations * size_t(numDirections);
  if (!names.empty() && names.size() != all)
    node.reject() << "names " << names.size() << " activations, expected " << all << ": " << kind.numActivations
                  << " for each direction";
  return names;
}

static Results recurrent(Node &node, const Kind &kind) {
  Value x = node.input(0), weight = node.input(1), recurrence = node.input(2);
  if (!checkRank(node, x, 3, "an input") || !checkRank(node, weight, 3, "weights") ||
      !checkRank(node, recurrence, 3, "recurrent weights"))
    return {};
  const bool isBatchFirst = node.integer("layout", 0) != 0;
  auto swapped = [&](Value value) -> Value {
    if (!isBatchFirst)
      return value;
    return node.op("transpose", {value}, {node.attr("permutation", ArrayRef<int64_t>{1, 0, 2})});
  };
  x = swapped(x);
  std::string direction = node.text("direction", "forward");
  int64_t steps = x ? tensorOf(x).getDimSize(0) : 0, numDirections = tensorOf(weight).getDimSize(0);
  if (x && (steps < 1 || numDirections != (direction == "bidirectional" ? 2 : 1))) {
    node.reject() << "has " << steps << " steps and weights of " << numDirections << " directions for direction '"
                  << direction << "', expected at least one step, and two directions where it is bidirectional";
    return {};
  }

  Results operands{x, weight, recurrence};
  SmallVector<StringRef> extras;
  auto add = [&](unsigned input, StringRef name, StringRef what, int64_t rank, bool isState = false) {
    Value value = node.optionalInput(input);
    if (!value || !checkRank(node, value, rank, what))
      return;
    operands.push_back(isState ? swapped(value) : value);
    extras.push_back(name);
  };
  add(3, "bias", "biases", 2);
  add(4, "lengths", "sequence lengths", 1);
  add(5, "initial_h", "a first state", 3, /*isState=*/true);
  if (kind.numStates == 2) {
    add(6, "initial_c", "a first state", 3, /*isState=*/true);
    add(7, "peephole", "peepholes", 2);
  }
  SmallVector<StringRef> activations = activationsOf(node, kind, numDirections);
  if (node.isRejected() || llvm::is_contained(operands, Value()))
    return {};
  Builder &builder = node.builder();
  SmallVector<NamedAttribute> attributes{node.attr("direction", StringRef(direction))};
  if (!extras.empty())
    attributes.push_back(builder.getNamedAttr("extra", builder.getStrArrayAttr(extras)));
  if (!activations.empty())
    attributes.push_back(builder.getNamedAttr("activations", builder.getStrArrayAttr(activations)));
  if (node.hasAttribute("clip"))
    attributes.push_back(node.attr("clip", node.number("clip", 0)));
  if (kind.numStates == 2 && node.integer("input_forget", 0) != 0)
    attributes.push_back(node.flag("input_forget"));
  if (kind.op == "gru" && node.integer("linear_before_reset", 0) != 0)
    attributes.push_back(node.flag("linear_before_reset"));

  Results results = node.ops(kind.op, operands, attributes, 1 + kind.numStates);
  if (!isBatchFirst || llvm::is_contained(results, Value()))
    return results;
  results[0] = node.op("transpose", {results[0]}, {node.attr("permutation", ArrayRef<int64_t>{2, 0, 1, 3})});
  for (Value &state : MutableArrayRef(results).drop_front())
    state = swapped(state);
  return results;
}

void addRecurrentNodes(NodeTable &table) {
  auto add = [&](const char *name, Kind kind) { table[name] = [kind](Node &node) { return recurrent(node, kind); }; };
  add("RNN", {"rnn", 1, 1});
  add("GRU", {"gru", 1, 2});
  add("LSTM", {"lstm", 2, 3});
}

} // namespace dg::ir::onnx_import
