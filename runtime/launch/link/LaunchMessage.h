// SPDX-License-Identifier: Apache-2.0
// What the launchers of a job say to each other. The launcher of node 0 coordinates; it is told of events and gives
// commands. Its own ranks and those of other nodes use the same words, so that one host is only the shortest case.
#pragma once

#include "runtime/support/Secret.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dg {

struct LaunchMessage {
  enum class Kind : uint32_t {
    // Events, to the coordinator.
    join,     ///< text: a JoinRequest
    part,     ///< a rank's part of its next exchange; text: the bytes
    report,   ///< a rank's failure in its own words; number: exit code, or exit code + 256 if it only blames others
    ended,    ///< a rank is gone; number: wait status, or unknownWaitStatus; text: its last lines of output
    asked,    ///< number: the signal that asked this launcher, or one of its ranks, to end the job
    entered,  ///< after save or pause; number: the largest step that a rank here has begun
    progress, ///< text: RankProgress of every rank here
    gone,     ///< no rank is left here; text: as progress, for the last time
    kept,     ///< a rank has its snapshot of step `number` whole
    // Commands, from it.
    assign,   ///< text: a RankPlacement
    refuse,   ///< this launcher cannot take part; text: why; number: exit code
    gathered, ///< everyone's parts of exchange `number`; text: packParts
    save,     ///< ranks shall stop at one step and save
    release,  ///< number: that step
    pause,    ///< no rank shall begin a step before saveAt
    saveAt,   ///< ranks shall save before step `number`, and go on
    whole,    ///< all ranks have their snapshot of step `number` whole
    stop,     ///< ranks shall end at once, except `rank`, which is on its way; number: 1 to kill them
    restart,  ///< when no rank is left: they start anew; text: a RestartPoint
    beat,     ///< nothing but a sign of life
    end,      ///< the job is over; number: exit code; text: why, in one line, when it failed, and of whom: packEnd
  };
  Kind kind = Kind::beat;
  int64_t rank = -1;
  int64_t number = 0;
  std::string text = {};
};

/// The number of `ended` when nobody can say how the rank ended.
inline constexpr int unknownWaitStatus = -1;

/// What keeps a rank from moving that is not its own doing.
enum class Hindrance : uint32_t {
  none,
  suspended, ///< SIGSTOP, or a debugger
  output,    ///< nobody reads the stdout of the run
};

/// What a rank was last seen doing: a copy of its ProgressLine.
struct RankProgress {
  int64_t rank = 0, pid = 0;
  uint64_t step = 0, pulses = 0;
  uint32_t task = 0, microbatch = 0, phase = 0;
  int32_t waitingFor = 0;
  Hindrance hindrance = Hindrance::none;
  uint32_t looks = 0, waits = 0; ///< how often its launcher has looked at it, and seen it wait

  /// Whether it was seen doing the same.
  bool operator==(const RankProgress &other) const {
    return rank == other.rank && pid == other.pid && step == other.step && pulses == other.pulses &&
           task == other.task && microbatch == other.microbatch && phase == other.phase &&
           waitingFor == other.waitingFor && hindrance == other.hindrance;
  }
};

/// The reason of an end and the step of the rank that is the cause.
std::string packEnd(const std::string &why, uint64_t step);
bool unpackEnd(const std::string &text, std::string &why, uint64_t &step);

/// Of a job; transports take fewer.
inline constexpr int64_t mostRanks = 1 << 20;

/// Where ranks that start anew go on.
struct RestartPoint {
  int64_t generation = 0;            ///< how often they did; 0: the first start
  std::optional<int64_t> snapshot;   ///< the step of the snapshot to be restored
  std::optional<int64_t> checkpoint; ///< of the latest checkpoint that this run has written; restored if no snapshot is
};
std::string packRestart(const RestartPoint &point);
/// False if the text is not what packRestart made.
bool unpackRestart(const std::string &text, RestartPoint &point);

std::string packProgress(const std::vector<RankProgress> &ranks);
/// Nothing if the text is not what packProgress made.
std::vector<RankProgress> unpackProgress(const std::string &text);

/// What a launcher brings along.
struct JoinRequest {
  int64_t numLocal = 0;
  std::string hostName, hostId, fingerprint;
};
std::string packJoin(const JoinRequest &request);
/// False if the text is not what packJoin made, or speaks of a number of ranks that no job has.
bool unpackJoin(const std::string &text, JoinRequest &request);

/// Which ranks a launcher starts.
struct RankPlacement {
  int64_t firstRank = 0, numLocal = 1, numRanks = 1;
  int64_t firstLocalRank = 0; ///< another launcher of this host may have ranks too
  bool spansHosts = false;
  std::string hostName, hostId; ///< ids are equal for ranks that can share memory
  std::string jobId;            ///< of the batch system, or random
  std::string networkDevice;    ///< towards the other hosts; empty: any
  std::string networkAddress;   ///< of that interface
  std::string runId;            ///< empty: messages between hosts are not protected by keys
  Secret runKey;                ///< in launchers only, and not sent
  std::string linkReason;       ///< why messages between hosts are protected, or not; not sent
};
std::string packPlacement(const RankPlacement &placement);
/// False if the text is not what packPlacement made, or of ranks that are none of the job.
bool unpackPlacement(const std::string &text, RankPlacement &placement);

} // namespace dg
