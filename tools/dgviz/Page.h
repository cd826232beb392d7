// SPDX-License-Identifier: Apache-2.0
// The page: one HTML file with everything in it, which loads nothing and runs only its own script.
#pragma once

#include "tools/dgviz/Report.h"

#include <string>

namespace dg::viz {

/// The whole page. Names from the plan reach it only as JSON in a data block, with every '<' escaped, and are shown
/// with textContent. Fails only if Graphviz does.
Result<std::string> makePage(const Report &report);

} // namespace dg::viz
