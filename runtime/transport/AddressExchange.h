// SPDX-License-Identifier: Apache-2.0
// How ranks tell each other where they are before a transport exists. It is the launcher's business and comes in as a
// function.
#pragma once

#include "runtime/support/Status.h"

#include <functional>
#include <string>
#include <vector>

namespace dg {

/// Gives everyone's bytes, by rank, for mine. Called by every rank the same number of times; keeps its own deadline.
using AddressExchange = std::function<Result<std::vector<std::string>>(const std::string &mine)>;

} // namespace dg
