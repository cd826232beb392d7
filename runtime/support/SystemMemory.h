// SPDX-License-Identifier: Apache-2.0
// How much memory the host, or the control group that limits this process, has: what a run needs is compared with it
// before it begins.
#pragma once

#include <cstdint>
#include <optional>

namespace dg {

/// With swap; nothing where the system does not say.
std::optional<uint64_t> totalMemoryBytes();
/// Of it, what is left now.
std::optional<uint64_t> availableMemoryBytes();

} // namespace dg
