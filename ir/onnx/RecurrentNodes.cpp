// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM: a scan over the steps of the sequence for each direction.
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

namespace {

/// One step for one direction: takes the gates' sums of the input (x · Wᵀ + biases), and the states; gives new states.
struct Cell {
  Value recurrent, recurrentBias;  ///< [gates · hidden, hidden], [gates · hidden]
  Value peepholes;                 ///< [3 · hidden], of an LSTM
  SmallVector<Value> rows, biases; ///< of a GRU: the same gate by gate
  SmallVector<StringRef> activations;
};
using Step = std::function<SmallVector<Value>(Node &, const Cell &, Value inputGates, ArrayRef<Value> states)>;

} // namespace

static Value activate(Node &node, StringRef name, Value x) {
  StringRef op = llvm::StringSwitch<StringRef>(name)
                     .Case("Sigmoid", "sigmoid")
                     .Case("Tanh", "tanh")
                     .Case("Relu", "relu")
                     .Case("Softsign", "softsign")
                     .Case("Softplus", "softplus")
                     .Default("");
  if (op.empty()) {
    node.reject() << "has the activation '" << name << "', expected Sigmoid, Tanh, Relu, Softsign or Softplus";
    return {};
  }
  return node.op(op, {x});
}

/// Whether a value has as many dimensions; rejects the node where it has not.
static bool checkRank(Node &node, Value x, int64_t rank, StringRef what) {
  if (!x || tensorOf(x).getRank() == rank)
    return bool(x);
  node.reject() << "has " << what << " of type " << tensorOf(x) << ", expected " << rank << " dimensions";
  return false;
}

/// Part `index` of `count` equal ones of the last dimension.
static Value part(Node &node, Value x, int64_t index, int64_t count) {
  if (!x)
    return {};
  SmallVector<int64_t> starts(size_t(tensorOf(x).getRank()), 0), sizes(tensorOf(x).getShape());
  sizes.back() /= count;
  starts.back() = index * sizes.back();
  return node.op("slice", {x}, {node.attr("starts", starts), node.attr("sizes", sizes)});
}

/// Index `index` of dimension `dim`, which vanishes.
static Value pick(Node &node, Value x, int64_t dim, int64_t index) {
  if (!x)
    return {};
  SmallVector<int64_t> starts(size_t(tensorOf(x).getRank()), 0), sizes(tensorOf(x).getShape()), shape;
  starts[size_t(dim)] = index;
  sizes[size_t(dim)] = 1;
  for (auto [at, size] : llvm::enumerate(sizes))
    if (int64_t(at) != dim)
      shape.push_back(size);
  return node.reshape(node.op("slice", {x}, {node.attr("starts", starts), node.attr("sizes", sizes)}), shape);
}

/// x · wᵀ + b
static Value linear(Node &node, Value x, Value weight, Value bias) {
  Value product = node.op("matmul", {x, weight}, {node.flag("transpose_rhs")});
  return bias ? node.op("add", {product, bias}) : product;
}

static SmallVector<Value> rnnStep(Node &node, const Cell &cell, Value gates, ArrayRef<Value> states) {
  Value sum = node.op("add", {gates, linear(node, states[0], cell.recurrent, cell.recurrentBias)});
  return {activate(node, cell.activations[0], sum)};
}

/// Gates are input, output, forget, cell.
static SmallVector<Value> lstmStep(Node &node, const Cell &cell, Value gates, ArrayRef<Value> states) {
  Value hidden = states[0], before = states[1];
  Value sum = node.op("add", {gates, linear(node, hidden, cell.recurrent, cell.recurrentBias)});
  auto gate = [&](int64_t index, int64_t peephole, Value seen) {
    Value own = part(node, sum, index, 4);
    if (cell.peepholes)
      own = node.op("add", {own, node.op("mul", {part(node, cell.peepholes, peephole, 3), seen})});
    return activate(node, cell.activations[0], own);
  };
  Value input = gate(0, 0, before), forget = gate(2, 2, before);
  Value candidate = activate(node, cell.activations[1], part(node, sum, 3, 4));
  Value next = node.op("add", {node.op("mul", {forget, before}), node.op("mul", {input, candidate})});
  Value output = gate(1, 1, next);
  return {node.op("mul", {output, activate(node, cell.activations[2], next)}), next};
}

/// Gates are update, reset, hidden.
static SmallVector<Value> gruStep(Node &node, const Cell &cell, Value gates, ArrayRef<Value> states) {
  Value hidden = states[0];
  if (!hidden)
    return {Value()};
  auto recurrent = [&](int64_t index, Value state) {
    return linear(node, state, cell.rows[size_t(index)], cell.biases[size_t(index)]);
  };
  auto gate = [&](int64_t index) {
    return activate(node, cell.activations[0], node.op("add", {part(node, gates, index, 3), recurrent(index, hidden)}));
  };
  Value update = gate(0), reset = gate(1), candidate;
  if (node.integer("linear_before_reset", 0) != 0)
    candidate = node.op("mul", {reset, recurrent(2, hidden)});
  else
    candidate = recurrent(2, node.op("mul", {reset, hidden}));
  candidate = activate(node, cell.activations[1], node.op("add", {part(node, gates, 2, 3), candidate}));
  // (1 - z) · candidate + z · hidden
  return {node.op("add", {candidate, node.op("mul", {update, node.op("sub", {hidden, candidate})})})};
}

/// Steps beyond a sequence's length keep the state and give 0.
static Value whereRunning(Node &node, Value lengths, Value time, Value running, Value ended) {
  if (!lengths)
    return running;
  Value count = node.reshape(lengths, {tensorOf(lengths).getDimSize(0), 1});
  Value isRunning = node.op("compare", {node.cast(time, tensorOf(count).getElementType()), count},
                            {node.attr("predicate", StringRef("lt"))});
  return node.op("select", {isRunning, running, ended});
}

namespace {
/// What RNN, GRU and LSTM differ in.
struct Kind {
  int64_t numGates;
  unsigned numStates;
  Step step;
  SmallVector<StringRef> activations; ///< where the node names none
};

/// A node of one of them, with its inputs [steps, batch, width].
struct Recurrence {
  Node &node;
  const Kind &kind;
  Value x, weight, recurrence, bias, lengths;
  bool isBatchFirst;
  std::string direction;
  SmallVector<std::string> named; ///< activations of all directions

  Recurrence(Node &node, const Kind &kind)
      : node(node), kind(kind), x(node.input(0)), weight(node.input(1)), recurrence(node.input(2)),
        bias(node.optionalInput(3)), lengths(node.optionalInput(4)), isBatchFirst(node.integer("layout", 0) != 0),
        direction(node.text("direction", "forward")), named(node.texts("activations")) {}

  int64_t steps() const { return tensorOf(x).getDimSize(0); }
  int64_t batch() const { return tensorOf(x).getDimSize(1); }
  int64_t hidden() const { return tensorOf(recurrence).getDimSize(2); }
  int64_t numDirections() const { return tensorOf(weight).getDimSize(0); }
  Type element() const { return tensorOf(x).getElementType(); }

  bool check();
  std::optional<Cell> cell(int64_t way);
  std::optional<SmallVector<Value>> firstStates(int64_t way);
  Value inputSums(int64_t way);
  Results run(int64_t way);
};
} // namespace

/// Whether inputs and attributes are ones that are known; the samples of the input stand second afterwards.
bool Recurrence::check() {
  if (!x || !weight || !recurrence)
    return false;
  if (tensorOf(x).getRank() != 3 || tensorOf(weight).getRank() != 3 || tensorOf(recurrence).getRank() != 3) {
    node.reject() << "has an input of type " << tensorOf(x)
                  << ", expected [steps, batch, width] and weights of as many dimensions";
    return false;
  }
  if (isBatchFirst)
    x = node.op("transpose", {x}, {node.attr("permutation", ArrayRef<int64_t>{1, 0, 2})});
  if (!x || (bias && !checkRank(node, bias, 2, "biases")) ||
      (lengths && !checkRank(node, lengths, 1, "sequence lengths")))
    return false;
  if (steps() >= 1 && !node.hasAttribute("clip") && node.integer("input_forget", 0) == 0 &&
      numDirections() == (direction == "bidirectional" ? 2 : 1))
    return true;
  node.reject() << "has " << steps() << " steps, " << numDirections()
                << " directions, or clip or input_forget, expected at least one step and none of these";
  return false;
}

/// The weights of one direction.
std::optional<Cell> Recurrence::cell(int64_t way) {
  Cell cell;
  cell.recurrent = pick(node, recurrence, 0, way);
  cell.recurrentBias =
      bias ? part(node, pick(node, bias, 0, way), 1, 2) : node.filled(0, {kind.numGates * hidden()}, element());
  for (int64_t gate = 0; kind.numGates == 3 && gate < kind.numGates; ++gate) {
    cell.rows.push_back(node.op("slice", {cell.recurrent},
                                {node.attr("starts", ArrayRef<int64_t>{gate * hidden(), 0}),
                                 node.attr("sizes", ArrayRef<int64_t>{hidden(), hidden()})}));
    cell.biases.push_back(part(node, cell.recurrentBias, gate, 3));
  }
  if (Value peepholes = kind.numStates == 2 ? node.optionalInput(7) : Value()) {
    if (!checkRank(node, peepholes, 2, "peepholes"))
      return std::nullopt;
    cell.peepholes = pick(node, peepholes, 0, way);
  }
  for (size_t i = 0; i < kind.activations.size(); ++i) {
    size_t at = size_t(way) * kind.activations.size() + i;
    cell.activations.push_back(at < named.size() ? StringRef(named[at]) : kind.activations[i]);
  }
  return cell;
}

/// [batch, hidden] each: given, or zeros.
std::optional<SmallVector<Value>> Recurrence::firstStates(int64_t way) {
  SmallVector<Value> states;
  for (unsigned state = 0; state < kind.numStates; ++state) {
    Value given = node.optionalInput(5 + state);
    if (given && !checkRank(node, given, 3, "a first state"))
      return std::nullopt;
    states.push_back(given ? pick(node, given, isBatchFirst ? 1 : 0, way)
                           : node.filled(0, {batch(), hidden()}, element()));
  }
  return states;
}

/// x · Wᵀ + b of all steps, as one product: [steps, batch, gates · hidden].
Value Recurrence::inputSums(int64_t way) {
  Value inputBias = bias ? part(node, pick(node, bias, 0, way), 0, 2) : Value();
  Value flat = node.reshape(x, {steps() * batch(), tensorOf(x).getDimSize(2)});
  return node.reshape(linear(node, flat, pick(node, weight, 0, way), inputBias),
                      {steps(), batch(), kind.numGates * hidden()});
}

/// One direction: the last states [1, batch, hidden], then the outputs [steps, 1, batch, hidden]. Nothing where the
/// node is rejected.
Results Recurrence::run(int64_t way) {
  std::optional<Cell> own = cell(way);
  std::optional<SmallVector<Value>> states = firstStates(way);
  if (!own || !states)
    return {};
  SmallVector<Value> scanned = {inputSums(way)};
  if (lengths)
    scanned.push_back(node.counting(steps(), node.builder().getI64Type()));
  unsigned numStates = kind.numStates;
  bool isReverse = way == 1 || direction == "reverse";
  Results results = node.scan(*states, scanned, isReverse, 1, [&](ValueRange arguments) -> Results {
    SmallVector<Value> before(arguments.take_front(numStates));
    Value time = lengths ? arguments.back() : Value();
    Results returned = kind.step(node, *own, arguments[numStates], before);
    Value output = whereRunning(node, lengths, time, returned[0], node.scalarLike(0, returned[0]));
    for (unsigned state = 0; state < numStates; ++state)
      returned[state] = whereRunning(node, lengths, time, returned[state], before[state]);
    returned.push_back(output);
    return returned;
  });
  if (node.isRejected() || llvm::is_contained(results, Value()))
    return {};
  for (unsigned state = 0; state < numStates; ++state)
    results[state] = node.reshape(results[state], {1, batch(), hidden()});
  results[numStates] = node.reshape(results[numStates], {steps(), 1, batch(), hidden()});
  return results;
}

static Results recurrent(Node &node, const Kind &kind) {
  Recurrence all(node, kind);
  if (!all.check())
    return {};
  SmallVector<SmallVector<Value>> ways(kind.numStates + 1); // of each result of `run`
  for (int64_t way = 0; way < all.numDirections(); ++way) {
    Results own = all.run(way);
    if (own.empty())
      return {};
    for (auto [index, value] : llvm::enumerate(own))
      ways[index].push_back(value);
  }
  // The directions stand second in outputs and first in states; where samples come first, they stand behind the
  // samples, and in outputs also behind the steps.
  auto joined = [&](ArrayRef<Value> parts, int64_t dim, ArrayRef<int64_t> batchFirst) {
    Value whole = parts.size() == 1 ? parts[0] : node.op("concat", parts, {node.attr("dim", dim)});
    return all.isBatchFirst ? node.op("transpose", {whole}, {node.attr("permutation", batchFirst)}) : whole;
  };
  Results results = {joined(ways.back(), 1, {2, 0, 1, 3})};
  for (ArrayRef<Value> parts : ArrayRef(ways).drop_back())
    results.push_back(joined(parts, 0, {1, 0, 2}));
  return results;
}

void addRecurrentNodes(NodeTable &table) {
  auto add = [&](const char *name, Kind kind) { table[name] = [kind](Node &node) { return recurrent(node, kind); }; };
  add("RNN", {1, 1, rnnStep, {"Tanh"}});
  add("GRU", {3, 1, gruStep, {"Sigmoid", "Tanh"}});
  add("LSTM", {4, 2, lstmStep, {"Sigmoid", "Tanh", "Tanh"}});
}

} // namespace dg::ir::onnx_import
