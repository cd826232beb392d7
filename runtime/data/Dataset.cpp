// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Dataset.h"

#include "runtime/data/RandomSource.h"
#include "runtime/data/TensorFiles.h"
#include "runtime/support/CounterRandom.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

namespace dg::data {

/// Elements of one sample: the product of all dimensions from `from` on; -1 if it does not fit.
static int64_t elementsOf(const std::vector<int64_t> &shape, size_t from) {
  return bytesOf({shape.begin() + ptrdiff_t(std::min(from, shape.size())), shape.end()}, 1).value_or(-1);
}

Result<std::vector<Argument>> argumentsOf(const plan::Plan &plan, const plan::Program &program) {
  std::vector<Argument> arguments;
  for (const plan::Port &port : program.inputs) {
    if (port.name == sampleWeightPort || port.name == sampleIndexPort || port.values.empty())
      continue;
    const plan::Value &value = plan.values[port.values.front()];
    if (program.batch == 0) {
      arguments.push_back({port.name, value.dtype, value.globalShape, port.indexBound, /*isWhole=*/true});
      continue;
    }
    if (value.globalShape.empty())
      return Status::error(ErrorKind::badInput, "argument '{}' of program '{}' has no batch dimension", port.name,
                           program.name);
    arguments.push_back(
        {port.name, value.dtype, {value.globalShape.begin() + 1, value.globalShape.end()}, port.indexBound});
  }
  return arguments;
}

bool Column::copySample(int64_t index, std::byte *to) const {
  auto after = std::upper_bound(shards.begin(), shards.end(), index,
                                [](int64_t at, const Shard &shard) { return at < shard.firstSample; });
  const Shard &shard = *(after - 1);
  return conversion.run(shard.tensor.data + (index - shard.firstSample) * sampleBytes, to, elements);
}

struct OutsideElement {
  int64_t place = 0, value = 0;
};

/// The first element outside [0, bound).
template <typename T>
static std::optional<OutsideElement> findOutside(const std::vector<std::byte> &row, int64_t bound) {
  for (size_t at = 0; at < row.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, row.data() + at, sizeof(T));
    if (int64_t(value) < 0 || int64_t(value) >= bound)
      return OutsideElement{int64_t(at / sizeof(T)), int64_t(value)};
  }
  return std::nullopt;
}

Status Column::checkIndices() const {
  using Find = std::optional<OutsideElement> (*)(const std::vector<std::byte> &, int64_t);
  Find find = nullptr;
  switch (target.dtype) {
  case plan::DType::i64:
    find = findOutside<int64_t>;
    break;
  case plan::DType::i32:
    find = findOutside<int32_t>;
    break;
  case plan::DType::i16:
    find = findOutside<int16_t>;
    break;
  case plan::DType::i8:
    find = findOutside<int8_t>;
    break;
  case plan::DType::u64:
    find = findOutside<uint64_t>;
    break;
  case plan::DType::u32:
    find = findOutside<uint32_t>;
    break;
  case plan::DType::u16:
    find = findOutside<uint16_t>;
    break;
  case plan::DType::u8:
  case plan::DType::i1:
    find = findOutside<uint8_t>;
    break;
  case plan::DType::f32:
  case plan::DType::f64:
  case plan::DType::bf16:
  case plan::DType::f16:
    break;
  }
  if (target.indexBound <= 0 || !find)
    return Status::ok();
  std::vector<std::byte> row(size_t(elements * conversion.targetBytes()));
  for (const Shard &shard : shards)
    for (int64_t sample = 0; sample < shard.tensor.shape.front(); ++sample) {
      bool fits = conversion.run(shard.tensor.data + sample * sampleBytes, row.data(), elements);
      std::optional<OutsideElement> outside = find(row, target.indexBound);
      if (fits && !outside)
        continue;
      std::string found = fits ? fmt::format("{} at element {}", outside->value, outside->place)
                               : fmt::format("a number that does not fit {}", plan::nameOf(target.dtype));
      return Status::error(ErrorKind::badInput,
                           "{}: sample {} holds {}; argument '{}' takes 0 to {}: correct the data, or compile the "
                           "model with as many classes or tokens as the data have",
                           shard.name, sample, found, target.name, target.indexBound - 1);
    }
  return Status::ok();
}

const Column *Dataset::find(const std::string &argument) const {
  for (const Column &column : columns)
    if (column.argument().name == argument)
      return &column;
  return nullptr;
}

std::string Dataset::describe() const {
  std::string text;
  for (const Column &column : columns) {
    const Argument &argument = column.argument();
    std::vector<char> row(size_t(column.elements * column.conversion.targetBytes()));
    std::string rows;
    for (int64_t sample : {int64_t(0), column.count - 1})
      if (!row.empty() && sample >= 0 && sample < column.count) {
        (void)column.copySample(sample, reinterpret_cast<std::byte *>(row.data())); // what does not fit is told later
        rows.append(row.begin(), row.end());
      }
    std::string conversion = column.conversion.describe();
    text += fmt::format("{}{} {}x{} {}{}{} {:016x}", text.empty() ? "" : ", ", argument.name, column.count,
                        fmt::join(argument.sampleShape, "x"), plan::nameOf(argument.dtype),
                        conversion.empty() ? "" : " ", conversion, streamOf(rows));
  }
  return text;
}

/// "FILE.npz:name" → {"FILE.npz", "name"}, for the one extension given; nothing if the file has another.
static std::optional<std::pair<std::string, std::string>> splitMember(const std::string &spec,
                                                                      const std::string &extension) {
  if (spec.ends_with(extension))
    return std::pair(spec, std::string());
  size_t at = spec.rfind(extension + ":");
  if (at == std::string::npos)
    return std::nullopt;
  return std::pair(spec.substr(0, at + extension.size()), spec.substr(at + extension.size() + 1));
}

static bool startsWith(const std::string &path, std::string_view magic) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  std::array<char, 8> start{};
  return file && std::fread(start.data(), 1, magic.size(), file.get()) == magic.size() &&
         std::string_view(start.data(), magic.size()) == magic;
}

static Result<Tensor> openFile(const std::string &spec, const Argument &argument) {
  if (auto member = splitMember(spec, ".safetensors"))
    return openSafetensors(member->first, member->second.empty() ? argument.name : member->second);
  for (auto [extension, type] : {std::pair(".u16", ElementType::u16), std::pair(".u32", ElementType::u32)})
    if (auto member = splitMember(spec, extension)) {
      if (!member->second.empty() && member->second != "+1")
        return Status::error(ErrorKind::usage, "'{}': after a token file only :+1 (the tokens that follow) is known",
                             spec);
      return openTokens(member->first, type, elementsOf(argument.sampleShape, 0), member->second.empty() ? 0 : 1);
    }
  auto archive = splitMember(spec, ".npz");
  if (archive || startsWith(spec, "PK\x03\x04"))
    return archive ? openNpz(archive->first, archive->second) : openNpz(spec, "");
  if (spec.ends_with(".npy") || startsWith(spec, "\x93NUMPY"))
    return openNpy(spec);
  return openIdx(spec);
}

static std::vector<std::string> splitShards(const std::string &spec) {
  std::vector<std::string> shards;
  size_t begin = 0;
  while (begin <= spec.size()) {
    size_t end = std::min(spec.find(',', begin), spec.size());
    // `--input x=@x.npy` marks a file with @; data sources may be written so too.
    if (begin < end && spec[begin] == '@')
      ++begin;
    shards.push_back(spec.substr(begin, end - begin));
    begin = end + 1;
  }
  return shards;
}

Result<Column> Dataset::openColumn(const Argument &argument, const DataSpecs &specs) {
  Column column;
  column.target = argument;
  column.text = specs.sources.at(argument.name);
  column.elements = elementsOf(argument.sampleShape, 0);
  std::vector<std::string> names =
      isRandomSpec(column.text) ? std::vector<std::string>{column.text} : splitShards(column.text);
  for (const std::string &name : names) {
    auto tensor = isRandomSpec(name) ? makeRandom(name, argument.name, specs.seed) : openFile(name, argument);
    if (!tensor)
      return tensor.status();
    if (argument.isWhole) {
      if (tensor->shape != argument.sampleShape || names.size() > 1)
        return Status::error(ErrorKind::badInput, "{}: found shape {}, expected {} for argument '{}' in one file",
                             column.text, describeShape(tensor->shape), describeShape(argument.sampleShape),
                             argument.name);
      tensor->shape.insert(tensor->shape.begin(), 1);
    }
    if (tensor->shape.empty() || elementsOf(tensor->shape, 1) != column.elements)
      return Status::error(ErrorKind::badInput, "{}: found shape {}, expected samples of shape {} for argument '{}'",
                           name, describeShape(tensor->shape), describeShape(argument.sampleShape), argument.name);
    if (!column.shards.empty() && column.shards.front().tensor.type != tensor->type)
      return Status::error(ErrorKind::badInput, "{}: holds {}, the shard before it {}", name, nameOf(tensor->type),
                           nameOf(column.shards.front().tensor.type));
    int64_t samples = tensor->shape.front();
    if (samples > 0)
      column.shards.push_back({column.count, std::move(*tensor), name});
    column.count += samples;
  }
  if (column.count == 0)
    return Status::error(ErrorKind::badInput, "{}: holds no samples", column.text);
  ElementType type = column.shards.front().tensor.type;
  std::optional<Normalization> normalization;
  if (auto found = specs.normalizations.find(argument.name); found != specs.normalizations.end())
    normalization = found->second;
  auto conversion = Conversion::make(type, argument.dtype, normalization);
  if (!conversion)
    return Status::error(conversion.status().kind(), "{} for argument '{}': {}", column.text, argument.name,
                         conversion.status().message());
  column.conversion = *conversion;
  column.sampleBytes = column.elements * sizeOf(type);
  DG_RETURN_IF_ERROR(column.checkIndices());
  return column;
}

Result<Dataset> Dataset::open(const std::vector<Argument> &arguments, const DataSpecs &specs) {
  auto isArgument = [&](const std::string &name) {
    return std::any_of(arguments.begin(), arguments.end(), [&](const Argument &a) { return a.name == name; });
  };
  std::vector<std::string> names;
  for (const Argument &argument : arguments)
    names.push_back(argument.name);
  for (const auto &[name, spec] : specs.sources)
    if (!isArgument(name))
      return Status::error(ErrorKind::usage, "{} {}={}: the model has no argument '{}'; it has {}", specs.flag, name,
                           spec, name, fmt::join(names, ", "));
  for (const auto &[name, normalization] : specs.normalizations)
    if (!isArgument(name))
      return Status::error(ErrorKind::usage, "--normalize {}=…: the model has no argument '{}'; it has {}", name, name,
                           fmt::join(names, ", "));
  Dataset dataset;
  for (const Argument &argument : arguments) {
    if (!specs.sources.contains(argument.name))
      return Status::error(ErrorKind::usage, "argument '{}' has no data; add {} {}=FILE", argument.name, specs.flag,
                           argument.name);
    auto column = openColumn(argument, specs);
    if (!column)
      return column.status();
    if (!dataset.columns.empty() && column->numSamples() != dataset.numSamples())
      return Status::error(ErrorKind::badInput, "'{}' has {} samples ({}), '{}' has {} ({}); they must agree",
                           dataset.columns.front().argument().name, dataset.numSamples(),
                           dataset.columns.front().spec(), argument.name, column->numSamples(), column->spec());
    dataset.columns.push_back(std::move(*column));
  }
  return dataset;
}

Result<std::pair<std::string, std::string>> splitAssignment(const std::string &flag, const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Status::error(ErrorKind::usage, "{} '{}': expected NAME=VALUE", flag, text);
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<Normalization> parseNormalization(const std::string &text) {
  size_t comma = text.find(',');
  if (comma != std::string::npos && comma > 0) {
    char *meanEnd = nullptr, *deviationEnd = nullptr;
    Normalization result{std::strtof(text.c_str(), &meanEnd), std::strtof(text.c_str() + comma + 1, &deviationEnd)};
    if (meanEnd == text.c_str() + comma && comma + 1 < text.size() && *deviationEnd == '\0' &&
        std::isfinite(result.mean) && std::isfinite(result.deviation) && result.deviation > 0)
      return result;
  }
  return Status::error(ErrorKind::usage, "--normalize '{}': expected MEAN,STD with STD above zero, as 0.5,0.5", text);
}

} // namespace dg::data
