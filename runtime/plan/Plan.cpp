// SPDX-License-Identifier: Apache-2.0
// Names, sizes and mesh arithmetic of the plan types. Meshes that were read or verified have positive sizes whose
// product is bounded, so nothing here can overflow.
#include "runtime/plan/Plan.h"

namespace dg::plan {

int64_t sizeOf(DType type) {
  switch (type) {
  case DType::f64:
  case DType::i64:
  case DType::u64:
    return 8;
  case DType::f32:
  case DType::i32:
  case DType::u32:
    return 4;
  case DType::bf16:
  case DType::f16:
  case DType::i16:
  case DType::u16:
    return 2;
  case DType::i8:
  case DType::u8:
  case DType::i1:
    return 1;
  }
  return 0;
}

const char *nameOf(DType type) {
  switch (type) {
  case DType::f32:
    return "f32";
  case DType::f64:
    return "f64";
  case DType::bf16:
    return "bf16";
  case DType::f16:
    return "f16";
  case DType::i64:
    return "i64";
  case DType::i32:
    return "i32";
  case DType::i16:
    return "i16";
  case DType::i8:
    return "i8";
  case DType::u64:
    return "u64";
  case DType::u32:
    return "u32";
  case DType::u16:
    return "u16";
  case DType::u8:
    return "u8";
  case DType::i1:
    return "i1";
  }
  return "?";
}

const char *nameOf(Axis axis) {
  constexpr const char *names[] = {"pipe", "data", "tensor"};
  return names[size_t(axis)];
}

std::optional<Axis> axisNamed(std::string_view name) {
  for (Axis axis : allAxes)
    if (name == nameOf(axis))
      return axis;
  return std::nullopt;
}

const char *nameOf(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "cuda"; }

const char *nameOf(MemorySpace space) {
  constexpr const char *names[] = {"device", "host", "pinned"};
  return names[size_t(space)];
}

const char *nameOf(Role role) { return role == Role::worker ? "worker" : "server"; }

int64_t Mesh::sizeOf(std::string_view axis) const {
  std::optional<Axis> known = axisNamed(axis);
  return known ? sizeOf(*known) : 0;
}

int64_t Mesh::numRanks() const {
  int64_t ranks = 1;
  for (int64_t size : sizes)
    ranks *= size;
  return ranks;
}

Coordinates Mesh::coordinatesOf(int64_t rank) const {
  int64_t data = sizeOf(Axis::data), tensor = sizeOf(Axis::tensor);
  return {rank / (data * tensor), rank / tensor % data, rank % tensor};
}

int64_t Mesh::rankOf(Coordinates at) const {
  return (at.pipe * sizeOf(Axis::data) + at.data) * sizeOf(Axis::tensor) + at.tensor;
}

std::vector<int64_t> Mesh::groupOf(int64_t rank, Axis axis) const {
  std::vector<int64_t> group;
  Coordinates at = coordinatesOf(rank);
  int64_t size = sizeOf(axis);
  group.reserve(size);
  for (int64_t i = 0; i < size; ++i) {
    at[axis] = i;
    group.push_back(rankOf(at));
  }
  return group;
}

const Program *Plan::findProgram(const std::string &name) const {
  for (const Program &program : programs)
    if (program.name == name)
      return &program;
  return nullptr;
}

} // namespace dg::plan
