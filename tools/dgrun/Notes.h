// SPDX-License-Identifier: Apache-2.0
// What a user should know of a run that is in order.
#pragma once

#include "runtime/session/RankSession.h"
#include "tools/dgrun/Flags.h"

namespace dg::dgrun {

/// What the user of a run that is in order may still want to know before it starts, a sentence each.
std::vector<std::string> notesOn(const Flags &flags, const session::Assignment &assignment);

} // namespace dg::dgrun
