// SPDX-License-Identifier: Apache-2.0
// dgc --list-ops.
#pragma once

#include <string>

namespace dg::compiler {

/// The table of all ops as text. Any thread.
std::string listOps();

} // namespace dg::compiler
