// SPDX-License-Identifier: Apache-2.0
#include "tools/dgc/Report.h"

#include "runtime/support/Printable.h"

#include <unistd.h>

#include <cstdio>

namespace dg::tools {

Report::Report() : isTerminal(isatty(STDERR_FILENO) == 1) {}

/// A diagnostic names its place; for all else that is dgc.
void Report::print(const compiler::Message &message) {
  using Kind = compiler::Message::Kind;
  if (message.kind == Kind::progress)
    return showProgress(message.text);
  clearProgress();
  const char *place = message.kind == Kind::error ? "dgc: error: " : message.kind == Kind::note ? "dgc: note: " : "";
  std::fprintf(stderr, "%s%s\n", place, printable(message.text).c_str());
}

void Report::printPhases(const std::vector<compiler::Phase> &phases) {
  clearProgress();
  for (const compiler::Phase &phase : phases)
    std::fprintf(stderr, "dgc: %8.3f s  %s\n", phase.seconds, phase.name.c_str());
}

void Report::showProgress(const std::string &text) {
  if (!isTerminal || Clock::now() - started < std::chrono::seconds(2))
    return;
  std::fprintf(stderr, "\r\033[Kdgc: %s", text.c_str());
  isShown = true;
}

void Report::clearProgress() {
  if (isShown)
    std::fputs("\r\033[K", stderr);
  isShown = false;
}

} // namespace dg::tools
