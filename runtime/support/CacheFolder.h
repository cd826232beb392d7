// SPDX-License-Identifier: Apache-2.0
// Where things are kept that can be made again: the user's folder of caches, and folders that only he can write to.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <string_view>

namespace dg {

/// The folder that `given` (a flag), else the variable DG_CACHE names, else "dg" in the user's folder of caches; empty
/// where one of them is "off" or the user has none.
std::string cacheFolder(const std::string &given = "");

/// Makes the folder, for its owner alone, where it is missing. Fails with usage where it cannot be used, or where
/// others can write to it, who would choose `what`.
Status makePrivateFolder(const std::string &folder, std::string_view what);

} // namespace dg
