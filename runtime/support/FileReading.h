// SPDX-License-Identifier: Apache-2.0
// A file from outside as text, of at most so many bytes: a device or pipe without end is an error, not a lack of
// memory.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <string>

namespace dg {

/// The whole file. Fails with badInput if it cannot be read or has more bytes.
Result<std::string> readText(const std::string &path, size_t mostBytes);

/// The same of a file that this user wrote: it fails with badInput too where the path is a link, or is no file that he
/// owns and nobody else can write.
Result<std::string> readOwnText(const std::string &path, size_t mostBytes);

} // namespace dg
