// SPDX-License-Identifier: Apache-2.0
// Sums go through a tile on the stack: it aliases nothing, so the loops vectorise even when the output is one of the
// inputs, and an element of the output is written after every input of its tile was read.
#include "runtime/transport/SumInOrder.h"

#include "runtime/support/BFloat16.h"

#include <cstdint>
#include <cstring>

namespace dg {
namespace {

constexpr size_t tileElements = 1024;

/// How a stored element becomes what it is added as, and back.
template <typename Stored> struct Plain {
  using Storage = Stored;
  using Sum = Stored;
  static Sum load(Stored value) { return value; }
  static Stored store(Sum value) { return value; }
};

struct BrainFloat {
  using Storage = BFloat16;
  using Sum = float;
  static float load(BFloat16 value) { return float(value); }
  static BFloat16 store(float value) { return BFloat16(value); }
};

struct Float16 {
  using Storage = _Float16;
  using Sum = float;
  static float load(_Float16 value) { return float(value); }
  static _Float16 store(float value) { return _Float16(value); }
};

template <typename Type> void sumInOrder(void *output, const void *const *inputs, size_t numInputs, size_t count) {
  using Storage = typename Type::Storage;
  typename Type::Sum tile[tileElements];
  for (size_t begin = 0; begin < count; begin += tileElements) {
    size_t size = count - begin < tileElements ? count - begin : tileElements;
    const Storage *first = static_cast<const Storage *>(inputs[0]) + begin;
    for (size_t i = 0; i < size; ++i)
      tile[i] = Type::load(first[i]);
    for (size_t k = 1; k < numInputs; ++k) {
      const Storage *input = static_cast<const Storage *>(inputs[k]) + begin;
      for (size_t i = 0; i < size; ++i)
        tile[i] += Type::load(input[i]);
    }
    Storage *to = static_cast<Storage *>(output) + begin;
    for (size_t i = 0; i < size; ++i)
      to[i] = Type::store(tile[i]);
  }
}

} // namespace

SumInOrder sumInOrderFor(plan::DType type) {
  switch (type) {
  case plan::DType::f32:
    return sumInOrder<Plain<float>>;
  case plan::DType::f64:
    return sumInOrder<Plain<double>>;
  case plan::DType::bf16:
    return sumInOrder<BrainFloat>;
  case plan::DType::f16:
    return sumInOrder<Float16>;
  case plan::DType::i64:
  case plan::DType::u64:
    return sumInOrder<Plain<uint64_t>>; // unsigned, so that overflow wraps
  case plan::DType::i32:
  case plan::DType::u32:
    return sumInOrder<Plain<uint32_t>>;
  case plan::DType::i16:
  case plan::DType::u16:
    return sumInOrder<Plain<uint16_t>>;
  case plan::DType::i8:
  case plan::DType::u8:
    return sumInOrder<Plain<uint8_t>>;
  case plan::DType::i1:
    return nullptr;
  }
  return nullptr;
}

} // namespace dg
