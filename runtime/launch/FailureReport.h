// SPDX-License-Identifier: Apache-2.0
// Which of several failures is the cause, and the block that tells it.
#pragma once

#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/launch/ranks/RankState.h"

#include <optional>

namespace dg {

/// How one rank's failure came to the coordinator.
struct FailureEvent {
  enum class Kind {
    signal,   ///< number = signal
    exitCode, ///< number = code, or unknownWaitStatus; the rank said nothing
    left,     ///< ended with 0 while others waited for it
    own,      ///< the rank's own report; number = exit code
    lost,     ///< its launcher is gone or silent; text says so
    stalled,  ///< it stopped moving; text: what the rank that gave up on it said
    link,     ///< nothing comes from rank `number`, which runs; text: what the rank that gave up said
    peer,     ///< the rank's report of another's failure; number = exit code
  };
  Kind kind = Kind::signal;
  int64_t rank = 0;
  int number = 0;
  std::string text;
};

/// Keeps the best explanation so far: the first that is not merely the consequence of another rank's failure.
class FailureReport {
public:
  void add(FailureEvent event);
  bool hasAny() const { return cause.has_value(); }
  /// A rank that died or failed by itself; waiting longer would not explain it better.
  bool isCertain() const { return cause && cause->kind != FailureEvent::Kind::peer; }
  const FailureEvent &event() const { return *cause; }
  /// That of the cause, as ErrorKind has them.
  int exitCode() const;
  /// Whether the same job may go on after it: a rank, a node or a link was lost, or a process crashed. What a rank says
  /// of the job itself, its data or its disk would come again.
  bool isPassing() const;

private:
  std::optional<FailureEvent> cause;
};

/// What is said when `signal` came before the first step.
std::string describeEarlyStop(const LaunchOptions &options, const char *signal);
/// What is said of a launcher whose messages do not prove to be its own.
inline constexpr const char *describeAltered =
    "cannot be understood: what it sent was changed on the way, by the network or by someone in it";
/// What is said of a launcher that is lost for its silence, and of one that soon will be.
std::string describeSilence(std::chrono::nanoseconds limit);
std::string describeSilence(std::chrono::nanoseconds silence, std::chrono::nanoseconds limit);
/// "rank 2 (host a, pid 4711)"
std::string describeRank(const RankState &rank);
/// What keeps it from moving, to follow what it does; empty: nothing that is known.
const char *describeHindrance(const RankState &rank);
/// "training, step 17, in task 'fc1/matmul' (mlp.mlir:4:8), waiting for rank 0"
std::string describeProgress(const RankState &rank, const LaunchOptions &options);
/// The first line of the block: rank, host, pid, what happened, what the rank was doing.
std::string describeCause(const FailureEvent &event, const std::vector<RankState> &ranks, const LaunchOptions &options);
/// The whole block: the cause, what the others did when they were stopped, and the last lines of the guilty rank.
std::string describeFailure(const FailureEvent &event, const std::vector<RankState> &ranks,
                            const LaunchOptions &options);

} // namespace dg
