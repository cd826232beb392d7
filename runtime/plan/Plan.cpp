// SPDX-License-Identifier: Apache-2.0
// Sizes and mesh arithmetic of the plan types. Meshes that were read or verified have positive sizes whose
// product is bounded, so nothing here can overflow.
#include "runtime/plan/Plan.h"

namespace dg::plan {

int64_t sizeOf(DType type) {
  constexpr int64_t bytes[] = {4, 8, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1}; // in the order of enumNames(DType)
  static_assert(std::size(bytes) == allOf<DType>().size());
  return bytes[size_t(type)];
}

int64_t Mesh::sizeOf(std::string_view axis) const {
  std::optional<Axis> known = enumNamed<Axis>(axis);
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

const Program *Plan::findProgram(ProgramKind kind) const {
  for (const Program &program : programs)
    if (program.kind == kind)
      return &program;
  return nullptr;
}

} // namespace dg::plan
