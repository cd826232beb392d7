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
  int64_t ranks = replicas;
  for (int64_t size : sizes)
    ranks *= size;
  return ranks;
}

Coordinates Mesh::coordinatesOf(int64_t rank) const {
  int64_t pipe = sizeOf(Axis::pipe), data = sizeOf(Axis::data), tensor = sizeOf(Axis::tensor);
  return {rank / (data * tensor) % pipe, rank / tensor % data, rank % tensor, rank / (pipe * data * tensor)};
}

int64_t Mesh::rankOf(Coordinates at) const {
  const int64_t stage = at.replica * sizeOf(Axis::pipe) + at.pipe;
  return (stage * sizeOf(Axis::data) + at.data) * sizeOf(Axis::tensor) + at.tensor;
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

std::array<uint32_t, 2> Program::microbatchesOf(int64_t replica) const {
  if (dealt.empty())
    return {0, microbatches};
  uint32_t first = 0;
  for (int64_t before = 0; before < replica; ++before)
    first += dealt[size_t(before)];
  return {first, first + dealt[size_t(replica)]};
}

bool Program::isRunBy(int64_t replica, const Chunk &chunk, const Action &action) const {
  auto [begin, end] = microbatchesOf(replica);
  return !isPerMicrobatch(chunk.phase) || (begin <= action.microbatch && action.microbatch < end);
}

const Program *Plan::findProgram(ProgramKind kind) const {
  for (const Program &program : programs)
    if (program.kind == kind)
      return &program;
  return nullptr;
}

} // namespace dg::plan
