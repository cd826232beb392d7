// SPDX-License-Identifier: Apache-2.0
// Signals that come before there are ranks: they wait, and who waits for other launchers looks whether one has come.
#pragma once

#include <csignal>

namespace dg {

/// SIGTERM, SIGUSR1 and SIGUSR2 of this thread and of those that it starts wait from now on. A launch takes them once
/// it has ranks, which it lets have them again.
void holdSignals();
/// Whether SIGTERM or SIGUSR2 waits.
bool isStopAsked();
/// `mask` without the signals that are held.
sigset_t withoutHeld(sigset_t mask);

} // namespace dg
