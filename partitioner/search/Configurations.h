// SPDX-License-Identifier: Apache-2.0
// Everything that can be chosen about a plan but its stages and shardings, listed: what the search walks through.
#pragma once

#include "partitioner/search/PlanSearch.h"

#include <vector>

namespace dg::partitioner {

/// Meshes of all ranks, numbers of micro-batches, schedules and optimizer sharding within the options, that suit the
/// model: enough samples and ops, pinned ops that can be cut so many ways, enough stages for pinned ones. The order is
/// fixed. `numSegments` bounds the parts of the model of schedules that give a
/// rank several.
std::vector<Configuration> listConfigurations(const Model &model, const SearchOptions &options, size_t numSegments);

/// True where the axes that the options give can be those of a mesh of all ranks.
bool hasMesh(const SearchOptions &options);

/// Fails with usage, in the words of the descriptor, where the only schedule in question cannot have the stages and
/// micro-batches that are given.
Status checkSchedule(const Model &model, const SearchOptions &options);

} // namespace dg::partitioner
