// SPDX-License-Identifier: Apache-2.0
// UCX gives a shared memory file a name until it is filled with zeros (0.3 ms for each of three). A rank killed right
// then leaves the file behind; this finds and removes it.
#pragma once

#include <ctime>

namespace dg {

/// Removes UCX's files in /dev/shm that belong to this user, were made since `since` (wall clock), and that no process
/// has open or mapped after being a second old. Without such files, the usual case, it reads one directory; else it
/// takes up to a second.
void removeOrphanSegments(timespec since);

} // namespace dg
