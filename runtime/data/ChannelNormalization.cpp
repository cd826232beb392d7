// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/ChannelNormalization.h"

#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace dg::data {

Result<ChannelNormalization> ChannelNormalization::make(std::vector<Normalization> channels,
                                                        const std::vector<int64_t> &sampleShape, plan::DType dtype) {
  if (dtype != plan::DType::f32 && dtype != plan::DType::f64)
    return Status::error(ErrorKind::usage, "numbers for each channel are for f32 and f64; the argument is {}",
                         plan::nameOf(dtype));
  if (sampleShape.empty() || sampleShape.front() != int64_t(channels.size()))
    return Status::error(ErrorKind::usage, "found {} means, expected one, or one for each channel of samples [{}]",
                         channels.size(), fmt::join(sampleShape, ", "));
  ChannelNormalization made;
  made.perChannel = 1;
  for (size_t dim = 1; dim < sampleShape.size(); ++dim)
    made.perChannel *= sampleShape[dim];
  made.isWide = dtype == plan::DType::f64;
  made.channels = std::move(channels);
  return made;
}

template <typename T> void ChannelNormalization::applyAs(std::byte *sample) const {
  for (const Normalization &channel : channels)
    for (int64_t i = 0; i < perChannel; ++i, sample += sizeof(T)) {
      T value;
      std::memcpy(&value, sample, sizeof value);
      value = (value - T(channel.mean)) / T(channel.deviation);
      std::memcpy(sample, &value, sizeof value);
    }
}

void ChannelNormalization::apply(std::byte *sample) const { isWide ? applyAs<double>(sample) : applyAs<float>(sample); }

std::string ChannelNormalization::describe() const {
  if (channels.empty())
    return "";
  std::vector<float> means, deviations;
  for (const Normalization &channel : channels) {
    means.push_back(channel.mean);
    deviations.push_back(channel.deviation);
  }
  return fmt::format("channels {}/{}", fmt::join(means, ","), fmt::join(deviations, ","));
}

/// "1,2,3"; nothing if one of them is no finite number.
static std::optional<std::vector<float>> parseNumbers(const std::string &text) {
  std::vector<float> numbers;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    char *stop = nullptr;
    numbers.push_back(std::strtof(item.c_str(), &stop));
    if (item.empty() || *stop != '\0' || !std::isfinite(numbers.back()))
      return std::nullopt;
    begin = end + 1;
  }
  return numbers;
}

Result<std::vector<Normalization>> parseChannelNormalization(const std::string &text) {
  size_t slash = text.find('/');
  auto means = parseNumbers(text.substr(0, slash)),
       deviations = parseNumbers(slash == std::string::npos ? "" : text.substr(slash + 1));
  std::vector<Normalization> channels;
  if (means && deviations && means->size() == deviations->size())
    for (size_t i = 0; i < means->size() && (*deviations)[i] > 0; ++i)
      channels.push_back({(*means)[i], (*deviations)[i]});
  if (channels.empty() || channels.size() != means->size())
    return Status::error(ErrorKind::usage,
                         "--normalize '{}': expected MEAN,…/STD,… with as many of both and each STD above zero, as "
                         "0.485,0.456,0.406/0.229,0.224,0.225",
                         text);
  return channels;
}

} // namespace dg::data
