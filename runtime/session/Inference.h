// SPDX-License-Identifier: Apache-2.0
// One inference over a data set of any length: the program "infer", batch after batch, results as .npy files in the
// order of the samples.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/session/RankRun.h"

#include <functional>
#include <map>
#include <string>

namespace dg::session {

/// The path that means stdout: the result is kept in memory until it is whole.
inline constexpr const char *standardOutput = "-";

struct InferenceOptions {
  std::map<std::string, std::string> outputs; ///< output port → .npy file; of one may be standardOutput
  int memory = -1; ///< a file in memory that all ranks have, where one result goes to standardOutput
  uint64_t seed = 0;
  uint32_t threads = 1; ///< for the report
};

/// Whether the plan can do that; the same check before ranks exist.
Status checkInference(const plan::Plan &plan, const InferenceOptions &options);
/// Whether every result that was asked for is defined for that many samples: one that has no row for each of them, as a
/// mean over the batch, is of one batch without padding.
Status checkResults(const plan::Plan &plan, const InferenceOptions &options, int64_t numSamples);

/// What ranks that were ended before their results were whole have left.
void removeUnfinishedResults(const InferenceOptions &options);

/// What runs the samples that are left after whole batches, where a smaller batch holds them.
struct RestRun {
  const plan::Plan *plan = nullptr;         ///< null: the last batch is padded
  std::function<Result<Executor *>()> make; ///< takes the place of the run's executor, which is gone then
};

/// Every rank calls it. Each rank writes the rows it computed; a file appears under its name only when it is whole.
Status runInference(const RankRun &run, const InferenceOptions &options, const data::Dataset &dataset,
                    bool &hasPeerFailed, const RestRun &rest = {});

} // namespace dg::session
