// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/PartialSums.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

namespace {

class PartialFinder {
public:
  explicit PartialFinder(const Plan &plan) : plan(plan) {}

  std::vector<PartialSum> run() {
    // A stage's chunks, last first: what the update reduces was made in the backward chunk.
    std::vector<ChunkId> order(plan.chunks.size());
    for (ChunkId id = 0; id < plan.chunks.size(); ++id)
      order[id] = id;
    std::sort(order.begin(), order.end(), [&](ChunkId a, ChunkId b) { return keyOf(a) > keyOf(b); });
    std::tuple<uint32_t, uint32_t> section;
    for (ChunkId id : order) {
      if (std::tuple own{plan.chunks[id].program, plan.chunks[id].stage}; own != section) {
        section = own;
        partial.clear();
      }
      const std::vector<TaskId> &tasks = plan.chunks[id].tasks;
      for (size_t i = tasks.size(); i-- > 0;)
        visit(tasks[i]);
    }
    std::sort(found.begin(), found.end(), [](const PartialSum &a, const PartialSum &b) {
      return std::tie(a.task, a.value) < std::tie(b.task, b.value);
    });
    return std::move(found);
  }

private:
  using Place = std::pair<uint64_t, uint64_t>; ///< offset and bytes: an op in place gives one place two values
  using Axes = std::set<Axis>;

  std::tuple<uint32_t, uint32_t, Phase, ChunkId> keyOf(ChunkId id) const {
    return {plan.chunks[id].program, plan.chunks[id].stage, plan.chunks[id].phase, id};
  }
  Place placeOf(ValueId id) const { return {plan.values[id].offset, plan.values[id].bytes}; }
  Axes axesAt(ValueId id) const {
    auto known = partial.find(placeOf(id));
    return known == partial.end() ? Axes() : known->second;
  }
  void add(TaskId task, ValueId value, const Axes &axes, bool isReduced) {
    if (!axes.empty())
      found.push_back({task, value, {axes.begin(), axes.end()}, isReduced});
  }
  bool isCut(ValueId id, Axis axis) const {
    const std::vector<std::optional<Axis>> &cuts = plan.values[id].sharding;
    return std::find(cuts.begin(), cuts.end(), axis) != cuts.end();
  }

  void visit(TaskId id) {
    const Task &task = plan.tasks[id];
    if (task.as<Finish>())
      return; // its communication stands for it
    const ReduceScatter *scatter = task.as<ReduceScatter>();
    if (task.as<AllReduce>() || scatter) {
      ValueId taken = valuesOf(task)[0];
      Axes axes = axesAt(taken);
      if (plan.mesh.sizeOf(*axisOf(task)) > 1)
        axes.insert(*axisOf(task));
      if (scatter)
        partial.erase(placeOf(scatter->to));
      partial[placeOf(taken)] = axes;
      add(id, taken, axes, true);
      return;
    }
    Axes made;
    const std::vector<ValueId> reads = readsOf(task), writes = writesOf(task);
    for (ValueId value : writes) {
      Axes axes = axesAt(value);
      add(id, value, axes, false);
      made.insert(axes.begin(), axes.end());
      if (std::find(reads.begin(), reads.end(), value) == reads.end())
        partial.erase(placeOf(value));
    }
    passOn(id, reads, writes, made);
  }

  /// A sum over an axis that none of the op's operands is cut over was partial before the op.
  void passOn(TaskId id, const std::vector<ValueId> &reads, const std::vector<ValueId> &writes, const Axes &made) {
    for (Axis axis : made) {
      bool isMadeHere = std::any_of(reads.begin(), reads.end(), [&](ValueId value) { return isCut(value, axis); });
      for (ValueId value : reads)
        if (ValueKind kind = plan.values[value].kind;
            !isMadeHere && (kind == ValueKind::activation || kind == ValueKind::gradient))
          partial[placeOf(value)].insert(axis);
    }
    for (ValueId value : reads)
      if (std::find(writes.begin(), writes.end(), value) == writes.end())
        add(id, value, axesAt(value), false);
  }

  const Plan &plan;
  std::map<Place, Axes> partial; ///< at the point that was reached, going back
  std::vector<PartialSum> found;
};

} // namespace

std::vector<PartialSum> partialSums(const Plan &plan) { return PartialFinder(plan).run(); }

} // namespace dg::viz
