// SPDX-License-Identifier: Apache-2.0
// Bytes that are on the disk when a function says so: what every file that must survive a crash is written with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dg {

/// Writes all of it, at `offset`. Returns 0 or errno; ENOSPC when the file takes no more.
int writeAllAt(int file, const void *data, size_t bytes, uint64_t offset);

/// Makes names in a folder durable: a file that was made or renamed there, a folder that was made. An empty path is the
/// current folder. Returns 0 or errno.
int syncFolder(const std::string &path);

/// Makes the folder and those above it that are missing, durably. Returns 0 or errno; 0 if it was there.
int makeFolders(const std::string &path);

} // namespace dg
