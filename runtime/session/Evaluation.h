// SPDX-License-Identifier: Apache-2.0
// One pass of the program "eval" over a data set: means over all samples, whatever the batches.
#pragma once

#include "runtime/data/Feeder.h"
#include "runtime/session/RankRun.h"
#include "runtime/session/report/LossChannel.h"
#include "runtime/session/report/Metrics.h"

#include <functional>
#include <optional>
#include <vector>

namespace dg::session {

class Evaluation {
public:
  /// `batch` samples to a step, at most the program's; 0: the program's. `run` and `dataset` outlive the evaluation.
  /// Fails (usage) if the plan has no program "eval" or a smaller one.
  static Result<Evaluation> create(const RankRun &run, const data::Dataset &dataset, int64_t batch);

  /// Every rank calls it between the same two steps. Asks `mayGoOn` before each step of its own and gives nothing once
  /// that says no, on all ranks alike. All ranks get the same numbers. On failure `hasPeerFailed` is set if it came
  /// from another rank.
  Result<std::optional<EvaluationInfo>> evaluate(LossChannel &channel, uint64_t seed,
                                                 const std::function<bool()> &mayGoOn, bool &hasPeerFailed);

  /// How long its steps waited for their data.
  data::DataWait wait() const { return feeder.wait(); }

private:
  Evaluation(const RankRun &run, data::Feeder feeder) : run(&run), feeder(std::move(feeder)) {}
  const RankRun *run;
  data::Feeder feeder;
  size_t program = 0;
  int64_t batch = 0;
  int64_t numSamples = 0;
  std::vector<int64_t> samples; ///< of a step
  bool hasLoss = false, hasAccuracy = false;
  std::optional<MetricSums> metrics; ///< where the program computes them
};

struct EvaluationOptions {
  int64_t batch = 0; ///< 0: the program's
  uint64_t seed = 0;
  uint32_t threads = 1; ///< for the report
};

/// An evaluation and nothing else, reported. False if the job was asked to stop before its end. On failure
/// `hasPeerFailed` says whether it came from another rank.
Result<bool> runEvaluation(const RankRun &run, const EvaluationOptions &options, const data::Dataset &dataset,
                           bool &hasPeerFailed);

/// Whether `batch` samples can be evaluated at once by the plan; the same check before ranks exist.
Status checkEvaluation(const plan::Plan &plan, int64_t batch);

/// Fails (usage) where samples meet in an op of the program and its last batch, or each of `batch` samples (0: the
/// program's), would be padded. `flag` is the one that gave the samples, `advice` what to do about it.
Status checkWholeBatches(const plan::Program &program, int64_t batch, int64_t numSamples, const char *flag,
                         const char *advice);

/// The scalar of an output port on this rank (f32), or 0 if its stage has none.
float scalarOf(const Executor &executor, size_t program, const std::string &port);

bool hasOutput(const plan::Program &program, const std::string &name);

/// Index of the program of that kind, which the plan has.
size_t indexOfProgram(const plan::Plan &plan, plan::ProgramKind kind);

} // namespace dg::session
