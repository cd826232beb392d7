// SPDX-License-Identifier: Apache-2.0
// dgc --list-ops.
#pragma once

namespace dg::compiler {

/// Prints the table of all ops to stdout; the answer is the exit code.
int listOps();

} // namespace dg::compiler
