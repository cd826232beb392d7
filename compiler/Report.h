// SPDX-License-Identifier: Apache-2.0
// How every part of dgc ends a compilation: one message on stderr, and the exit code that goes with it.
#pragma once

#include "runtime/support/Status.h"

#include "llvm/Support/raw_ostream.h"

namespace dg::compiler {

inline constexpr int exitUsage = 2, exitBadInput = 65;

inline int report(const Status &status) {
  if (!status.message().empty()) // else diagnostics have told
    llvm::errs() << "dgc: error: " << status.message() << "\n";
  return status.exitCode();
}

} // namespace dg::compiler
