// SPDX-License-Identifier: Apache-2.0
// Work of tasks for plans made by hand: by kind and values, and what tests change in it.
#pragma once

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <string>
#include <vector>

namespace dg::plan::testing {

/// Gets what it reads, then what it only writes.
inline Kernel kernelOf(std::string symbol, const std::vector<ValueId> &reads, const std::vector<ValueId> &writes) {
  auto holds = [](const std::vector<ValueId> &list, ValueId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  Kernel kernel{std::move(symbol), {}};
  for (ValueId id : reads)
    kernel.buffers.push_back({id, holds(writes, id) ? Access::readWrite : Access::read});
  for (ValueId id : writes)
    if (!holds(reads, id))
      kernel.buffers.push_back({id, Access::write});
  return kernel;
}

/// The work of the kind on these values; of a kernel the last is what it writes.
inline Work workOf(TaskKind kind, const std::vector<ValueId> &values) {
  Work work = emptyWork(kind);
  std::visit(
      [&](auto &own) {
        if constexpr (requires { own.buffers; })
          for (ValueId id : values)
            own.buffers.push_back({id, Access::read});
        else if constexpr (requires { own.value; })
          own.value = values.at(0);
        else if constexpr (requires { own.from; })
          own.from = values.at(0), own.to = values.at(1);
      },
      work);
  if (Kernel *kernel = std::get_if<Kernel>(&work); kernel && !kernel->buffers.empty())
    kernel->buffers.back().access = Access::write;
  return work;
}

inline void setAxis(Task &task, Axis axis) {
  std::visit(
      [&](auto &work) {
        if constexpr (requires { work.axis; })
          work.axis = axis;
      },
      task.work);
}

inline void setDim(Task &task, int64_t dim) {
  std::visit(
      [&](auto &work) {
        if constexpr (requires { work.dim; })
          work.dim = dim;
      },
      task.work);
}

/// The channel of a message, or the position of a collective.
inline void setChannel(Task &task, uint32_t channel) {
  std::visit(
      [&](auto &work) {
        if constexpr (requires { work.order; })
          work.order = channel;
        else if constexpr (requires { work.channel; })
          work.channel = channel;
      },
      task.work);
}

inline void setPeer(Task &task, uint32_t stage) {
  std::visit(
      [&](auto &work) {
        if constexpr (requires { work.peerStage; })
          work.peerStage = stage;
      },
      task.work);
}

/// Shardings by name, "" for whole.
inline std::vector<std::optional<Axis>> axesNamed(const std::vector<std::string> &names) {
  std::vector<std::optional<Axis>> axes;
  for (const std::string &name : names)
    axes.push_back(enumNamed<Axis>(name));
  return axes;
}

} // namespace dg::plan::testing
