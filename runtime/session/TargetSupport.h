// SPDX-License-Identifier: Apache-2.0
// Which of the targets that objects were made for this host can run.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace dg::session {

/// The kernel writes "avx512_bf16", "amx_tile" and "bmi1" where compilers say "avx512bf16", "amx-tile" and "bmi".
std::string compilerName(std::string flag);

/// The instruction sets of this host by the names that compilers use: "avx2", "fma", "avx512f", …
const std::vector<std::string> &hostFeatures();

/// Those of a comma-separated list ("avx2,fma") that this host lacks.
std::vector<std::string> missingFeatures(std::string_view needed);

/// Asks the kernel for the tile registers of AMX, which Linux gives to a process, its threads and its forks only on
/// demand. Fails where it has none to give.
Status requestTiles();

/// Why code that needs this list cannot run in this process, or "". Where it needs tiles, they are asked for.
std::string refusalOf(std::string_view needed);

} // namespace dg::session
