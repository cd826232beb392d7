// SPDX-License-Identifier: Apache-2.0
// In which order a model's ops are cut into stages. A model is written in one of many topological orders; where it has
// branches, an acyclic partition may find another whose cuts cross fewer bytes: branch A on one stage, B on the next.
#pragma once

#include "partitioner/model/CostModel.h"
#include "partitioner/model/Model.h"
#include "partitioner/model/WeightedDag.h"

#include <optional>
#include <vector>

namespace dg::partitioner {

/// The model for a partition: backward work is folded onto its forward op, parts of one author's op are one node.
struct ModelDag {
  /// Weights in nanoseconds of the whole batch, edges in bytes; the readers of a value share its bytes, so that a cut
  /// behind it counts it once.
  WeightedDag dag;
  std::vector<uint32_t> nodeOf; ///< by op
};
ModelDag dagOf(const Model &model, const CostModel &costs);

/// The ops in an order whose stages of about equal time cut fewer bytes than the model's own order can; nothing where
/// none was found. Deterministic. Models of more than `maxOpsOrdered` ops keep theirs.
inline constexpr size_t maxOpsOrdered = 20'000;
std::optional<std::vector<uint32_t>> findStageOrder(const Model &model, const CostModel &costs, uint32_t numStages);

/// The same model with its ops in this order, which must be topological; values keep their numbers.
Model reorder(const Model &model, const std::vector<uint32_t> &order);

} // namespace dg::partitioner
