// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan. Shapes are static and values pure: both branches of an If are computed and one is chosen, and
// loops whose trips are known are written out, so that gradients flow through them.
#include "ir/Elements.h"
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

/// More would make a graph that nobody wants to compile.
static constexpr int64_t maxTrips = 1024;

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
  FailureOr<Results> yes = node.subgraph("then_branch", {}), no = node.subgraph("else_branch", {});
  if (failed(yes) || failed(no))
    return {};
  if (yes->size() != no->size()) {
    node.reject() << "has branches with " << yes->size() << " and " << no->size() << " results";
    return {};
  }
  Results results;
  for (auto [a, b] : llvm::zip(*yes, *no)) {
    if (a.getType() != b.getType()) {
      node.reject() << "has branches with results of types " << a.getType() << " and " << b.getType()
                    << ", expected equal ones where the condition is known only when the model runs";
      return {};
    }
    results.push_back(node.op("select", {node.reshape(condition, {}), a, b}));
  }
  return results;
}

/// Slices of equal shape side by side along a new dimension.
static Value stacked(Node &node, ArrayRef<Value> slices, int64_t axis) {
  SmallVector<Value> parts;
  int64_t dim = 0;
  for (Value slice : slices) {
    if (!slice)
      return {};
    RankedTensorType type = tensorOf(slice);
    dim = axis < 0 ? axis + type.getRank() + 1 : axis;
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin() + dim, 1);
    parts.push_back(node.reshape(slice, shape));
  }
  return parts.size() == 1 ? parts[0] : node.op("concat", parts, {node.attr("dim", dim)});
}

static Results loop(Node &node) {
  int64_t trips = maxTrips + 1;
  if (node.hasInput(0)) {
    auto given = node.neededInteger(0, "trip count");
    if (!given)
      return {};
    trips = *given;
  }
  Type i1 = node.builder().getI1Type(), i64 = node.builder().getI64Type();
  if (node.hasInput(1) && !node.neededConstant(1, "condition"))
    return {};
  Value condition = node.hasInput(1) ? node.input(1) : node.scalar(1, i1);
  SmallVector<Value> carried = node.inputs(2);
  size_t numStacked = node.numOutputs() < carried.size() ? 0 : node.numOutputs() - carried.size();
  SmallVector<SmallVector<Value>> slices(numStacked);
  for (int64_t trip = 0; trip < trips; ++trip) {
    std::optional<bool> goesOn = truthOf(condition);
    if (!goesOn || trip >= maxTrips) {
      node.reject() << "has a condition that is known only when the model runs, or more than " << maxTrips
                    << " trips, expected trips that can be counted";
      return {};
    }
    if (!*goesOn)
      break;
    SmallVector<Value> inputs = {node.scalar(double(trip), i64), condition};
    inputs.append(carried);
    FailureOr<Results> results = node.subgraph("body", inputs);
    if (failed(results))
      return {};
    if (results->size() != 1 + carried.size() + numStacked) {
      node.reject() << "has a body with " << results->size() << " results, expected "
                    << 1 + carried.size() + numStacked;
      return {};
    }
    condition = (*results)[0];
    for (size_t i = 0; i < carried.size(); ++i)
      carried[i] = (*results)[1 + i];
    for (size_t i = 0; i < numStacked; ++i)
      slices[i].push_back((*results)[1 + carried.size() + i]);
  }
  Results results(carried);
  for (SmallVector<Value> &own : slices) {
    if (own.empty()) {
      node.reject() << "makes no trip, and the shape of what it would stack is not known";
      return {};
    }
    results.push_back(stacked(node, own, 0));
  }
  return results;
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
  SmallVector<Value> carried(inputs.begin(), inputs.begin() + ptrdiff_t(numCarried));
  SmallVector<int64_t> axes = node.integers("scan_input_axes"), ways = node.integers("scan_input_directions"),
                       outputAxes = node.integers("scan_output_axes"),
                       outputWays = node.integers("scan_output_directions");
  axes.resize(size_t(numScanned), 0);
  ways.resize(size_t(numScanned), 0);
  size_t numStacked = node.numOutputs() < numCarried ? 0 : node.numOutputs() - numCarried;
  outputAxes.resize(numStacked, 0);
  outputWays.resize(numStacked, 0);
  int64_t trips = -1;
  for (auto [index, axis] : llvm::enumerate(axes)) {
    RankedTensorType type = tensorOf(inputs[numCarried + index]);
    auto dim = node.dimension(axis, type.getRank());
    if (!dim)
      return {};
    axis = *dim;
    int64_t size = type.getDimSize(unsigned(axis));
    if (trips >= 0 && size != trips) {
      node.reject() << "scans " << trips << " and " << size << " slices, expected as many of each input";
      return {};
    }
    trips = size;
  }
  if (trips < 1 || trips > maxTrips) {
    node.reject() << "scans " << trips << " slices, expected 1 to " << maxTrips;
    return {};
  }
  SmallVector<SmallVector<Value>> slices(numStacked);
  for (int64_t trip = 0; trip < trips; ++trip) {
    SmallVector<Value> arguments(carried);
    for (auto [index, axis] : llvm::enumerate(axes)) {
      RankedTensorType type = tensorOf(inputs[numCarried + index]);
      SmallVector<int64_t> starts(size_t(type.getRank()), 0), sizes(type.getShape()), shape(type.getShape());
      starts[size_t(axis)] = ways[index] != 0 ? trips - 1 - trip : trip;
      sizes[size_t(axis)] = 1;
      shape.erase(shape.begin() + axis);
      arguments.push_back(node.reshape(
          node.op("slice", {inputs[numCarried + index]}, {node.attr("starts", starts), node.attr("sizes", sizes)}),
          shape));
    }
    FailureOr<Results> results = node.subgraph("body", arguments);
    if (failed(results))
      return {};
    if (results->size() != numCarried + numStacked) {
      node.reject() << "has a body with " << results->size() << " results, expected " << numCarried + numStacked;
      return {};
    }
    carried.assign(results->begin(), results->begin() + ptrdiff_t(numCarried));
    for (size_t i = 0; i < numStacked; ++i)
      slices[i].push_back((*results)[numCarried + i]);
  }
  Results results(carried);
  for (size_t i = 0; i < numStacked; ++i) {
    if (outputWays[i] != 0)
      std::reverse(slices[i].begin(), slices[i].end());
    results.push_back(stacked(node, slices[i], outputAxes[i]));
  }
  return results;
}

void addControlNodes(NodeTable &table) {
  table["If"] = branch;
  table["Loop"] = loop;
  table["Scan"] = scan;
}

} // namespace dg::ir::onnx_import
