// SPDX-License-Identifier: Apache-2.0
// Bytes that are on the disk when a function says so: what every file that must survive a crash is written with. And
// files that are written whole or not at all.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dg {

/// Writes all of it, at `offset`. Returns 0 or errno; ENOSPC when the file takes no more.
int writeAllAt(int file, const void *data, size_t bytes, uint64_t offset);

/// Makes names in a folder durable: a file that was made or renamed there, a folder that was made. An empty path is the
/// current folder. Returns 0 or errno.
int syncFolder(const std::string &path);

/// Makes the folder and those above it that are missing, durably. Returns 0 or errno; 0 if it was there.
int makeFolders(const std::string &path);

/// What a path leads to where it is a link, so that a file that is renamed to its place leaves the link a link.
std::string followLinks(const std::string &path);

/// A name that nobody can guess, for a file beside the one that it becomes: 16 hexadecimal digits.
std::string randomSuffix();

/// Makes a file that was not there and opens it for writing; a link with that name is not followed. Returns the
/// descriptor, or the negative of errno.
int makeNewFile(const std::string &path);

/// The same where a name must be known to several processes: what has it, a link too, is removed first, never written
/// through. Of another user's in a folder such as /tmp it fails with EEXIST.
int makeFileAnew(const std::string &path);

/// A name beside `target` for the file that becomes it, which nobody can guess. Removes what writers of the same file
/// left there that were ended before they could rename it: nothing has touched it for a day.
std::string makePartialName(const std::string &target);

/// Writes a file whole or not at all, also where the host fails: beside its place, synchronised, then renamed. A device
/// or pipe is written to as it is. Fails with runFailed.
Status writeFile(const std::string &path, std::string_view text);

} // namespace dg
