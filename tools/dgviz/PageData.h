// SPDX-License-Identifier: Apache-2.0
// What the page's script reads besides the plan itself, as JSON. The script draws; it works nothing out that stands
// here.
#pragma once

#include "tools/dgviz/Report.h"

#include <string>

namespace dg::viz {

/// Long lists are columns of numbers: a plan of 50,000 ops has to be read by a browser in a second. Fails only if
/// Graphviz does.
Result<std::string> pageData(const Report &report);

} // namespace dg::viz
