// SPDX-License-Identifier: Apache-2.0
// The directory of a tar archive that lies in memory: ustar, with the long names of GNU and POSIX.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace dg::data {

/// A regular file of the archive.
struct TarMember {
  std::string_view name;            ///< valid while it is visited
  std::span<const std::byte> bytes; ///< inside the archive
};

/// Visits the files of an archive in their order, until one visit fails. Nothing is written anywhere. Fails with
/// badInput and `where` if the archive is damaged or cut, holds links, devices or sparse files, or names a path outside
/// of itself.
Status readTar(const std::string &where, std::span<const std::byte> bytes,
               const std::function<Status(const TarMember &)> &visit);

} // namespace dg::data
