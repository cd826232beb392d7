// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/HeldSignals.h"

namespace dg {

static constexpr int held[] = {SIGTERM, SIGUSR1, SIGUSR2};

void holdSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : held)
    sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

bool isStopAsked() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGUSR2) == 1;
}

sigset_t withoutHeld(sigset_t mask) {
  for (int signal : held)
    sigdelset(&mask, signal);
  return mask;
}

} // namespace dg
