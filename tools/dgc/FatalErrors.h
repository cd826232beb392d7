// SPDX-License-Identifier: Apache-2.0
// The net below type inference. An op checks its operands where types are deduced; what it is made of is built later,
// by MLIR's builders, which end the process where an operand does not fit.
#pragma once

namespace dg::tools {

/// From here on an op that cannot be built ends the process as a bad model does, after the diagnostic that its
/// inference emitted at the author's line. Every other fatal error of LLVM aborts as before. Once, before any thread is
/// started.
void endWithBadInputWhereNoOpCanBeBuilt();

} // namespace dg::tools
