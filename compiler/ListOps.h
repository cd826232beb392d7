// SPDX-License-Identifier: Apache-2.0
// dgc --list-ops.
#pragma once

#include "runtime/support/Status.h"

#include <string>

namespace dg::compiler {

/// The table of all ops as text, or of one its operands, attributes with their defaults and an example, with or without
/// "dg." before its name. Any thread.
Result<std::string> listOps(const std::string &name);

} // namespace dg::compiler
