// SPDX-License-Identifier: Apache-2.0
// The plan in a screenful of text, for `dgviz --text`.
#pragma once

#include "tools/dgviz/Report.h"

#include <string>

namespace dg::viz {

/// Several lines, each with a newline: what it is, what limits it, what would help, memory, traffic, and a timeline of
/// characters. Control characters in names are replaced, so that a model cannot drive a terminal.
std::string textSummary(const Report &report);

} // namespace dg::viz
