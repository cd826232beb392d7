// SPDX-License-Identifier: Apache-2.0
// Who computes on the cores of hosts that have more ranks than cores. A rank stays on one core and has it to itself
// until it waits for others or, while another wants it, until its slice of time is over; so does the system, which
// counts who waits and asks again and again as one that has work.
#pragma once

#include "partitioner/model/Cluster.h"
#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace dg::partitioner {

/// Stages ask for the cores of all their ranks at once. First come, first served, but who finds its cores free need not
/// wait for those whose cores are not.
class CoreQueue {
public:
  /// A stage stands for its ranks in all replicas, which compute at the same time.
  CoreQueue(const plan::Mesh &mesh, const Cluster &cluster);

  /// Whether there are more ranks than cores anywhere; if not nobody needs to ask.
  bool isShared() const { return shared; }
  /// Ranks of the stage that take turns on one of its cores.
  uint32_t ranksOnCore(uint32_t stage) const { return stages[stage].most; }
  bool holds(uint32_t stage) const { return stages[stage].holds; }
  void ask(uint32_t stage) { waiting.push_back(stage); }
  void leave(uint32_t stage) { stages[stage].holds = false; }
  /// Gives free cores to those who wait; returns who has got theirs.
  std::vector<uint32_t> give(double nowUs);
  /// When a stage that computes has to give way: at the end of its slice if someone waits for a core of it, else never
  /// (infinity).
  double endOfSliceUs(uint32_t stage, double nowUs) const;

private:
  struct Seat {
    std::map<int64_t, uint32_t> ranks; ///< of the stage, by core
    uint32_t most = 1;
    bool holds = false;
    double sinceUs = 0; ///< has its cores
  };
  bool overlap(uint32_t a, uint32_t b) const;

  bool shared = false;
  double sliceUs;
  std::vector<Seat> stages;
  std::deque<uint32_t> waiting;
};

} // namespace dg::partitioner
