// SPDX-License-Identifier: Apache-2.0
// What a run tells its user: JSON lines (--json), or epoch lines with a progress bar where there is a terminal. Only
// rank 0 reports; the others have a silent reporter, so that the loop is the same everywhere.
#pragma once

#include "runtime/data/Prefetch.h"
#include "runtime/plan/Plan.h"
#include "runtime/session/report/LogPace.h"
#include "runtime/session/report/Metrics.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace dg {
struct LaunchEvent;
struct ReportMark;
} // namespace dg

namespace dg::session {

struct StartInfo {
  const plan::Plan *plan = nullptr;
  plan::ProgramKind program = plan::ProgramKind::train;
  int64_t batch = 0, samples = 0, stepsPerEpoch = 0;
  int64_t epochs = 0, steps = 0; ///< asked for; 0: not limited
  uint32_t threads = 1;
  uint64_t seed = 0;
  std::string target;      ///< of the kernels
  std::string resumedFrom; ///< empty: from the beginning
  int64_t step = 0;        ///< steps already done
  uint64_t copyBytes = 0;  ///< of rank 0, for saves behind steps
};

struct StepInfo {
  int64_t step = 0;  ///< from 1
  int64_t epoch = 0; ///< from 1
  int64_t stepInEpoch = 0, samples = 0;
  float loss = 0;
  double stepUs = 0, learningRate = 0;
  std::optional<float> gradientNorm = {}; ///< where the job computes it
};

/// A step of an inference.
struct InferredInfo {
  int64_t step = 0, samples = 0;
  double stepUs = 0;
  int64_t batch = 0; ///< of the plan that ran it
};

struct EpochInfo {
  int64_t epoch = 0; ///< from 1
  double meanLoss = 0, seconds = 0, learningRate = 0;
  int64_t samples = 0;
};

struct EvaluationInfo {
  int64_t epoch = 0, step = 0, samples = 0;
  double loss = 0, accuracy = 0, seconds = 0;
  bool hasLoss = false, hasAccuracy = false;
  Metrics metrics; ///< beyond these
  /// loss, accuracy, perplexity or one of the metrics; nothing if it was not computed.
  std::optional<double> find(const std::string &metric) const;
};

struct CheckpointInfo {
  std::string path;
  int64_t step = 0;
  double seconds = 0;
  bool isBest = false;     ///< of all evaluations so far, by --keep-best
  double stallSeconds = 0; ///< that steps have waited for it
};

/// How micro-batches are shared from now on.
struct DealInfo {
  int64_t step = 0; ///< those before it were shared otherwise
  std::vector<uint32_t> shares;
  std::vector<double> microbatchUs; ///< that each replica was measured to take; empty: nothing was measured
  std::string repeat;               ///< what --deal takes to share them so again, from the beginning of this run on
};

/// A save that failed, in a run that goes on.
struct SaveFailedInfo {
  int64_t step = 0;
  std::string message;
  bool isMissing = false; ///< it was tried again before
  int64_t left = 0;       ///< saves in a row that may be missing before the run ends
};

/// The evaluation with the lowest loss, or, where none is computed, the highest accuracy.
struct BestEvaluation {
  int64_t step = 0;
  double seconds = 0; ///< since the run began
  EvaluationInfo found;
  /// Whether `other` is better.
  bool isBeatenBy(const EvaluationInfo &other) const {
    return found.hasLoss ? other.loss < found.loss : other.accuracy > found.accuracy;
  }
};

struct EndInfo {
  int64_t steps = 0, epochs = 0;
  double seconds = 0;
  bool stopped = false;                    ///< by SIGTERM or Ctrl-C, before its end
  uint64_t arenaBytes = 0, peakBytes = 0;  ///< of rank 0: what the plan gives it, and what it took above its start
  std::string saved = {};                  ///< the checkpoint of the last step; empty: it was not saved
  int64_t samples = 0;                     ///< that this process has fed
  data::DataWait data = {};                ///< of rank 0
  std::optional<BestEvaluation> best = {}; ///< of this process
  std::string why = {};                    ///< a training ended early because of its evaluations
};

/// One thread. Every function may print at once or later, flush at the latest.
class Reporter {
public:
  virtual ~Reporter() = default;
  virtual void start(const StartInfo &) {}
  virtual void step(const StepInfo &) {}
  virtual void inferred(const InferredInfo &) {}
  virtual void epoch(const EpochInfo &) {}
  virtual void evaluation(const EvaluationInfo &) {}
  virtual void dealt(const DealInfo &) {}
  virtual void checkpoint(const CheckpointInfo &) {}
  virtual void saveFailed(const SaveFailedInfo &) {}
  virtual void end(const EndInfo &) {}
  virtual void flush() {}
  /// The first write that failed, as on a full disk; later ones are not tried. Ask it once all is flushed.
  virtual Status failure() const { return Status::ok(); }
};

/// For ranks other than 0.
std::unique_ptr<Reporter> makeSilentReporter();
/// One JSON object a line, of the steps those that are due. Steps are flushed at least every tenth of a second, other
/// events at once. `parameterTable`: a JSON array that follows the start, or "". `origin`: JsonLine::originOf, for
/// every line.
/// `mark` (may be null) outlives the process: what one before has told is left out, and what it may have told is marked
/// "repeated".
std::unique_ptr<Reporter> makeJsonReporter(FILE *out, LogPace steps = {}, std::string parameterTable = "",
                                           std::string origin = "", ReportMark *mark = nullptr);
/// Lines for people on `out`, of the steps those that are due, and a progress bar on `bar` (null: none).
std::unique_ptr<Reporter> makeTextReporter(FILE *out, FILE *bar, std::optional<LogPace> steps = {},
                                           ReportMark *mark = nullptr);

/// {"event":"failure",…} and others, as the launcher prints them.
std::string launchEventLine(const LaunchEvent &event);

} // namespace dg::session
