// SPDX-License-Identifier: Apache-2.0
// The table of parameters that dgc makes of a model and packages keep as parameters.json.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace dg::viz {

struct Parameter {
  std::string name, type, role;     ///< role: trained, frozen, statistics, weight or constant
  std::vector<std::string> readers; ///< ops; several share it
};

/// Fails with badInput on what is no such table.
Result<std::vector<Parameter>> parametersFromJson(const std::string &text);

} // namespace dg::viz
