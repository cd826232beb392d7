// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/dgviz/MeasuredRun.h"
#include "runtime/plan/TaskTraits.h"
#include "tools/dgviz/FlowGraph.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace dg::viz::testing {

using namespace dg::plan;

namespace {

class Run {
public:
  Run(const Plan &plan, const RunTimes &times) : plan(plan), times(times), ranks(size_t(plan.mesh.numRanks())) {
    for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
      for (const Action &action : plan.programs[0].actions[size_t(plan.mesh.coordinatesOf(rank).pipe)])
        for (TaskId task : plan.chunks[action.chunk].tasks)
          ranks[size_t(rank)].tasks.push_back({task, action.microbatch});
  }

  std::string trace() {
    for (bool isStuck = false; !isStuck;) {
      isStuck = true;
      for (int64_t rank = 0; rank < int64_t(ranks.size()); ++rank)
        while (ranks[size_t(rank)].next < ranks[size_t(rank)].tasks.size() && advance(rank))
          isStuck = false;
    }
    return nlohmann::json{{"traceEvents", events}}.dump();
  }

private:
  struct Rank {
    std::vector<std::pair<TaskId, uint32_t>> tasks;
    size_t next = 0;
    double nowUs = 0;
  };

  /// False where the rank waits for another that is not so far yet.
  bool advance(int64_t rank) {
    Rank &own = ranks[size_t(rank)];
    auto [id, microbatch] = own.tasks[own.next];
    const Task &task = plan.tasks[id];
    if (const Finish *finish = task.as<Finish>()) {
      double endUs = endOf(rank, finish->task, microbatch);
      if (endUs < 0)
        return false;
      note(rank, 1, finish->task, microbatch, starts.at({rank, finish->task, microbatch}), endUs);
      note(rank, 0, id, microbatch, own.nowUs, std::max(own.nowUs, endUs));
      own.nowUs = std::max(own.nowUs, endUs);
    } else if (isCommunication(task.kind())) {
      starts[{rank, id, microbatch}] = own.nowUs;
      if (task.as<Send>())
        note(rank, 1, id, microbatch, own.nowUs, own.nowUs + times.communicationUs);
    } else {
      double lengthUs = times.computeUs(rank, id, microbatch);
      note(rank, 0, id, microbatch, own.nowUs, own.nowUs + lengthUs);
      own.nowUs += lengthUs;
    }
    ++own.next;
    return true;
  }

  double endOf(int64_t rank, TaskId id, uint32_t microbatch) const {
    const Task &task = plan.tasks[id];
    std::vector<std::pair<int64_t, TaskId>> others;
    if (const Receive *receive = task.as<Receive>()) {
      int64_t perStage = plan.mesh.numRanks() / plan.numStages();
      for (TaskId send = 0; send < plan.tasks.size(); ++send)
        if (plan.tasks[send].as<Send>() && channelOf(plan.tasks[send]) == receive->channel)
          others.push_back({receive->peerStage * perStage + rank % perStage, send});
    } else {
      for (int64_t other : plan.mesh.groupOf(rank, *axisOf(task)))
        others.push_back({other, id});
    }
    double readyUs = starts.at({rank, id, microbatch});
    for (auto [other, its] : others) {
      auto found = starts.find({other, its, microbatch});
      if (found == starts.end())
        return -1;
      readyUs = std::max(readyUs, found->second);
    }
    return readyUs + times.communicationUs;
  }

  void note(int64_t rank, int lane, TaskId id, uint32_t microbatch, double startUs, double endUs) {
    events.push_back({{"name", plan.tasks[id].name},
                      {"ph", "X"},
                      {"ts", 1000 + startUs},
                      {"dur", endUs - startUs},
                      {"pid", rank},
                      {"tid", lane},
                      {"args", {{"program", "train"}, {"step", 1}, {"microbatch", microbatch}, {"op", id}}}});
  }

  const Plan &plan;
  const RunTimes &times;
  std::vector<Rank> ranks;
  std::map<std::tuple<int64_t, TaskId, uint32_t>, double> starts; ///< of communications
  nlohmann::json events = nlohmann::json::array();
};

} // namespace

std::string traceOfRun(const Plan &plan, const RunTimes &times) { return Run(plan, times).trace(); }

} // namespace dg::viz::testing
