// SPDX-License-Identifier: Apache-2.0
#include "partitioner/search/StageOrder.h"

#include "partitioner/search/AcyclicPartition.h"
#include "partitioner/search/OrderedCuts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace dg::partitioner {

namespace {

/// Stages need not be equal: the search moves their bounds anyway.
constexpr double stageImbalance = 0.1;
/// An order is worth a second search if it saves this share of the bytes.
constexpr double leastSaving = 0.1;
constexpr uint32_t numTries = 2;

} // namespace

ModelDag dagOf(const Model &model, const CostModel &costs) {
  ModelDag made;
  std::map<int64_t, uint32_t> nodeOfOrigin;
  std::vector<uint64_t> weights;
  for (const ModelOp &op : model.ops) {
    uint32_t node = uint32_t(weights.size());
    if (op.origin >= 0)
      node = nodeOfOrigin.try_emplace(op.origin, node).first->second;
    if (node == weights.size())
      weights.push_back(0);
    for (const Work *work : {&op.forward, &op.inputGradient, &op.weightGradient})
      weights[node] +=
          uint64_t(std::llround(costs.kernelUs(work->flops, work->bytes, plan::DType::f32, work->op) * 1e3));
    made.nodeOf.push_back(node);
  }
  std::vector<std::pair<uint32_t, uint32_t>> reads; // value and reader
  for (size_t op = 0; op < model.ops.size(); ++op)
    for (const ModelUse &use : model.ops[op].operands)
      if (uint32_t producer = model.values[use.value].producer;
          producer != noOp && made.nodeOf[producer] != made.nodeOf[op])
        reads.push_back({use.value, made.nodeOf[op]});
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  std::vector<uint32_t> numReaders(model.values.size());
  for (auto [value, reader] : reads)
    ++numReaders[value];
  std::vector<WeightedDag::Edge> edges;
  for (auto [value, reader] : reads) {
    const ModelValue &sent = model.values[value];
    edges.push_back(
        {made.nodeOf[sent.producer], reader, uint64_t(std::llround(sent.elements * 4 / numReaders[value]))});
  }
  made.dag = WeightedDag(std::move(weights), std::move(edges));
  return made;
}

std::optional<std::vector<uint32_t>> findStageOrder(const Model &model, const CostModel &costs, uint32_t numStages) {
  if (numStages < 2 || model.ops.size() > maxOpsOrdered)
    return std::nullopt;
  ModelDag made = dagOf(model, costs);
  const WeightedDag &dag = made.dag;
  if (numStages > dag.numNodes())
    return std::nullopt;
  Result<AcyclicPartition> found = partitionAcyclic(dag, {numStages, stageImbalance, numTries});
  if (!found)
    return std::nullopt; // parts of one author's op wait for each other's: only the model's own order is known
  // Nodes are numbered by their first op, so this is the model's own order wherever it can be.
  auto contiguous = cutOrder(dag, dag.topologicalOrder(), {numStages, found->largestWeight});
  if (contiguous && double(found->cut) > (1 - leastSaving) * double(cutWeight(dag, *contiguous)))
    return std::nullopt;
  std::vector<uint32_t> order(model.ops.size());
  std::iota(order.begin(), order.end(), 0u);
  auto keyOf = [&](uint32_t op) { return std::pair(found->parts[made.nodeOf[op]], op); };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keyOf(a) < keyOf(b); });
  return order;
}

Model reorder(const Model &model, const std::vector<uint32_t> &order) {
  Model changed = model;
  std::vector<uint32_t> position(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    position[order[i]] = i;
    changed.ops[i] = model.ops[order[i]];
  }
  for (ModelValue &value : changed.values)
    if (value.producer != noOp)
      value.producer = position[value.producer];
  return changed;
}

} // namespace dg::partitioner
