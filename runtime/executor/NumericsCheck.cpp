// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/NumericsCheck.h"

#include <algorithm>
#include <cstring>

namespace dg {

/// The first element whose exponent is all ones, or `count`. Blocks are tested without branches, so that the compiler
/// can use vectors.
template <typename Word> static size_t findNonFinite(const std::byte *bytes, size_t count, Word exponent) {
  constexpr size_t block = 1024;
  const Word *words = reinterpret_cast<const Word *>(bytes);
  for (size_t begin = 0; begin < count; begin += block) {
    size_t end = std::min(begin + block, count);
    unsigned bad = 0;
    for (size_t i = begin; i < end; ++i)
      bad |= (words[i] & exponent) == exponent;
    if (bad)
      for (size_t i = begin; i < end; ++i)
        if ((words[i] & exponent) == exponent)
          return i;
  }
  return count;
}

/// "nan at element 7 of 320", or nothing when all are finite.
static std::string findBadIn(std::span<const std::byte> bytes, plan::DType type) {
  size_t count = bytes.size() / size_t(plan::sizeOf(type)), at = count;
  uint64_t mantissa = 0;
  auto look = [&]<typename Word>(Word exponent, Word mantissaMask) {
    at = findNonFinite(bytes.data(), count, exponent);
    if (at == count)
      return;
    Word word;
    std::memcpy(&word, bytes.data() + at * sizeof word, sizeof word);
    mantissa = word & mantissaMask;
  };
  switch (type) {
  case plan::DType::f64:
    look(uint64_t(0x7ff0000000000000), uint64_t(0x000fffffffffffff));
    break;
  case plan::DType::bf16:
    look(uint16_t(0x7f80), uint16_t(0x007f));
    break;
  case plan::DType::f16:
    look(uint16_t(0x7c00), uint16_t(0x03ff));
    break;
  default:
    look(uint32_t(0x7f800000), uint32_t(0x007fffff));
  }
  if (at == count)
    return "";
  return fmt::format("{} at element {} of {}", mantissa ? "nan" : "an infinity", at, count);
}

std::string NumericsCheck::findBad(const plan::Value &value, uint32_t index) const {
  // A kernel's workspace may hold anything; whole numbers are always finite.
  if (!plan::isFloat(value.dtype) || value.kind == plan::ValueKind::scratch)
    return "";
  std::string bad;
  Status read = device.inspect(value, index, [&](std::span<const std::byte> bytes) {
    bad = findBadIn(bytes, value.dtype);
    return Status::ok();
  });
  return read ? bad : fmt::format("what cannot be read ({})", read.message());
}

bool NumericsCheck::isSound(const Segment &segment, uint32_t index, const StepContext &step) {
  // What a start writes is there when its finish is done.
  const Node &last = segment.nodes.back();
  if (last.kind == NodeKind::start)
    return true;
  const plan::Task &task = plan.tasks[last.task];
  for (plan::ValueId written : task.writes) {
    const plan::Value &value = plan.values[written];
    std::string bad = findBad(value, index);
    if (bad.empty())
      continue;
    std::string origin = "what it read is finite";
    for (plan::ValueId read : task.reads) {
      bool isOverwritten = std::find(task.writes.begin(), task.writes.end(), read) != task.writes.end();
      if (std::string before = isOverwritten ? "" : findBad(plan.values[read], index); !before.empty())
        origin = fmt::format("its input '{}' held {} already", plan.values[read].name, before);
    }
    found = Status::error(ErrorKind::runFailed, "'{}' ({}, {}) made '{}' hold {}, in step {}, micro-batch {}; {}",
                          task.name, task.op, task.source.empty() ? "no source" : task.source, value.name, bad,
                          step.scalars.step, step.microbatch, origin);
    return false;
  }
  return true;
}

} // namespace dg
