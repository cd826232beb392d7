// SPDX-License-Identifier: Apache-2.0
#include "tools/dgc/FatalErrors.h"

#include "runtime/support/Status.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <unistd.h>

namespace dg::tools {

static void atFatalError(void *, const char *reason, bool) {
  // The text of the builders that mlir-tblgen writes.
  if (llvm::StringRef(reason).contains("Failed to infer result type")) {
    llvm::errs() << "dgc: note: the op at this place is made of others, of which one does not take these operands: "
                    "give it operands of other types or sizes\n";
    _exit(Status::error(ErrorKind::badInput, "").exitCode());
  }
  llvm::errs() << "LLVM ERROR: " << reason << "\n";
}

void endWithBadInputWhereNoOpCanBeBuilt() { llvm::install_fatal_error_handler(atFatalError); }

} // namespace dg::tools
