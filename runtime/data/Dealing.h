// SPDX-License-Identifier: Apache-2.0
// How the samples of a step are dealt to micro-batches and data ranks. Pure arithmetic, apart from everything else
// because the whole promise "every sample counts once" rests on it: feeding, gathering of results and the tests share
// this file.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>

namespace dg::data {

/// A run of consecutive samples.
struct Block {
  int64_t begin = 0, size = 0;
  bool operator==(const Block &) const = default;
};

/// Part `index` of `count` things cut into `parts` consecutive blocks whose sizes differ by at most one, the larger
/// ones first: 10 over 4 is 3/3/2/2. `parts` > 0, 0 <= index < parts.
Block blockOf(int64_t count, int64_t parts, int64_t index);

/// Who shares a step: its micro-batches, and the ranks on the data axis.
struct Deal {
  int64_t microbatches = 1, dataRanks = 1;
  std::optional<Block> own = {}; ///< the micro-batches of this rank's replica; none: all
};

/// The share of a rank there.
Deal dealOf(const plan::Plan &plan, const plan::Program &program, plan::Coordinates at);

/// The samples (positions within the step, 0 .. samples-1) that data rank `dataRank` gets in micro-batch `microbatch`:
/// the step is cut over micro-batches first, then each micro-batch over the data ranks. None of a micro-batch that
/// another replica has.
Block dealtTo(int64_t samples, Deal deal, int64_t microbatch, int64_t dataRank);

/// The most rows any rank of any replica needs for one micro-batch of such a step.
int64_t rowsNeeded(int64_t samples, Deal deal);

} // namespace dg::data
