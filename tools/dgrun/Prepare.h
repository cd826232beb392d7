// SPDX-License-Identifier: Apache-2.0
// From flags to an assignment: everything that can be wrong with files and flags is found here, before a rank exists.
#pragma once

#include "runtime/checkpoint/FolderLock.h"
#include "runtime/session/RankSession.h"
#include "tools/dgrun/Where.h"

namespace dg::dgrun {

/// Opens data and checkpoint and completes the options. `job` outlives the assignment.
Result<session::Assignment> prepare(const Flags &flags, const session::Job &job, const Where &where);

/// Makes the locked folder the one that this training writes to: sets those checkpoints aside that --resume-older
/// passed over, and has every save ask whether the lock is still there. For node 0, before ranks are forked; the lock
/// is held until they have ended.
Status claimFolder(const checkpoint::FolderLock &lock, session::Assignment &assignment);

/// What all nodes of a job must have in common, as text.
std::string describeRun(const session::Assignment &assignment);

/// After a training that ended with that code and did not save by itself: what there is of it, or "".
std::string describeSaved(const session::Assignment &assignment, int code);

} // namespace dg::dgrun
