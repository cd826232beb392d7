// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/InitialValues.h"

#include "runtime/plan/Elements.h"
#include "runtime/support/CounterRandom.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace dg {

using plan::DType;
using plan::Init;

/// Random numbers need elements that can hold them.
static bool canDraw(DType type, Init::Kind kind) {
  return kind == Init::Kind::constant || plan::isFloat(type) || type == DType::i32 || type == DType::i64;
}

static uint64_t numElements(const std::vector<int64_t> &shape) {
  uint64_t count = 1;
  for (int64_t size : shape)
    count *= uint64_t(size);
  return count;
}

Status checkInitial(const plan::Value &value, std::span<const std::byte> wholeTensor) {
  if (value.init.kind == Init::Kind::none)
    return Status::ok();
  if (value.shape.size() != value.globalShape.size() || value.sharding.size() > value.shape.size())
    return Status::error(
        ErrorKind::badInput,
        "value '{}' has {} dimensions, {} global ones and {} shardings; the plan is damaged: compile it "
        "again",
        value.name, value.shape.size(), value.globalShape.size(), value.sharding.size());
  if (uint64_t bytes = numElements(value.shape) * uint64_t(plan::sizeOf(value.dtype)); bytes > value.bytes)
    return Status::error(ErrorKind::badInput,
                         "value '{}' has a shape of {} bytes and a slot of {}; the plan is damaged: compile it again",
                         value.name, bytes, value.bytes);
  if (value.init.kind != Init::Kind::file) {
    if (canDraw(value.dtype, value.init.kind))
      return Status::ok();
    return Status::error(ErrorKind::badInput,
                         "value '{}' of type {} starts from random numbers, expected a float, i32 or i64: start it "
                         "from a constant or a file",
                         value.name, plan::nameOf(value.dtype));
  }
  uint64_t expected = numElements(value.globalShape) * uint64_t(plan::sizeOf(value.dtype));
  if (wholeTensor.size() != expected)
    return Status::error(ErrorKind::badInput,
                         "the initial tensor of '{}' has {} bytes, expected {} for its global shape; compile the job "
                         "again",
                         value.name, wholeTensor.size(), expected);
  return Status::ok();
}

namespace {

/// A run of consecutive elements of the global tensor and where they go in the shard.
struct Run {
  uint64_t shardIndex, globalIndex, count;
};

/// Calls visit for every row of the shard (its last dimension) that lies inside the global tensor.
template <typename Visit>
void forEachRun(const plan::Value &value, const plan::Mesh &mesh, plan::Coordinates at, Visit visit) {
  size_t rank = value.shape.size();
  if (rank == 0)
    return visit(Run{0, 0, 1});
  std::vector<int64_t> start(rank, 0), valid(rank), index(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    int64_t global = value.globalShape[d];
    if (d < value.sharding.size() && value.sharding[d]) {
      int64_t parts = mesh.sizeOf(*value.sharding[d]);
      start[d] = (global + parts - 1) / parts * at[*value.sharding[d]];
    }
    valid[d] = std::clamp<int64_t>(global - start[d], 0, value.shape[d]);
    if (valid[d] == 0)
      return;
  }
  while (true) {
    uint64_t shardIndex = 0, globalIndex = 0;
    for (size_t d = 0; d < rank; ++d) {
      shardIndex = shardIndex * uint64_t(value.shape[d]) + uint64_t(index[d]);
      globalIndex = globalIndex * uint64_t(value.globalShape[d]) + uint64_t(start[d] + index[d]);
    }
    visit(Run{shardIndex, globalIndex, uint64_t(valid[rank - 1])});
    size_t d = rank - 1;
    do {
      if (d == 0)
        return;
      index[d] = 0;
      --d;
    } while (++index[d] == valid[d]);
  }
}

/// A number as an element: bools are 0 or 1, bf16 rounds from float.
template <typename T> T elementOf(double number) {
  if constexpr (std::is_same_v<T, bool>)
    return number != 0;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return BFloat16(float(number));
  else
    return T(number);
}

template <typename T> void drawRun(const plan::Value &value, uint64_t seed, uint64_t stream, const Run &run, T *out) {
  T *to = out + run.shardIndex;
  switch (value.init.kind) {
  case Init::Kind::constant:
    std::fill_n(to, run.count, elementOf<T>(value.init.value));
    break;
  case Init::Kind::uniform: {
    float bound = float(value.init.value);
    for (uint64_t i = 0; i < run.count; ++i)
      to[i] = elementOf<T>((2.0f * uniformAt(seed, stream, run.globalIndex + i) - 1.0f) * bound);
    break;
  }
  case Init::Kind::normal:
    for (uint64_t i = 0; i < run.count; ++i)
      to[i] = elementOf<T>(float(double(normalAt(seed, stream, run.globalIndex + i)) * value.init.value));
    break;
  case Init::Kind::none:
  case Init::Kind::file:
    break;
  }
}

} // namespace

void fillInitial(const plan::Value &value, const plan::Mesh &mesh, plan::Coordinates at, uint64_t seed,
                 std::span<const std::byte> wholeTensor, void *out) {
  if (value.init.kind == Init::Kind::none || !checkInitial(value, wholeTensor))
    return;
  uint64_t elementBytes = uint64_t(plan::sizeOf(value.dtype));
  std::memset(out, 0, numElements(value.shape) * elementBytes);
  if (value.init.kind == Init::Kind::file) {
    forEachRun(value, mesh, at, [&](const Run &run) {
      std::memcpy(static_cast<std::byte *>(out) + run.shardIndex * elementBytes,
                  wholeTensor.data() + run.globalIndex * elementBytes, run.count * elementBytes);
    });
    return;
  }
  uint64_t stream = streamOf(value.name);
  forEachRun(value, mesh, at, [&](const Run &run) {
    plan::withElement(value.dtype, [&]<typename T>(T) { drawRun(value, seed, stream, run, static_cast<T *>(out)); });
  });
}

} // namespace dg
