// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <utility>

namespace dg::plan {

namespace {

constexpr OperandTraits inPlace[] = {{"value", Access::readWrite}};
constexpr OperandTraits taken[] = {{"value", Access::read}};
constexpr OperandTraits made[] = {{"value", Access::write}};
constexpr OperandTraits fromTo[] = {{"from", Access::read}, {"to", Access::write}};

// clang-format off
constexpr TaskTraits table[] = {
    // kind                   collective communicates finish cut    operands
    {TaskKind::kernel,        false,     false,       false, false, {}},
    {TaskKind::allReduce,     true,      true,        true,  false, inPlace},
    {TaskKind::allGather,     true,      true,        true,  true,  fromTo},
    {TaskKind::reduceScatter, true,      true,        true,  true,  fromTo},
    {TaskKind::send,          false,     true,        false, false, taken},
    {TaskKind::receive,       false,     true,        true,  false, made},
    {TaskKind::finish,        false,     false,       false, false, {}},
    {TaskKind::copy,          false,     false,       false, false, fromTo},
    {TaskKind::zero,          false,     false,       false, false, made},
    {TaskKind::slice,         false,     false,       false, true,  fromTo},
    {TaskKind::loop,          false,     false,       false, false, {}},
};
// clang-format on
static_assert(std::size(table) == allOf<TaskKind>().size());

template <size_t... kinds> constexpr bool isInOrder(std::index_sequence<kinds...>) {
  return ((table[kinds].kind == TaskKind(kinds)) && ...);
}
static_assert(isInOrder(std::make_index_sequence<std::size(table)>()));

template <size_t... kinds> Work emptyOf(size_t kind, std::index_sequence<kinds...>) {
  Work work;
  ((kinds == kind ? void(work.emplace<kinds>()) : void()), ...);
  return work;
}

/// What `get` finds in a task's work; `otherwise` where it has no such field.
template <typename Field, typename Get> Field fieldOf(const Task &task, Field otherwise, Get get) {
  return std::visit(
      [&](const auto &work) -> Field {
        if constexpr (requires { get(work); })
          return get(work);
        else
          return otherwise;
      },
      task.work);
}

std::vector<ValueId> valuesWhere(const Task &task, bool (*isWanted)(Access)) {
  std::vector<ValueId> values;
  for (const Operand &operand : operandsOf(task))
    if (isWanted(operand.access))
      values.push_back(operand.value);
  return values;
}

} // namespace

const TaskTraits &traitsOf(TaskKind kind) { return table[size_t(kind)]; }

Work emptyWork(TaskKind kind) { return emptyOf(size_t(kind), std::make_index_sequence<std::variant_size_v<Work>>()); }

std::vector<Operand> operandsOf(const Task &task) {
  std::span<const OperandTraits> traits = traitsOf(task.kind()).operands;
  return std::visit(
      [&](const auto &work) -> std::vector<Operand> {
        if constexpr (requires { work.buffers; })
          return work.buffers;
        else if constexpr (requires { work.value; })
          return {{work.value, traits[0].access}};
        else if constexpr (requires { work.from; })
          return {{work.from, traits[0].access}, {work.to, traits[1].access}};
        else
          return {};
      },
      task.work);
}

std::vector<ValueId> valuesOf(const Task &task) {
  return valuesWhere(task, [](Access) { return true; });
}
std::vector<ValueId> readsOf(const Task &task) { return valuesWhere(task, isRead); }
std::vector<ValueId> writesOf(const Task &task) { return valuesWhere(task, isWrite); }

const Task &startOf(const Plan &plan, const Task &task) {
  const Finish *finish = task.as<Finish>();
  return finish ? plan.tasks[finish->task] : task;
}

std::optional<Axis> axisOf(const Task &task) {
  return fieldOf<std::optional<Axis>>(task, std::nullopt, [](auto &work) -> decltype(work.axis) { return work.axis; });
}

int64_t dimOf(const Task &task) {
  return fieldOf<int64_t>(task, 0, [](auto &work) -> decltype(work.dim) { return work.dim; });
}

uint32_t channelOf(const Task &task) {
  uint32_t order = fieldOf<uint32_t>(task, 0, [](auto &work) -> decltype(work.order) { return work.order; });
  return fieldOf<uint32_t>(task, order, [](auto &work) -> decltype(work.channel) { return work.channel; });
}

uint32_t peerStageOf(const Task &task) {
  return fieldOf<uint32_t>(task, task.stage, [](auto &work) -> decltype(work.peerStage) { return work.peerStage; });
}

uint64_t movedBytes(const Plan &plan, const Task &task) {
  if (!isCommunication(task.kind()))
    return 0;
  const AllGather *gather = task.as<AllGather>();
  return plan.values[gather ? gather->to : operandsOf(task)[0].value].bytes;
}

} // namespace dg::plan
