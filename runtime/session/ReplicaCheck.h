// SPDX-License-Identifier: Apache-2.0
// Ranks that hold the same block of a parameter must hold the same bits. Every N steps (dgrun --check-replicas N) they
// compare hashes, so that a rank that has drifted is found while it is still known when.
#pragma once

#include "runtime/device/ValueAccess.h"

#include <optional>
#include <string>
#include <vector>

namespace dg::session {

/// The hashes of a rank's parameters and optimizer state, in the plan's order. Fails where a value cannot be read.
Result<std::vector<uint64_t>> hashReplicas(const plan::Plan &plan, plan::Coordinates at, const ValueAccess &values);

struct Drift {
  int64_t rank = 0; ///< the one that differs from most; the lowest where there is no majority
  std::string message;
};

/// What differs among the hashes of all ranks, if anything. The same on every rank.
std::optional<Drift> findDrift(const plan::Plan &plan, const std::vector<std::vector<uint64_t>> &hashes, int64_t step);

} // namespace dg::session
