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

static Results recurrent(Node &node, int64_t numGates, unsigned numStates, const Step &step,
                         ArrayRef<StringRef> usualActivations) {
  Value x = node.input(0), weight = node.input(1), recurrence = node.input(2), bias = node.optionalInput(3),
        lengths = node.optionalInput(4);
  if (!x || !weight || !recurrence)
    return {};
  if (tensorOf(x).getRank() != 3 || tensorOf(weight).getRank() != 3 || tensorOf(recurrence).getRank() != 3) {
    node.reject() << "has an input of type " << tensorOf(x)
                  << ", expected [steps, batch, width] and weights of as many dimensions";
    return {};
  }
  bool isBatchFirst = node.integer("layout", 0) != 0;
  if (isBatchFirst)
    x = node.op("transpose", {x}, {node.attr("permutation", ArrayRef<int64_t>{1, 0, 2})});
  RankedTensorType type = tensorOf(x);
  int64_t steps = type.getDimSize(0), batch = type.getDimSize(1), numDirections = tensorOf(weight).getDimSize(0),
          hidden = tensorOf(recurrence).getDimSize(2);
  std::string direction = node.text("direction", "forward");
  if ((bias && !checkRank(node, bias, 2, "biases")) || (lengths && !checkRank(node, lengths, 1, "sequence lengths")))
    return {};
  if (steps < 1 || node.hasAttribute("clip") || node.integer("input_forget", 0) != 0 ||
      numDirections != (direction == "bidirectional" ? 2 : 1) ||
      (node.version() < 7 && node.integer("output_sequence", 0) != 0 && numStates == 0)) {
    node.reject() << "has " << steps << " steps, " << numDirections
                  << " directions, or clip or input_forget, expected at least one step and none of these";
    return {};
  }
  SmallVector<std::string> named = node.texts("activations");
  SmallVector<Value> outputs; // [steps, 1, batch, hidden] of each direction
  SmallVector<SmallVector<Value>> finals(numStates);
  for (int64_t way = 0; way < numDirections; ++way) {
    Cell cell;
    cell.recurrent = pick(node, recurrence, 0, way);
    Value inputBias;
    if (bias) {
      Value own = pick(node, bias, 0, way);
      inputBias = part(node, own, 0, 2);
      cell.recurrentBias = part(node, own, 1, 2);
    } else {
      cell.recurrentBias = node.filled(0, {numGates * hidden}, type.getElementType());
    }
    for (int64_t gate = 0; numGates == 3 && gate < numGates; ++gate) {
      cell.rows.push_back(node.op("slice", {cell.recurrent},
                                  {node.attr("starts", ArrayRef<int64_t>{gate * hidden, 0}),
                                   node.attr("sizes", ArrayRef<int64_t>{hidden, hidden})}));
      cell.biases.push_back(part(node, cell.recurrentBias, gate, 3));
    }
    if (Value peepholes = numStates == 2 ? node.optionalInput(7) : Value()) {
      if (!checkRank(node, peepholes, 2, "peepholes"))
        return {};
      cell.peepholes = pick(node, peepholes, 0, way);
    }
    for (size_t i = 0; i < usualActivations.size(); ++i) {
      size_t at = size_t(way) * usualActivations.size() + i;
      cell.activations.push_back(at < named.size() ? StringRef(named[at]) : usualActivations[i]);
    }
    SmallVector<Value> states;
    for (unsigned state = 0; state < numStates; ++state) {
      if (Value given = node.optionalInput(5 + state)) {
        if (!checkRank(node, given, 3, "a first state"))
          return {};
        states.push_back(isBatchFirst ? pick(node, given, 1, way) : pick(node, given, 0, way));
        continue;
      }
      states.push_back(node.filled(0, {batch, hidden}, type.getElementType()));
    }
    bool isReverse = way == 1 || direction == "reverse";
    // All steps' input sums are one product.
    Value sums =
        linear(node, node.reshape(x, {steps * batch, type.getDimSize(2)}), pick(node, weight, 0, way), inputBias);
    sums = node.reshape(sums, {steps, batch, numGates * hidden});
    SmallVector<Value> scanned = {sums};
    if (lengths)
      scanned.push_back(node.counting(steps, node.builder().getI64Type()));
    Results scan = node.scan(states, scanned, isReverse, 1, [&](ValueRange arguments) -> Results {
      SmallVector<Value> before(arguments.take_front(numStates));
      Value time = lengths ? arguments.back() : Value();
      Results returned = step(node, cell, arguments[numStates], before);
      Value output = whereRunning(node, lengths, time, returned[0], node.scalarLike(0, returned[0]));
      for (unsigned state = 0; state < numStates; ++state)
        returned[state] = whereRunning(node, lengths, time, returned[state], before[state]);
      returned.push_back(output);
      return returned;
    });
    outputs.push_back(scan[numStates] ? node.reshape(scan[numStates], {steps, 1, batch, hidden}) : Value());
    for (unsigned state = 0; state < numStates; ++state)
      finals[state].push_back(scan[state]);
  }
  if (node.isRejected() || llvm::is_contained(outputs, Value()))
    return {};
  // [steps, directions, batch, hidden], or [batch, steps, directions, hidden]
  Value stacked = outputs.size() == 1 ? outputs[0] : node.op("concat", outputs, {node.attr("dim", int64_t(1))});
  if (isBatchFirst)
    stacked = node.op("transpose", {stacked}, {node.attr("permutation", ArrayRef<int64_t>{2, 0, 1, 3})});
  Results results = {stacked};
  for (SmallVector<Value> &final : finals) {
    for (Value &value : final)
      value = node.reshape(value, {1, batch, hidden});
    Value joined = final.size() == 1 ? final[0] : node.op("concat", final, {node.attr("dim", int64_t(0))});
    if (isBatchFirst)
      joined = node.op("transpose", {joined}, {node.attr("permutation", ArrayRef<int64_t>{1, 0, 2})});
    results.push_back(joined);
  }
  return results;
}

void addRecurrentNodes(NodeTable &table) {
  table["RNN"] = [](Node &node) { return recurrent(node, 1, 1, rnnStep, {"Tanh"}); };
  table["GRU"] = [](Node &node) { return recurrent(node, 3, 1, gruStep, {"Sigmoid", "Tanh"}); };
  table["LSTM"] = [](Node &node) { return recurrent(node, 4, 2, lstmStep, {"Sigmoid", "Tanh", "Tanh"}); };
}

} // namespace dg::ir::onnx_import
