// SPDX-License-Identifier: Apache-2.0
// Why there is no plan: the smallest set of a user's constraints that cannot be met together, and by how much memory
// falls short.
#pragma once

#include "partitioner/search/PlanSearch.h"

#include <optional>
#include <string>
#include <vector>

namespace dg::partitioner {

struct Conflict {
  std::vector<std::string> constraints; ///< as they were given; without any of them there is a plan for the others
  /// What a plan needs at least that meets the other constraints, where memory is one of the set.
  std::optional<double> neededBytes;
  double memoryBytes = 0; ///< the limit that it falls short of
};

/// The model with the wishes of these pins, or nothing where two of them ask different things of one op.
std::optional<Model> applyPins(Model model, const std::vector<Pin> &pins);

/// Sets of one, two and three constraints are tried in turn (pins, forbidden axes, --mesh, --microbatches, memory);
/// where none of these is the cause, or there are too many, constraints are left out one by one while no plan appears,
/// and the set is only irreducible. Nothing where even without constraints there is no plan. Deterministic.
std::optional<Conflict> findConflict(const Model &model, const CostModel &costs, const SearchOptions &options);

/// The message of a conflict: what was asked for, that it cannot be met, and what to do.
Status describeConflict(const Conflict &conflict, const SearchOptions &options);

} // namespace dg::partitioner
