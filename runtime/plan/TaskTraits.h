// SPDX-License-Identifier: Apache-2.0
// What each kind of task is, in one table: what it reads and writes, and who takes part in it. Whoever walks
// tasks asks here and not by kind, unless the kind is what it is about.
#pragma once

#include "runtime/plan/Plan.h"

#include <span>

namespace dg::plan {

/// A value of a task: its key in JSON and how it is touched.
struct OperandTraits {
  const char *key;
  Access access;
};

struct TaskTraits {
  TaskKind kind;
  bool isCollective;                       ///< all ranks of an axis take part
  bool isCommunication;                    ///< another rank takes part, through the transport
  bool needsFinish;                        ///< starts something that a `finish` task of its chunk completes
  bool isCut;                              ///< works on blocks along a dimension, which both its values have
  std::span<const OperandTraits> operands; ///< kernels list their own
};
const TaskTraits &traitsOf(TaskKind kind);

inline bool isCollective(TaskKind kind) { return traitsOf(kind).isCollective; }
inline bool isCommunication(TaskKind kind) { return traitsOf(kind).isCommunication; }
inline bool needsFinish(TaskKind kind) { return traitsOf(kind).needsFinish; }

/// A task's work of the given kind, with nothing filled in.
Work emptyWork(TaskKind kind);

/// What the task itself touches, in ABI order. A finish and a loop touch nothing of their own: for them see startOf and
/// PlanFacts::access.
std::vector<Operand> operandsOf(const Task &task);
/// The values of operandsOf, those that are read, and those that are written. A value may occur twice.
std::vector<ValueId> valuesOf(const Task &task);
std::vector<ValueId> readsOf(const Task &task);
std::vector<ValueId> writesOf(const Task &task);

/// The communication that a finish completes; any other task itself.
const Task &startOf(const Plan &plan, const Task &task);

/// Of a collective or a slice.
std::optional<Axis> axisOf(const Task &task);
/// Of an all-gather, reduce-scatter or slice; otherwise 0.
int64_t dimOf(const Task &task);

/// A collective's position in the order of its axis, or the channel of a send or receive; otherwise 0.
uint32_t channelOf(const Task &task);
/// Of a send or receive; otherwise the task's own stage.
uint32_t peerStageOf(const Task &task);

/// Bytes of the whole tensor that a communication moves: what an all-gather makes, what any other takes; otherwise 0.
uint64_t movedBytes(const Plan &plan, const Task &task);

} // namespace dg::plan
