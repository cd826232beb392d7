// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/source/RandomSource.h"

#include "runtime/support/CounterRandom.h"

#include <charconv>
#include <new>
#include <optional>
#include <string_view>
#include <unistd.h>

namespace dg::data {

static std::optional<int64_t> positive(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    return std::nullopt;
  return value;
}

/// "1000x10" → {1000, 10}; empty if malformed.
static std::vector<int64_t> dimensions(std::string_view text) {
  std::vector<int64_t> shape;
  while (true) {
    size_t end = text.find('x');
    auto dimension = positive(text.substr(0, end));
    if (!dimension)
      return {};
    shape.push_back(*dimension);
    if (end == std::string_view::npos)
      return shape;
    text.remove_prefix(end + 1);
  }
}

bool isRandomSpec(const std::string &spec) { return spec.starts_with("randn:") || spec.starts_with("randint:"); }

template <typename T, typename Draw> static Result<Tensor> fill(const std::string &spec, Tensor tensor, Draw draw) {
  auto bytes = bytesOf(tensor.shape, sizeof(T));
  if (!bytes)
    return Status::error(ErrorKind::usage, "{}: larger than any memory", spec);
  // The kernel promises more than it has: what cannot fit must not be filled until the process is killed.
  uint64_t memoryBytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  if (uint64_t(*bytes) > memoryBytes)
    return Status::error(ErrorKind::runFailed, "{}: no memory for its {} bytes, this host has {}", spec, *bytes,
                         memoryBytes);
  std::shared_ptr<std::vector<T>> values;
  try {
    values = std::make_shared<std::vector<T>>(size_t(*bytes) / sizeof(T));
  } catch (const std::exception &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for its {} bytes", spec, *bytes);
  }
  for (size_t i = 0; i < values->size(); ++i)
    (*values)[i] = draw(i);
  tensor.data = reinterpret_cast<const std::byte *>(values->data());
  tensor.owner = std::move(values);
  return tensor;
}

Result<Tensor> makeRandom(const std::string &spec, const std::string &argument, uint64_t seed) {
  uint64_t stream = streamOf("data " + argument);
  std::string_view rest = spec;
  if (spec.starts_with("randn:")) {
    Tensor tensor{DType::f32, dimensions(rest.substr(6)), nullptr, nullptr};
    if (!tensor.shape.empty())
      return fill<float>(spec, std::move(tensor), [&](size_t i) { return normalAt(seed, stream, i); });
  } else {
    rest.remove_prefix(std::string_view("randint:").size());
    size_t colon = rest.find(':');
    auto bound = positive(rest.substr(0, colon));
    if (bound && colon != std::string_view::npos) {
      Tensor tensor{DType::i64, dimensions(rest.substr(colon + 1)), nullptr, nullptr};
      if (!tensor.shape.empty())
        return fill<int64_t>(spec, std::move(tensor),
                             [&](size_t i) { return int64_t(integerAt(seed, stream, i, uint64_t(*bound))); });
    }
  }
  return Status::error(ErrorKind::usage,
                       "'{}' is not a random source; expected randn:SAMPLESxDIMENSIONS (randn:1000x10) or "
                       "randint:BOUND:SAMPLES (randint:10:1000)",
                       spec);
}

} // namespace dg::data
