// SPDX-License-Identifier: Apache-2.0
// The plan in a screenful of text, for `dgviz --text`.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>

namespace dg::viz {

/// Several lines, each with a newline. Control characters in names are replaced, so that a model cannot drive a
/// terminal.
std::string textSummary(const plan::Plan &plan);

} // namespace dg::viz
