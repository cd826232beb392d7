// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan as dg.if, dg.while and dg.scan. A loop whose body needs the number of the trip while compiling (a
// slice, a shape) is written out.
#include "ir/dialect/Elements.h"
#include "ir/onnx/NodeTable.h"

#include <limits>

using namespace mlir;

namespace dg::ir::onnx_import {

/// More trips, written out, would make a graph that nobody wants to compile.
static constexpr int64_t maxTrips = 1024;
/// What exporters write for a loop that ends by its condition.
static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
/// More trips are not a scan: the condition is likely to end the loop earlier.
static constexpr int64_t maxCounted = 1 << 16;

/// The truth of a value that is a constant.
static std::optional<bool> truthOf(Value value) {
  std::optional<DenseElementsAttr> constant = value ? constantOf(value) : std::nullopt;
  if (!constant || constant->getNumElements() != 1)
    return std::nullopt;
  return hostTensorOf(*constant).data[0] != 0;
}

static Results branch(Node &node) {
  Value condition = node.input(0);
  if (!condition)
    return {};
  if (std::optional<bool> isTrue = truthOf(condition)) {
    FailureOr<Results> chosen = node.subgraph(*isTrue ? "then_branch" : "else_branch", {});
    return failed(chosen) ? Results() : *chosen;
  }
  Region branches[2];
  Results returned[2];
  for (size_t index : {0, 1}) {
    Block &block = branches[index].emplaceBlock();
    FailureOr<Results> results = node.subgraphIn(block, index == 0 ? "then_branch" : "else_branch", {});
    if (failed(results))
      return {};
    returned[index] = *results;
    OpBuilder end(node.context());
    end.setInsertionPointToEnd(&block);
    end.create<ReturnOp>(node.loc(), *results, ArrayAttr(), PlaceAttr());
  }
  auto typesOf = [](ValueRange values) { return SmallVector<Type>(values.getTypes()); };
  if (typesOf(returned[0]) != typesOf(returned[1])) {
    auto error = node.reject();
    error << "has branches with results of types ";
    llvm::interleaveComma(typesOf(returned[0]), error);
    error << " and ";
    llvm::interleaveComma(typesOf(returned[1]), error);
    error << ", expected equal ones where the condition is known only when the model runs";
    return {};
  }
  SmallVector<Value> operands = {node.reshape(condition, {})};
  llvm::append_range(operands, node.closeBodies({&branches[0], &branches[1]}));
  return node.control("if", operands, {}, branches, unsigned(returned[0].size()));
}

/// Slices of equal shape one behind the other along a new first dimension.
static Value stacked(Node &node, ArrayRef<Value> slices) {
  SmallVector<Value> parts;
  for (Value slice : slices) {
    if (!slice)
      return {};
    SmallVector<int64_t> shape(tensorOf(slice).getShape());
    shape.insert(shape.begin(), 1);
    parts.push_back(node.reshape(slice, shape));
  }
  return parts.size() == 1 ? parts[0] : node.op("concat", parts, {node.attr("dim", int64_t(0))});
}

namespace {
/// What a Loop node says.
struct Loop {
  Value condition;              ///< of the first trip
  SmallVector<Value> carried;   ///< first values
  size_t numStacked = 0;        ///< results of which each trip gives a slice
  std::optional<int64_t> trips; ///< at most; nothing: no limit, or `limit`
  Value limit;                  ///< the same, known only when the model runs
};
} // namespace

/// Whether a body gives what the node has results for.
static bool checkResults(Node &node, const Loop &loop, const FailureOr<Results> &results) {
  if (failed(results))
    return false;
  size_t expected = 1 + loop.carried.size() + loop.numStacked;
  if (results->size() == expected)
    return true;
  node.reject() << "has a body with " << results->size() << " results, expected " << expected;
  return false;
}

/// Every trip runs: a scan over the trips' numbers.
static Results countedLoop(Node &node, const Loop &loop) {
  Value numbers = node.counting(*loop.trips, node.builder().getI64Type());
  return node.scan(loop.carried, {numbers}, /*isReverse=*/false, unsigned(loop.numStacked),
                   [&](ValueRange arguments) -> Results {
                     SmallVector<Value> inputs = {arguments.back(), loop.condition};
                     llvm::append_range(inputs, arguments.drop_back());
                     FailureOr<Results> results = node.subgraph("body", inputs);
                     if (!checkResults(node, loop, results) || truthOf((*results)[0]) != true)
                       return {};
                     return Results(ArrayRef(*results).drop_front());
                   });
}

/// Trip by trip, with the number of each a constant.
static Results unrolledLoop(Node &node, const Loop &loop) {
  Value condition = loop.condition;
  SmallVector<Value> carried(loop.carried);
  SmallVector<SmallVector<Value>> slices(loop.numStacked);
  for (int64_t trip = 0; trip < *loop.trips; ++trip) {
    std::optional<bool> goesOn = truthOf(condition);
    if (!goesOn || trip >= maxTrips) {
      node.reject() << "has a condition that is known only when the model runs, or more than " << maxTrips
                    << " trips, and a body or results that need trips that can be counted";
      return {};
    }
    if (!*goesOn)
      break;
    SmallVector<Value> inputs = {node.scalar(double(trip), node.builder().getI64Type()), condition};
    inputs.append(carried);
    FailureOr<Results> results = node.subgraph("body", inputs);
    if (!checkResults(node, loop, results))
      return {};
    condition = (*results)[0];
    for (size_t i = 0; i < carried.size(); ++i)
      carried[i] = (*results)[1 + i];
    for (size_t i = 0; i < loop.numStacked; ++i)
      slices[i].push_back((*results)[1 + carried.size() + i]);
  }
  Results results(carried);
  for (SmallVector<Value> &own : slices) {
    if (own.empty()) {
      node.reject() << "makes no trip, and the shape of what it would stack is not known";
      return {};
    }
    results.push_back(stacked(node, own));
  }
  return results;
}

/// How often it runs is known only then.
static Results openLoop(Node &node, const Loop &loop) {
  Type i64 = node.builder().getI64Type();
  auto isBelow = [&](Value number) {
    return node.op("compare", {number, loop.limit}, {node.attr("predicate", StringRef("lt"))});
  };
  Value zero = node.scalar(0, i64), one = node.scalar(1, i64), goes = node.scalar(1, node.builder().getI1Type());
  Value condition = node.reshape(loop.condition, {});
  if (loop.limit)
    condition = node.op("logical_and", {condition, isBelow(zero)});
  Region region;
  Block &block = region.emplaceBlock();
  block.addArgument(zero.getType(), node.loc());
  for (Value value : loop.carried)
    block.addArgument(value.getType(), node.loc());
  {
    OpBuilder::InsertionGuard guard(node.builder());
    node.builder().setInsertionPointToEnd(&block);
    SmallVector<Value> inputs = {block.getArgument(0), goes};
    llvm::append_range(inputs, block.getArguments().drop_front());
    FailureOr<Results> results = node.subgraph("body", inputs);
    if (!checkResults(node, loop, results))
      return {};
    Value next = node.op("add", {block.getArgument(0), one}), again = node.reshape((*results)[0], {});
    if (loop.limit)
      again = node.op("logical_and", {again, isBelow(next)});
    SmallVector<Value> returned = {again, next};
    llvm::append_range(returned, ArrayRef(*results).drop_front());
    if (llvm::is_contained(returned, Value()))
      return {};
    node.builder().create<ReturnOp>(node.loc(), returned, ArrayAttr(), PlaceAttr());
  }
  SmallVector<Value> operands = {condition, zero};
  llvm::append_range(operands, loop.carried);
  llvm::append_range(operands, node.closeBodies(&region));
  SmallVector<NamedAttribute> attributes = {node.attr("num_carried", int64_t(1 + loop.carried.size()))};
  if (loop.trips && *loop.trips != unlimited)
    attributes.push_back(node.attr("max_trips", *loop.trips));
  Results results = node.control("while", operands, attributes, region, unsigned(1 + loop.carried.size()));
  results.erase(results.begin());
  return results;
}

static Results loop(Node &node) {
  Loop loop;
  loop.condition = node.hasInput(1) ? node.input(1) : node.scalar(1, node.builder().getI1Type());
  loop.carried = node.inputs(2);
  if (node.isRejected())
    return {};
  loop.numStacked = node.numOutputs() < loop.carried.size() ? 0 : node.numOutputs() - loop.carried.size();
  if (node.hasInput(0) && node.constantInput(0)) {
    loop.trips = node.neededInteger(0, "trip count");
    if (!loop.trips)
      return {};
    loop.trips = std::max<int64_t>(*loop.trips, 0);
  } else if (node.hasInput(0)) {
    loop.limit = node.reshape(node.input(0), {});
  }
  if (loop.trips && *loop.trips > 0 && *loop.trips <= maxCounted && truthOf(loop.condition) == true)
    if (std::optional<Results> counted = node.attempt([&] { return countedLoop(node, loop); }))
      return *counted;
  if (loop.numStacked == 0 && !(loop.trips && truthOf(loop.condition)))
    return openLoop(node, loop);
  if (loop.numStacked == 0)
    if (std::optional<Results> open = node.attempt([&] { return openLoop(node, loop); }))
      return *open;
  if (!loop.trips) {
    if (node.hasInput(0))
      node.neededConstant(0, "trip count");
    else
      node.reject()
          << "stacks results of a loop whose condition is known only when the model runs, expected a trip count";
    return {};
  }
  return unrolledLoop(node, loop);
}

/// Dimension `from` in front, or the first one at `to`.
static Value moved(Node &node, Value value, int64_t from, int64_t to) {
  if (!value || from == to)
    return value;
  SmallVector<int64_t> order;
  for (int64_t dim = 0; dim < tensorOf(value).getRank(); ++dim)
    if (dim != from)
      order.push_back(dim);
  order.insert(order.begin() + to, from);
  return node.op("transpose", {value}, {node.attr("permutation", order)});
}

static Value flipped(Node &node, Value value) {
  return node.op("flip", {value}, {node.attr("dims", ArrayRef<int64_t>{0})});
}

static Results scan(Node &node) {
  if (node.version() < 9) {
    node.reject() << "has a batch of its own, as before version 9, which is not supported";
    return {};
  }
  int64_t numScanned = node.integer("num_scan_inputs", 0);
  Results inputs = node.inputs();
  if (numScanned < 1 || numScanned > int64_t(inputs.size()) || llvm::is_contained(inputs, Value())) {
    if (!node.isRejected())
      node.reject() << "has " << numScanned << " scanned inputs of " << inputs.size();
    return {};
  }
  size_t numCarried = inputs.size() - size_t(numScanned);
  SmallVector<int64_t> axes = node.integers("scan_input_axes"), ways = node.integers("scan_input_directions"),
                       outputAxes = node.integers("scan_output_axes"),
                       outputWays = node.integers("scan_output_directions");
  axes.resize(size_t(numScanned), 0);
  ways.resize(size_t(numScanned), 0);
  size_t numStacked = node.numOutputs() < numCarried ? 0 : node.numOutputs() - numCarried;
  outputAxes.resize(numStacked, 0);
  outputWays.resize(numStacked, 0);
  SmallVector<Value> scanned;
  for (auto [index, axis] : llvm::enumerate(axes)) {
    Value input = inputs[numCarried + index];
    auto dim = node.dimension(axis, tensorOf(input).getRank());
    if (!dim)
      return {};
    input = moved(node, input, *dim, 0);
    scanned.push_back(ways[index] != 0 ? flipped(node, input) : input);
  }
  Results results = node.scan(ArrayRef(inputs).take_front(numCarried), scanned, /*isReverse=*/false,
                              unsigned(numStacked), [&](ValueRange arguments) -> Results {
                                FailureOr<Results> made = node.subgraph("body", arguments);
                                if (failed(made))
                                  return {};
                                if (made->size() == numCarried + numStacked)
                                  return *made;
                                node.reject() << "has a body with " << made->size() << " results, expected "
                                              << numCarried + numStacked;
                                return {};
                              });
  for (size_t i = 0; i < numStacked && !llvm::is_contained(results, Value()); ++i) {
    Value &result = results[numCarried + i];
    auto dim = node.dimension(outputAxes[i], tensorOf(result).getRank());
    if (!dim)
      return {};
    result = moved(node, outputWays[i] != 0 ? flipped(node, result) : result, 0, *dim);
  }
  return results;
}

void addControlNodes(NodeTable &table) {
  table["If"] = branch;
  table["Loop"] = loop;
  table["Scan"] = scan;
}

} // namespace dg::ir::onnx_import
