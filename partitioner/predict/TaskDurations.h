// SPDX-License-Identifier: Apache-2.0
// How long the tasks of a plan take on a cluster, from the cost model and the place of the stages on it.
#pragma once

#include "partitioner/model/CostModel.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <map>
#include <utility>

namespace dg::partitioner {

/// One thread; `plan` and `costs` outlive it.
class TaskDurations {
public:
  TaskDurations(const plan::Plan &plan, const CostModel &costs) : plan(plan), costs(costs) {}

  struct Cost {
    double computeUs = 0, commUs = 0;
  };

  /// What one task costs. A loop is its body's tasks one after another, trips times; one that contains itself, sends or
  /// receives is an error (badInput). The cost of a send is sendUs.
  Result<Cost> of(const plan::Task &task) { return of(task, 0); }
  /// How long a send takes its sender; its message arrives the link's latency later.
  double sendUs(const plan::Task &send);
  /// The slowest link between the ranks of two stages with equal data and tensor coordinates.
  const Link &linkBetweenStages(uint32_t from, uint32_t to);
  /// Whether the cores of the ranks move the bytes of this collective or send themselves: on hosts whose cores are the
  /// devices, between ranks of one node, which read and write each other's memory.
  bool takesCores(const plan::Task &task);

private:
  Result<Cost> of(const plan::Task &task, size_t depth);
  double collectiveUs(const plan::Task &task);
  Group groupOf(const plan::Task &task);
  double bytesOf(const plan::Task &task) const;
  plan::DType typeOf(const plan::Task &task) const;
  Result<Cost> loopCost(const plan::Task &task, const plan::Loop &loop, size_t depth);

  const plan::Plan &plan;
  const CostModel &costs;
  std::map<std::pair<uint32_t, uint32_t>, const Link *> links;
  std::map<std::pair<uint32_t, plan::Axis>, Group> groups;
};

} // namespace dg::partitioner
