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

constexpr TaskTraits table[] = {
    //                           name              collective communication finish  cut    operands
    {TaskKind::kernel, "kernel", false, false, false, false, {}},
    {TaskKind::allReduce, "all_reduce", true, true, true, false, inPlace},
    {TaskKind::allGather, "all_gather", true, true, true, true, fromTo},
    {TaskKind::reduceScatter, "reduce_scatter", true, true, true, true, fromTo},
    {TaskKind::send, "send", false, true, false, false, taken},
    {TaskKind::receive, "receive", false, true, true, false, made},
    {TaskKind::finish, "finish", false, false, false, false, {}},
    {TaskKind::copy, "copy", false, false, false, false, fromTo},
    {TaskKind::zero, "zero", false, false, false, false, made},
    {TaskKind::slice, "slice", false, false, false, true, fromTo},
    {TaskKind::loop, "loop", false, false, false, false, {}},
};
static_assert(std::size(table) == std::variant_size_v<Work>);

template <size_t... kinds> constexpr bool isInOrder(std::index_sequence<kinds...>) {
  return ((table[kinds].kind == TaskKind(kinds)) && ...);
}
static_assert(isInOrder(std::make_index_sequence<std::size(table)>()));

template <size_t... kinds> Work emptyOf(size_t kind, std::index_sequence<kinds...>) {
  Work work;
  ((kinds == kind ? void(work.emplace<kinds>()) : void()), ...);
  return work;
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
std::span<const TaskTraits> allTaskTraits() { return table; }

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
  return std::visit(
      [](const auto &work) -> std::optional<Axis> {
        if constexpr (requires { work.axis; })
          return work.axis;
        else
          return std::nullopt;
      },
      task.work);
}

int64_t dimOf(const Task &task) {
  return std::visit(
      [](const auto &work) -> int64_t {
        if constexpr (requires { work.dim; })
          return work.dim;
        else
          return 0;
      },
      task.work);
}

uint32_t channelOf(const Task &task) {
  return std::visit(
      [](const auto &work) -> uint32_t {
        if constexpr (requires { work.order; })
          return work.order;
        else if constexpr (requires { work.channel; })
          return work.channel;
        else
          return 0;
      },
      task.work);
}

uint32_t peerStageOf(const Task &task) {
  return std::visit(
      [&](const auto &work) -> uint32_t {
        if constexpr (requires { work.peerStage; })
          return work.peerStage;
        else
          return task.stage;
      },
      task.work);
}

uint64_t movedBytes(const Plan &plan, const Task &task) {
  if (!isCommunication(task.kind()))
    return 0;
  const AllGather *gather = task.as<AllGather>();
  return plan.values[gather ? gather->to : operandsOf(task)[0].value].bytes;
}

} // namespace dg::plan
