// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Conversion.h"

#include "runtime/support/BFloat16.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace dg::data {

namespace {

using Half = _Float16;

/// One byte, 0 or 1.
struct Bool {
  uint8_t value = 0;
  Bool() = default;
  template <typename T> explicit Bool(T from) : value(from != 0) {}
  template <typename T> explicit operator T() const { return T(value != 0); }
};

template <typename T>
constexpr bool isFloatLike = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <typename T> T load(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

} // namespace

template <typename From, typename To>
bool Conversion::convert(const Conversion &self, const std::byte *from, std::byte *to, int64_t count) {
  if constexpr (isFloatLike<To>) {
    using Work = std::conditional_t<std::is_same_v<To, double>, double, float>;
    Work scale = std::is_same_v<From, uint8_t> ? Work(255) : Work(1);
    Work mean = self.normalization.mean, deviation = self.normalization.deviation;
    bool normalizes = self.normalizes;
    auto one = [&](From raw) {
      Work value = Work(raw) / scale;
      return To(normalizes ? (value - mean) / deviation : value);
    };
    for (int64_t i = 0; i < count; ++i) {
      To value = one(load<From>(from + i * int64_t(sizeof(From))));
      std::memcpy(to + i * int64_t(sizeof(To)), &value, sizeof(To));
    }
    return true;
  } else {
    bool fits = true;
    for (int64_t i = 0; i < count; ++i) {
      From raw = load<From>(from + i * int64_t(sizeof(From)));
      To value = To(raw);
      if constexpr (std::is_integral_v<From> && std::is_integral_v<To>)
        fits &= From(value) == raw && (value < To(0)) == (raw < From(0));
      std::memcpy(to + i * int64_t(sizeof(To)), &value, sizeof(To));
    }
    return fits;
  }
}

bool Conversion::copy(const Conversion &self, const std::byte *from, std::byte *to, int64_t count) {
  std::memcpy(to, from, size_t(count * self.bytesPerTarget));
  return true;
}

template <size_t Bytes>
bool Conversion::lookUp(const Conversion &self, const std::byte *from, std::byte *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(to + i * int64_t(Bytes), &self.table[size_t(from[i]) * Bytes], Bytes);
  return true;
}

/// Two divisions for each of 256 bytes now, none for each pixel of a step.
void Conversion::tabulate() {
  std::array<std::byte, 256> all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = std::byte(i);
  table.resize(all.size() * size_t(bytesPerTarget));
  run(all.data(), table.data(), int64_t(all.size()));
  function = bytesPerTarget == 2 ? lookUp<2> : bytesPerTarget == 4 ? lookUp<4> : lookUp<8>;
}

template <typename To> Conversion::Function Conversion::choose(ElementType from) {
  switch (from) {
  case ElementType::boolean:
    return convert<Bool, To>;
  case ElementType::u8:
    return convert<uint8_t, To>;
  case ElementType::i8:
    return convert<int8_t, To>;
  case ElementType::u16:
    return convert<uint16_t, To>;
  case ElementType::i16:
    return convert<int16_t, To>;
  case ElementType::u32:
    return convert<uint32_t, To>;
  case ElementType::i32:
    return convert<int32_t, To>;
  case ElementType::u64:
    return convert<uint64_t, To>;
  case ElementType::i64:
    return convert<int64_t, To>;
  case ElementType::f16:
  case ElementType::bf16:
  case ElementType::f32:
  case ElementType::f64:
    break;
  }
  if constexpr (isFloatLike<To>) {
    if (from == ElementType::f16)
      return convert<Half, To>;
    if (from == ElementType::bf16)
      return convert<BFloat16, To>;
    return from == ElementType::f32 ? convert<float, To> : convert<double, To>;
  }
  return nullptr;
}

/// Whether the file's elements are the argument's, bit for bit.
static bool isSame(ElementType from, plan::DType to) {
  using plan::DType;
  switch (to) {
  case DType::f32:
    return from == ElementType::f32;
  case DType::f64:
    return from == ElementType::f64;
  case DType::bf16:
    return from == ElementType::bf16;
  case DType::f16:
    return from == ElementType::f16;
  case DType::i64:
    return from == ElementType::i64;
  case DType::i32:
    return from == ElementType::i32;
  case DType::i16:
    return from == ElementType::i16;
  case DType::i8:
    return from == ElementType::i8;
  case DType::u64:
    return from == ElementType::u64;
  case DType::u32:
    return from == ElementType::u32;
  case DType::u16:
    return from == ElementType::u16;
  case DType::u8:
    return from == ElementType::u8;
  case DType::i1:
    return false;
  }
  return false;
}

std::string Conversion::describe() const {
  return normalizes ? fmt::format("normalize {},{}", normalization.mean, normalization.deviation) : "";
}

/// Puts elements `first` … of an image whose channels are last where they belong.
template <size_t Bytes>
static void scatter(const std::byte *elements, int64_t first, int64_t count, const ChannelsLast &layout,
                    std::byte *image) {
  int64_t pixel = first / layout.channels, channel = first % layout.channels;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(image + size_t(channel * layout.pixels + pixel) * Bytes, elements + size_t(i) * Bytes, Bytes);
    if (++channel == layout.channels)
      channel = 0, ++pixel;
  }
}

bool Conversion::run(const std::byte *from, std::byte *to, const ChannelsLast &layout) const {
  constexpr int64_t blockElements = 512;
  alignas(8) std::byte block[size_t(blockElements) * 8];
  const auto put = bytesPerTarget == 1   ? scatter<1>
                   : bytesPerTarget == 2 ? scatter<2>
                   : bytesPerTarget == 4 ? scatter<4>
                                         : scatter<8>;
  const int64_t elements = layout.pixels * layout.channels;
  bool fits = true;
  for (int64_t image = 0; image < layout.images; ++image, to += elements * bytesPerTarget)
    for (int64_t first = 0; first < elements; first += blockElements) {
      const int64_t count = std::min(blockElements, elements - first);
      fits = run(from, block, count) && fits;
      put(block, first, count, layout, to);
      from += count * bytesPerSource;
    }
  return fits;
}

Result<Conversion> Conversion::make(ElementType from, plan::DType to, std::optional<Normalization> normalization) {
  using plan::DType;
  bool toFloat = plan::isFloat(to);
  if (normalization && !toFloat)
    return Status::error(ErrorKind::usage, "--normalize applies to float arguments; this one is {}", plan::nameOf(to));
  if (isFloat(from) && !toFloat)
    return Status::error(ErrorKind::badInput, "found {}, expected integers: the argument is {}", nameOf(from),
                         plan::nameOf(to));
  Conversion conversion;
  conversion.normalizes = normalization.has_value();
  conversion.normalization = normalization.value_or(Normalization());
  conversion.bytesPerSource = sizeOf(from);
  conversion.bytesPerTarget = plan::sizeOf(to);
  if (isSame(from, to) && !normalization) {
    conversion.function = copy;
    return conversion;
  }
  switch (to) {
  case DType::f32:
    conversion.function = choose<float>(from);
    break;
  case DType::f64:
    conversion.function = choose<double>(from);
    break;
  case DType::bf16:
    conversion.function = choose<BFloat16>(from);
    break;
  case DType::f16:
    conversion.function = choose<Half>(from);
    break;
  case DType::i64:
    conversion.function = choose<int64_t>(from);
    break;
  case DType::i32:
    conversion.function = choose<int32_t>(from);
    break;
  case DType::i16:
    conversion.function = choose<int16_t>(from);
    break;
  case DType::i8:
    conversion.function = choose<int8_t>(from);
    break;
  case DType::u64:
    conversion.function = choose<uint64_t>(from);
    break;
  case DType::u32:
    conversion.function = choose<uint32_t>(from);
    break;
  case DType::u16:
    conversion.function = choose<uint16_t>(from);
    break;
  case DType::u8:
    conversion.function = choose<uint8_t>(from);
    break;
  case DType::i1:
    conversion.function = choose<Bool>(from);
    break;
  }
  if (from == ElementType::u8 && toFloat)
    conversion.tabulate();
  return conversion;
}

} // namespace dg::data
