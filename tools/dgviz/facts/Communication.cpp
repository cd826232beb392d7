// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/Communication.h"

#include "runtime/plan/TaskTraits.h"

#include <map>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

std::vector<CommunicationOp> communicationOps(const Plan &plan, const Program &program,
                                              const std::vector<double> &predictedUs,
                                              const std::vector<double> *measuredUs) {
  std::vector<CommunicationOp> ops;
  std::map<TaskId, size_t> known;
  for (const std::vector<Action> &actions : program.actions)
    for (const Action &action : actions)
      for (TaskId id : plan.chunks[action.chunk].tasks) {
        const Task &task = plan.tasks[id];
        if (!isCommunication(task.kind()) || task.as<Receive>())
          continue;
        auto [found, isNew] = known.try_emplace(id, ops.size());
        if (isNew) {
          const AllReduce *reduce = task.as<AllReduce>();
          std::string algorithm = reduce                      ? reduce->algorithm.name()
                                  : isCollective(task.kind()) ? Bracketing().name()
                                                              : std::string();
          ops.push_back({id, axisOf(task).value_or(Axis::pipe), algorithm, movedBytes(plan, task), 0,
                         std::max(0.0, predictedUs[id]), measuredUs ? (*measuredUs)[id] : -1});
        }
        ++ops[found->second].calls;
      }
  return ops;
}

namespace {

/// What the ops of one kind, stage and axis add to a pair of ranks that takes part in them.
struct Flow {
  double bytes = 0, timeUs = 0;
};

} // namespace

TrafficMatrix trafficMatrix(const Plan &plan, const std::vector<CommunicationOp> &ops, uint32_t maxSize) {
  auto numRanks = uint32_t(plan.mesh.numRanks());
  TrafficMatrix matrix;
  matrix.ranksPerCell = (numRanks + maxSize - 1) / maxSize;
  matrix.size = (numRanks + matrix.ranksPerCell - 1) / matrix.ranksPerCell;
  matrix.bytes.resize(size_t(matrix.size) * matrix.size);
  matrix.timeUs.resize(matrix.bytes.size());
  auto add = [&](int64_t from, int64_t to, const Flow &flow) {
    size_t cell = size_t(from / matrix.ranksPerCell) * matrix.size + size_t(to / matrix.ranksPerCell);
    matrix.bytes[cell] += flow.bytes;
    matrix.timeUs[cell] += flow.timeUs;
  };
  // Ops are summed first: there are few kinds of them, but perhaps thousands of ranks.
  std::map<std::tuple<uint32_t, TaskKind, Axis, uint32_t>, Flow> flows; // stage, kind, axis, peer stage
  for (const CommunicationOp &op : ops) {
    const Task &task = plan.tasks[op.task];
    Flow &flow = flows[{task.stage, task.kind(), op.axis, peerStageOf(task)}];
    flow.bytes += double(op.bytes) * op.calls;
    flow.timeUs += op.predictedUs * op.calls;
  }
  for (const auto &[key, flow] : flows) {
    const auto &[stage, kind, axis, partner] = key;
    for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank) {
      Coordinates at = plan.mesh.coordinatesOf(rank);
      if (at.pipe != int64_t(stage))
        continue;
      if (kind == TaskKind::send) {
        at.pipe = partner;
        add(rank, plan.mesh.rankOf(at), flow);
        continue;
      }
      std::vector<int64_t> group = plan.mesh.groupOf(rank, axis);
      double share = (kind == TaskKind::allReduce ? 2.0 : 1.0) / double(group.size());
      for (size_t other = 0; other < group.size(); ++other)
        if (group[other] != rank)
          add(rank, group[other], {flow.bytes * share, flow.timeUs});
    }
  }
  return matrix;
}

} // namespace dg::viz
