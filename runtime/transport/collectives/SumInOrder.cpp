// SPDX-License-Identifier: Apache-2.0
// Sums go through a block of registers, halves through a tile on the stack: an element is written to all outputs after
// it was read from all inputs, so an output may be one of them. Each kind of sum exists for three widths of vectors;
// the bits are the same, because nothing is added across elements.
#include "runtime/transport/collectives/SumInOrder.h"

#include "runtime/support/BFloat16.h"

#include <cstdint>
#include <cstring>

namespace dg {
namespace {

struct BrainFloat {
  using Storage = BFloat16;
  static float load(BFloat16 value) { return float(value); }
  static BFloat16 store(float value) { return BFloat16(value); }
};

struct Float16 {
  using Storage = _Float16;
  static float load(_Float16 value) { return float(value); }
  static _Float16 store(float value) { return _Float16(value); }
};

#define DG_INLINE inline __attribute__((always_inline))

/// Of elements that are added as they are stored.
template <typename T, size_t vectorBytes>
DG_INLINE void sumPlain(void *const *outputs, size_t numOutputs, const void *const *inputs, size_t numInputs,
                        size_t count) {
  // Elements are aligned to themselves only: a piece begins anywhere.
  using Vector [[gnu::vector_size(vectorBytes), gnu::aligned(alignof(T))]] = T;
  constexpr size_t numVectors = 4, width = vectorBytes / sizeof(T), blockElements = numVectors * width;
  size_t i = 0;
  for (; i + blockElements <= count; i += blockElements) {
    Vector block[numVectors];
    const T *first = static_cast<const T *>(inputs[0]) + i;
    for (size_t v = 0; v < numVectors; ++v)
      block[v] = *reinterpret_cast<const Vector *>(first + v * width);
    for (size_t k = 1; k < numInputs; ++k) {
      const T *input = static_cast<const T *>(inputs[k]) + i;
      for (size_t v = 0; v < numVectors; ++v)
        block[v] += *reinterpret_cast<const Vector *>(input + v * width);
    }
    for (size_t k = 0; k < numOutputs; ++k) {
      T *output = static_cast<T *>(outputs[k]) + i;
      for (size_t v = 0; v < numVectors; ++v)
        *reinterpret_cast<Vector *>(output + v * width) = block[v];
    }
  }
  for (; i < count; ++i) {
    T sum = static_cast<const T *>(inputs[0])[i];
    for (size_t k = 1; k < numInputs; ++k)
      sum = T(sum + static_cast<const T *>(inputs[k])[i]);
    for (size_t k = 0; k < numOutputs; ++k)
      static_cast<T *>(outputs[k])[i] = sum;
  }
}

/// Of elements that are added in f32.
template <typename Type>
DG_INLINE void sumHalves(void *const *outputs, size_t numOutputs, const void *const *inputs, size_t numInputs,
                         size_t count) {
  using Storage = typename Type::Storage;
  constexpr size_t tileElements = 1024;
  float tile[tileElements];
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
    Storage *to = static_cast<Storage *>(outputs[0]) + begin;
    for (size_t i = 0; i < size; ++i)
      to[i] = Type::store(tile[i]);
    for (size_t k = 1; k < numOutputs; ++k)
      std::memcpy(static_cast<Storage *>(outputs[k]) + begin, to, size * sizeof(Storage));
  }
}

#define DG_SUM_ARGUMENTS                                                                                               \
  void *const *outputs, size_t numOutputs, const void *const *inputs, size_t numInputs, size_t count

struct Baseline {
  template <typename T> static void plain(DG_SUM_ARGUMENTS) {
    sumPlain<T, 16>(outputs, numOutputs, inputs, numInputs, count);
  }
  template <typename T> static void halves(DG_SUM_ARGUMENTS) {
    sumHalves<T>(outputs, numOutputs, inputs, numInputs, count);
  }
};

#if defined(__x86_64__)
struct Avx2 {
  template <typename T> __attribute__((target("avx2,f16c"))) static void plain(DG_SUM_ARGUMENTS) {
    sumPlain<T, 32>(outputs, numOutputs, inputs, numInputs, count);
  }
  template <typename T> __attribute__((target("avx2,f16c"))) static void halves(DG_SUM_ARGUMENTS) {
    sumHalves<T>(outputs, numOutputs, inputs, numInputs, count);
  }
};

struct Avx512 {
  template <typename T> __attribute__((target("avx512f,avx512bw,f16c"))) static void plain(DG_SUM_ARGUMENTS) {
    sumPlain<T, 64>(outputs, numOutputs, inputs, numInputs, count);
  }
  template <typename T> __attribute__((target("avx512f,avx512bw,f16c"))) static void halves(DG_SUM_ARGUMENTS) {
    sumHalves<T>(outputs, numOutputs, inputs, numInputs, count);
  }
};
#endif

template <typename Width> SumInOrder sumOfWidth(plan::DType type) {
  switch (type) {
  case plan::DType::f32:
    return Width::template plain<float>;
  case plan::DType::f64:
    return Width::template plain<double>;
  case plan::DType::bf16:
    return Width::template halves<BrainFloat>;
  case plan::DType::f16:
    return Width::template halves<Float16>;
  case plan::DType::i64:
  case plan::DType::u64:
    return Width::template plain<uint64_t>; // unsigned, so that overflow wraps
  case plan::DType::i32:
  case plan::DType::u32:
    return Width::template plain<uint32_t>;
  case plan::DType::i16:
  case plan::DType::u16:
    return Width::template plain<uint16_t>;
  case plan::DType::i8:
  case plan::DType::u8:
    return Width::template plain<uint8_t>;
  case plan::DType::i1:
    return nullptr;
  }
  return nullptr;
}

} // namespace

SumInOrder sumInOrderFor(plan::DType type) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
    return sumOfWidth<Avx512>(type);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c"))
    return sumOfWidth<Avx2>(type);
#endif
  return sumOfWidth<Baseline>(type);
}

} // namespace dg
