// SPDX-License-Identifier: Apache-2.0
// The pass that depends on the cluster, as dgc makes it.
#pragma once

#include "partitioner/model/Cluster.h"
#include "passes/Passes.h"

#include <optional>

namespace dg::passes {

/// Without `cluster`: the option's, or the host.
std::unique_ptr<mlir::Pass> createSliceSends(SliceSendsOptions options, std::optional<partitioner::Cluster> cluster);

} // namespace dg::passes
