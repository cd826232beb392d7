// SPDX-License-Identifier: Apache-2.0
// When each op of a step runs: as the simulator predicts it, or as a trace measured it. Both have one form, so that
// picture, critical path and comparison need to know only one.
#pragma once

#include "partitioner/model/CostModel.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dg::viz {

struct TimelineEvent {
  plan::TaskId task = 0;
  uint32_t microbatch = 0;
  uint32_t row = 0;  ///< predicted: the stage; measured: the rank
  uint32_t lane = 0; ///< predicted: 0 computes, 1 communicates; measured: the thread, the last one communicates
  double startUs = 0, endUs = 0;
  bool isCritical = false;
  double waitUs = 0;             ///< of a communication, at its start: until the last of its ranks took part
  uint32_t awaited = plan::noId; ///< the event of that rank, where it was another
  double busyFromUs() const { return startUs + waitUs; }
};

/// How a row spends the step; the three add up to it.
struct RowTimes {
  double computeUs = 0;
  double exposedUs = 0; ///< communication that no computation hides; waiting for another rank is none
  double idleUs = 0;
};

struct Timeline {
  double totalUs = 0;
  uint32_t numRows = 0, numLanes = 2;
  std::vector<TimelineEvent> events; ///< by start
  double scale = 1; ///< predicted: what the simulated times were multiplied with to agree with the plan's step_us
  plan::Predicted simulated; ///< predicted: the simulator's sums, not scaled
};

/// The program that plan.predicted and plan.search are about: "train", or the first.
bool isPredictedProgram(const plan::Plan &plan, const plan::Program &program);

/// Simulates the program on the cluster. With `scalesToPlan`, for a cluster that is only assumed, times are scaled to
/// the plan's step_us. Fails like simulateProgram.
Result<Timeline> predictTimeline(const plan::Plan &plan, const plan::Program &program,
                                 const partitioner::CostModel &costs, bool scalesToPlan);

/// Of a measured timeline, whose events are in their order: finds out for each communication, and for the threads that
/// wait at its finish, which rank came last to it (`waitUs`, `awaited`). A receive waits for its send, a send
/// perhaps for its receive, a collective for all of its group.
void findMeetings(const plan::Plan &plan, Timeline &timeline);

struct Span {
  double startUs, endUs;
};
/// The same time, as spans that follow each other without touching.
std::vector<Span> merged(std::vector<Span> spans);

/// When a row computes, and when it does that or communicates.
struct BusyTimes {
  std::vector<Span> computing, all;
};
std::vector<BusyTimes> busyTimes(const plan::Plan &plan, const Timeline &timeline);
std::vector<RowTimes> rowTimes(const plan::Plan &plan, const Timeline &timeline);

/// Mean length of an op over micro-batches and rows; -1 where it never ran. Several threads on one op count from the
/// first start to the last end.
std::vector<double> meanTaskUs(const plan::Plan &plan, const Timeline &timeline);

/// Finds the events of an op: of the row and micro-batch, the one that ends last.
class EventIndex {
public:
  explicit EventIndex(const Timeline &timeline);
  uint32_t find(uint32_t row, plan::TaskId task, uint32_t microbatch) const; ///< noId: there is none

private:
  struct Key {
    uint64_t task, place;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    size_t operator()(const Key &key) const {
      return size_t(key.task * 0x9e3779b97f4a7c15u ^ key.place * 0xff51afd7ed558ccdu);
    }
  };
  std::unordered_map<Key, uint32_t, Hash> events;
};

/// The other side of a send or a receive, at the same data and tensor coordinates.
class PeerIndex {
public:
  /// `kind`: of the other side.
  PeerIndex(const plan::Plan &plan, const Timeline &timeline, plan::TaskKind kind);
  /// The event of `task`'s other side, for `row`; noId: it is not in the timeline.
  uint32_t find(const EventIndex &events, uint32_t row, const plan::Task &task, uint32_t microbatch) const;

private:
  const plan::Plan &plan;
  bool isByStage;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<plan::TaskId>> tasks; ///< by stage and channel
};

} // namespace dg::viz
