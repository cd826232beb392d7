// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/time/Work.h"
#include "tools/dgviz/FlowGraph.h"

#include "runtime/plan/TaskTraits.h"

#include <map>
#include <set>
#include <string_view>

namespace dg::viz {

using namespace dg::plan;

namespace {

/// The layer that an op belongs to: its name up to the slash.
std::string_view layerOf(const Task &task) { return std::string_view(task.name).substr(0, task.name.find('/')); }

/// Who reads a value later in its chunk.
struct Readers {
  bool makeInputGradients = false;
  bool makeOthers = false;     ///< something that is no update
  std::string_view layer = {}; ///< of the readers that make weight gradients
};

class WorkFinder {
public:
  explicit WorkFinder(const Plan &plan)
      : plan(plan), work(plan.tasks.size(), Work::other), isGradient(plan.values.size()) {
    for (ValueId id = 0; id < plan.values.size(); ++id) {
      isGradient[id] = plan.values[id].kind == ValueKind::accumulator;
      if (plan.values[id].kind == ValueKind::parameter)
        parameters.insert(plan.values[id].name);
    }
    for (const Chunk &chunk : plan.chunks)
      if (chunk.phase == Phase::update)
        for (TaskId task : chunk.tasks)
          for (ValueId value : readsOf(startOf(plan, plan.tasks[task])))
            isGradient[value] = true;
  }

  std::vector<Work> run() {
    for (const Chunk &chunk : plan.chunks) {
      readers.clear();
      for (size_t i = chunk.tasks.size(); i-- > 0;)
        work[chunk.tasks[i]] = visit(chunk, plan.tasks[chunk.tasks[i]]);
    }
    return std::move(work);
  }

private:
  /// Tasks come last first: all that reads what this one writes is known.
  Work visit(const Chunk &chunk, const Task &task) {
    if (chunk.phase == Phase::begin)
      return Work::other;
    bool communicates = isCommunication(startOf(plan, task).kind());
    bool updates = chunk.phase == Phase::update || (chunk.phase == Phase::backward && isUpdate(task));
    bool forWeights = isForWeights(task, communicates || task.as<Copy>());
    for (ValueId value : readsOf(startOf(plan, task))) {
      Readers &known = readers[value];
      if (updates)
        continue;
      known.makeOthers = true;
      if (communicates || task.as<Copy>()) // stands for whoever reads what it moves
        known.makeInputGradients |= !forWeights;
      else if (!forWeights || (!known.layer.empty() && known.layer != layerOf(task)))
        known.makeInputGradients = true;
      else
        known.layer = layerOf(task);
    }
    if (communicates)
      return Work::communication;
    if (updates)
      return Work::update;
    if (chunk.phase == Phase::forward)
      return Work::forward;
    return forWeights ? Work::weightGradient : Work::inputGradient;
  }

  /// It writes a parameter or its state; or it only prepares that (clipping, a shard of a parameter), which the
  /// compiler names after the parameter.
  bool isUpdate(const Task &task) const {
    const std::vector<ValueId> writes = writesOf(startOf(plan, task));
    bool feedsUpdates = !writes.empty();
    for (ValueId value : writes) {
      ValueKind kind = plan.values[value].kind;
      if (kind == ValueKind::parameter || kind == ValueKind::state)
        return true;
      auto found = readers.find(value);
      feedsUpdates &= found != readers.end() && !found->second.makeOthers;
    }
    std::string_view layer = layerOf(task);
    return feedsUpdates && !task.as<Copy>() && (parameters.contains(layer) || layer == "gradient norm");
  }

  bool isForWeights(const Task &task, bool onlyMoves) const {
    const std::vector<ValueId> writes = writesOf(startOf(plan, task));
    for (ValueId value : writes) {
      auto found = readers.find(value);
      if (found == readers.end()) {
        if (!isGradient[value])
          return false;
      } else if (found->second.makeInputGradients ||
                 (!onlyMoves && !found->second.layer.empty() && found->second.layer != layerOf(task))) {
        return false;
      }
    }
    return !writes.empty();
  }

  const Plan &plan;
  std::vector<Work> work;
  std::vector<bool> isGradient; ///< per value: summed over micro-batches, or read in an update chunk
  std::set<std::string_view> parameters;
  std::map<ValueId, Readers> readers; ///< in the chunk that is looked at
};

} // namespace

std::vector<Work> workOf(const Plan &plan) { return WorkFinder(plan).run(); }

std::vector<bool> findUpdateInputs(const Plan &plan, const std::vector<Work> &work) {
  std::vector<bool> found(plan.values.size());
  for (ValueId id = 0; id < plan.values.size(); ++id)
    found[id] = plan.values[id].kind == ValueKind::accumulator;
  for (TaskId id = 0; id < plan.tasks.size(); ++id)
    if (work[id] == Work::update)
      for (ValueId value : readsOf(startOf(plan, plan.tasks[id])))
        if (ValueKind kind = plan.values[value].kind; kind == ValueKind::gradient || kind == ValueKind::accumulator)
          found[value] = true;
  return found;
}

} // namespace dg::viz
