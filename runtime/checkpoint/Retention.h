// SPDX-License-Identifier: Apache-2.0
// Which checkpoints of a folder stay (--keep, --keep-best), and whether they will fit on its disk.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <optional>
#include <string>

namespace dg::checkpoint {

/// DIRECTORY/best is a link to the checkpoint of the best evaluation.
inline constexpr const char *bestName = "best";

struct Retention {
  int64_t keep = 0;            ///< the latest so many stay; 0: all
  std::optional<int64_t> best; ///< the step of the best one, which stays too and gets a link
};

/// Removes what need not stay of the whole checkpoints of `directory`, and sets the link. What cannot be removed is
/// tried again the next time. For rank 0, after a write.
void retain(const std::string &directory, const Retention &retention);

/// Bytes of one checkpoint of the plan, its manifest included.
uint64_t bytesNeeded(const plan::Plan &plan);

/// Bytes that can be written into `directory`, or where it would be made; nothing if that cannot be asked.
std::optional<uint64_t> bytesFree(const std::string &directory);

} // namespace dg::checkpoint
