// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Conversion.h"

#include "runtime/plan/Elements.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace dg::data {

namespace {

/// A byte of a file, which need not be 0 or 1 to be a bool.
struct Bool {
  uint8_t value = 0;
  Bool() = default;
  template <typename T> explicit Bool(T from) : value(from != 0) {}
  template <typename T> explicit operator T() const { return T(value != 0); }
};

template <typename T> using Stored = std::conditional_t<std::is_same_v<T, bool>, Bool, T>;

template <typename T> T load(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

} // namespace

template <typename From, typename To>
bool Conversion::convert(const Conversion &self, const std::byte *from, std::byte *to, int64_t count) {
  if constexpr (plan::isFloatElement<To>) {
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

Conversion::Function Conversion::choose(DType from, DType to) {
  return plan::withElement(to, [&]<typename To>(To) {
    return plan::withElement(from, []<typename From>(From) -> Function {
      if constexpr (plan::isFloatElement<From> && !plan::isFloatElement<To>)
        return nullptr;
      else
        return convert<Stored<From>, Stored<To>>;
    });
  });
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

Result<Conversion> Conversion::make(DType from, DType to, std::optional<Normalization> normalization) {
  bool toFloat = isFloat(to);
  if (normalization && !toFloat)
    return Status::error(ErrorKind::usage, "--normalize applies to float arguments; this one is {}", nameOf(to));
  if (isFloat(from) && !toFloat)
    return Status::error(ErrorKind::badInput, "found {}, expected integers: the argument is {}", nameOf(from),
                         nameOf(to));
  Conversion conversion;
  conversion.normalizes = normalization.has_value();
  conversion.normalization = normalization.value_or(Normalization());
  conversion.bytesPerSource = sizeOf(from);
  conversion.bytesPerTarget = sizeOf(to);
  const bool isSame = from == to && to != DType::i1 && !normalization;
  conversion.function = isSame ? copy : choose(from, to);
  if (from == DType::u8 && toFloat)
    conversion.tabulate();
  return conversion;
}

} // namespace dg::data
