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

/// Writes a file whole or not at all: beside its place, then renamed. A device or pipe is written to as it is. Fails
/// with runFailed.
Status writeFile(const std::string &path, std::string_view text);

} // namespace dg
