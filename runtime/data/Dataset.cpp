// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Dataset.h"

#include "runtime/data/remote/DataCache.h"
#include "runtime/data/source/RandomSource.h"
#include "runtime/data/source/Source.h"
#include "runtime/plan/Elements.h"
#include "runtime/support/CounterRandom.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

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
                           nameOf(program.kind));
    arguments.push_back(
        {port.name, value.dtype, {value.globalShape.begin() + 1, value.globalShape.end()}, port.indexBound});
  }
  return arguments;
}

/// What a sample, or a batch of them, of a file becomes.
static std::vector<int64_t> arranged(std::vector<int64_t> shape, Arrangement arrangement) {
  if (arrangement == Arrangement::channelsLast && shape.size() >= 3)
    std::rotate(shape.end() - 3, shape.end() - 1, shape.end());
  return shape;
}

/// Whether the argument can only mean these dimensions. A dimension of one orders nothing, and an argument that is a
/// list takes the elements as they come; whole tensors are exact.
static bool fits(const std::vector<int64_t> &found, const Argument &argument) {
  auto withoutOnes = [](std::vector<int64_t> shape) {
    std::erase(shape, 1);
    return shape;
  };
  if (argument.isWhole || found == argument.sampleShape)
    return found == argument.sampleShape;
  std::vector<int64_t> expected = withoutOnes(argument.sampleShape);
  return withoutOnes(found) == expected ||
         (expected.size() <= 1 && elementsOf(found, 0) == elementsOf(argument.sampleShape, 0));
}

std::pair<const Column::Shard *, int64_t> Column::locate(int64_t index) const {
  index = numberOf(index);
  auto isBefore = [](int64_t at, const Shard &shard) { return at < shard.firstSample; };
  const Shard &shard =
      shards.size() == 1 ? shards[0] : *(std::upper_bound(shards.begin(), shards.end(), index, isBefore) - 1);
  return {&shard, index - shard.firstSample};
}

bool Column::convert(const Shard &shard, const std::byte *from, std::byte *to) const {
  return shard.layout.channels > 0 ? conversion.run(from, to, shard.layout) : conversion.run(from, to, elements);
}

template <typename T>
std::optional<Column::Outside> Column::findIn(std::span<const std::byte> sample, int64_t least, int64_t bound) {
  for (size_t at = 0; at < sample.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, sample.data() + at, sizeof(T));
    if (std::cmp_less(value, least) || std::cmp_greater_equal(value, bound))
      return Outside{int64_t(at / sizeof(T)), int64_t(value)};
  }
  return std::nullopt;
}

std::optional<Column::Outside> Column::outsideIn(const std::byte *sample) const {
  if (!findOutside)
    return std::nullopt;
  return findOutside({sample, size_t(bytesOfSample())}, std::min<int64_t>(target.indexBound, 0),
                     std::abs(target.indexBound));
}

Status Column::copySample(int64_t index, std::byte *to, Scratch &scratch) const {
  auto [shard, own] = locate(index);
  auto from = shard->samples->read(own, scratch);
  if (!from)
    return from.status();
  if (!convert(*shard, *from, to))
    return Status::error(ErrorKind::badInput, "{} has a value that does not fit argument '{}' ({})",
                         shard->samples->nameOf(own), target.name, plan::nameOf(target.dtype));
  if (!channels.isEmpty())
    channels.apply(to);
  if (const std::optional<Outside> outside = outsideIn(to))
    return Status::error(ErrorKind::badInput,
                         "{} holds {} at element {}; argument '{}' takes {} to {}: correct the data, or compile the "
                         "model with as many classes or tokens as the data have",
                         shard->samples->nameOf(own), outside->value, outside->place, target.name,
                         std::min<int64_t>(target.indexBound, 0), std::abs(target.indexBound) - 1);
  return Status::ok();
}

bool Column::isDecoded() const {
  return std::any_of(shards.begin(), shards.end(), [](const Shard &shard) { return shard.samples->isDecoded(); });
}

Status Column::checkBeginning() const {
  constexpr int64_t mostElements = 1 << 24; // some ten milliseconds, where the file is in memory
  if (!findOutside || elements == 0)
    return Status::ok();
  std::vector<std::byte> row(size_t(bytesOfSample()), std::byte(0));
  Scratch scratch;
  for (int64_t sample = 0; sample < std::min(count, std::max<int64_t>(mostElements / elements, 1)); ++sample)
    DG_RETURN_IF_ERROR(copySample(sample, row.data(), scratch));
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
    std::vector<char> row(size_t(column.bytesOfSample()));
    std::string rows;
    Scratch scratch;
    for (int64_t sample : {int64_t(0), column.numSamples() - 1})
      if (!row.empty() && sample >= 0) {
        // What cannot be read is told when it is fed.
        (void)column.copySample(sample, reinterpret_cast<std::byte *>(row.data()), scratch);
        rows.append(row.begin(), row.end());
      }
    std::string conversion = column.conversion.describe() + column.channels.describe();
    text += fmt::format("{}{} {}x{} {}{}{} {:016x}", text.empty() ? "" : ", ", argument.name, column.numSamples(),
                        fmt::join(argument.sampleShape, "x"), plan::nameOf(argument.dtype),
                        conversion.empty() ? "" : " ", conversion, streamOf(rows));
  }
  return text;
}

std::vector<std::string> Dataset::notes() const {
  std::vector<std::string> notes;
  for (const Column &column : columns) {
    for (const Column::Shard &shard : column.shards)
      if (std::string note = shard.samples->note(); !note.empty())
        notes.push_back(std::move(note));
    std::span<const std::string> classes = column.shards.front().samples->classes();
    constexpr size_t mostListed = 20;
    std::string list;
    for (size_t number = 0; number < std::min(classes.size(), mostListed); ++number)
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", number, classes[number]);
    if (!classes.empty())
      notes.push_back(fmt::format("{}: {} classes: {}{}", column.spec(), classes.size(), list,
                                  classes.size() > mostListed ? ", …" : ""));
  }
  return notes;
}

std::vector<std::string> Dataset::arguments() const {
  std::vector<std::string> names;
  for (const Column &column : columns)
    names.push_back(column.argument().name);
  return names;
}

/// Numbers of classes mean the same only where the folders have the same names.
static Status checkSameClasses(const std::string &where, std::span<const std::string> found, const std::string &other,
                               std::span<const std::string> expected) {
  if (found.empty() || expected.empty() || std::ranges::equal(found, expected))
    return Status::ok();
  size_t at = 0;
  while (at < found.size() && at < expected.size() && found[at] == expected[at])
    ++at;
  auto nameAt = [at](std::span<const std::string> classes) {
    return at < classes.size() ? fmt::format("'{}'", classes[at]) : std::string("no class");
  };
  return Status::error(
      ErrorKind::badInput,
      "{}: class {} is {}, but of {} it is {}: classes are numbered by their names; give both the same "
      "class folders",
      where, at, nameAt(found), other, nameAt(expected));
}

Status Dataset::checkClasses(const Dataset &other) const {
  for (const Column &column : columns)
    if (const Column *same = other.find(column.argument().name))
      DG_RETURN_IF_ERROR(checkSameClasses(column.spec(), column.shards.front().samples->classes(), same->spec(),
                                          same->shards.front().samples->classes()));
  return Status::ok();
}

bool Dataset::isDecoded() const {
  return std::any_of(columns.begin(), columns.end(), [](const Column &column) { return column.isDecoded(); });
}

/// Found and expected, and the conversion that would make the one the other.
static Status wrongShape(const Source &source, const SampleSet &samples, const Argument &argument) {
  std::string advice;
  std::vector<int64_t> found = samples.sampleShape;
  if (source.arrangement == Arrangement::channelsLast)
    advice = fmt::format("; :nhwc moves the channels of height x width x channels to the front, which gives {}",
                         describeShape(arranged(found, Arrangement::channelsLast)));
  else if (arranged(found, Arrangement::channelsLast) == argument.sampleShape)
    advice = fmt::format(": write {}=FILE:nhwc if its channels are last", argument.name);
  else if (elementsOf(found, 0) == elementsOf(argument.sampleShape, 0))
    advice = fmt::format(": write {}=FILE:reshape if its elements are in that order", argument.name);
  if (!argument.isWhole)
    found.insert(found.begin(), samples.numSamples);
  return Status::error(ErrorKind::badInput, "{}: found shape {}, expected {}{} for argument '{}'{}", source.text,
                       describeShape(found), argument.isWhole ? "" : "samples of shape ",
                       describeShape(argument.sampleShape), argument.name, advice);
}

Status Column::addShard(std::shared_ptr<const SampleSet> samples, const Source &source) {
  const std::vector<int64_t> &shape = samples->sampleShape;
  // The order of random numbers is as good as any other; whole ones are exact.
  const bool isRandom = source.path.empty();
  const bool isAnyOrder = source.arrangement == Arrangement::reshape || (isRandom && !target.isWhole);
  // An image takes the place of its channels from the argument, as ImageForm has read it.
  const std::vector<int64_t> &wanted = target.sampleShape;
  const bool isChannelsFirst = samples->isImages() && wanted.size() >= 3 && wanted.end()[-3] == 3;
  const Arrangement arrangement = isChannelsFirst ? Arrangement::channelsLast : source.arrangement;
  const bool isChannelsLast = arrangement == Arrangement::channelsLast;
  const bool hasRank = !isChannelsLast || shape.size() == (target.isWhole ? 4 : 3);
  if (!hasRank || (isAnyOrder ? elementsOf(shape, 0) != elements : !fits(arranged(shape, arrangement), target)))
    return wrongShape(source, *samples, target);
  ChannelsLast layout;
  if (isChannelsLast)
    layout = {target.isWhole ? shape[0] : 1, shape.end()[-3] * shape.end()[-2], shape.back()};
  if (!shards.empty()) {
    const SampleSet &first = *shards.front().samples;
    if (first.type != samples->type)
      return Status::error(ErrorKind::badInput, "{}: holds {}, the shard before it {}", source.text,
                           nameOf(samples->type), nameOf(first.type));
    if (!std::equal(first.classes().begin(), first.classes().end(), samples->classes().begin(),
                    samples->classes().end()))
      return Status::error(ErrorKind::badInput, "{}: has other classes than {}: {} and {}", source.text, first.source,
                           fmt::join(samples->classes(), ", "), fmt::join(first.classes(), ", "));
  }
  const int64_t more = samples->numSamples;
  if (more > 0)
    shards.push_back({count, std::move(samples), layout});
  count += more;
  return Status::ok();
}

static Result<std::shared_ptr<const SampleSet>> openRandom(const Source &source, const Argument &argument,
                                                           uint64_t seed) {
  auto tensor = makeRandom(source.text, argument.name, seed);
  if (!tensor)
    return tensor.status();
  return std::shared_ptr<const SampleSet>(
      std::make_shared<TensorSet>(source.text, std::move(*tensor), argument.isWhole));
}

/// The files of every argument that has data; those of other machines are here once it returns.
static Result<std::map<std::string, std::vector<Source>>> findSources(const std::vector<Argument> &arguments,
                                                                      const DataSpecs &specs) {
  std::map<std::string, std::vector<Source>> found;
  std::vector<std::string> remote;
  for (const Argument &argument : arguments) {
    const auto text = specs.sources.find(argument.name);
    if (text == specs.sources.end())
      continue;
    Source random;
    random.text = text->second;
    auto sources = isRandomSpec(text->second) ? std::vector<Source>{random} : parseSources(text->second);
    if (!sources)
      return sources.status();
    for (const Source &source : *sources)
      if (isRemote(source.path))
        remote.push_back(source.path);
    found[argument.name] = std::move(*sources);
  }
  std::sort(remote.begin(), remote.end());
  remote.erase(std::unique(remote.begin(), remote.end()), remote.end());
  auto paths = DataCache(specs.cache, specs.transfers).fetch(remote);
  if (!paths)
    return paths.status();
  for (auto &[name, sources] : found)
    for (Source &source : sources)
      if (auto at = std::lower_bound(remote.begin(), remote.end(), source.path);
          at != remote.end() && *at == source.path)
        source.path = (*paths)[size_t(at - remote.begin())];
  return found;
}

Result<Column> Dataset::openColumn(const Argument &argument, const DataSpecs &specs,
                                   const std::vector<Source> &sources) {
  Column column;
  column.target = argument;
  column.text = specs.sources.at(argument.name);
  column.elements = elementsOf(argument.sampleShape, 0);
  const bool isRandom = isRandomSpec(column.text);
  if (argument.isWhole && sources.size() > 1)
    return Status::error(ErrorKind::badInput, "{}: found {} files, expected one for argument '{}'", column.text,
                         sources.size(), argument.name);
  for (const Source &source : sources) {
    auto samples = isRandom ? openRandom(source, argument, specs.seed) : openSource(source, argument);
    if (!samples)
      return samples.status();
    DG_RETURN_IF_ERROR(column.addShard(std::move(*samples), source));
  }
  if (column.count == 0)
    return Status::error(ErrorKind::badInput, "{}: holds no samples", column.text);
  const DType type = column.shards.front().samples->type;
  std::optional<Normalization> normalization;
  if (auto found = specs.normalizations.find(argument.name); found != specs.normalizations.end())
    normalization = found->second;
  auto conversion = Conversion::make(type, argument.dtype, normalization);
  if (!conversion)
    return Status::error(conversion.status().kind(), "{} for argument '{}': {}", column.text, argument.name,
                         conversion.status().message());
  column.conversion = *conversion;
  if (auto found = specs.channelNormalizations.find(argument.name); found != specs.channelNormalizations.end()) {
    auto channels = argument.isWhole ? Status::error(ErrorKind::usage, "numbers for each channel need --batch of dgc")
                                     : ChannelNormalization::make(found->second, argument.sampleShape, argument.dtype);
    if (!channels)
      return Status::error(channels.status().kind(), "--normalize {}=…: {}", argument.name,
                           channels.status().message());
    column.channels = *channels;
  }
  if (argument.indexBound != 0)
    column.findOutside = plan::withElement(argument.dtype, []<typename T>(T) -> Column::FindOutside {
      if constexpr (plan::isFloatElement<T>)
        return nullptr;
      else
        return Column::findIn<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;
    });
  if (!specs.findsBad)
    DG_RETURN_IF_ERROR(column.checkBeginning());
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
  for (const auto &[name, channels] : specs.channelNormalizations)
    if (!isArgument(name))
      return Status::error(ErrorKind::usage, "--normalize {}=…: the model has no argument '{}'; it has {}", name, name,
                           fmt::join(names, ", "));
  auto sources = findSources(arguments, specs);
  if (!sources)
    return sources.status();
  Dataset dataset;
  for (const Argument &argument : arguments) {
    if (!specs.sources.contains(argument.name))
      return Status::error(ErrorKind::usage, "argument '{}' has no data; add {} {}=FILE", argument.name, specs.flag,
                           argument.name);
    auto column = openColumn(argument, specs, sources->at(argument.name));
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

Result<std::vector<BadSample>> Dataset::findBad(int64_t most, int64_t numThreads,
                                                const std::function<bool()> &isStopped) const {
  constexpr int64_t atOnce = 16;
  std::vector<BadSample> bad;
  std::mutex mutex;
  std::atomic<int64_t> next = 0;
  std::atomic<bool> isOver = false;
  Status failure = Status::ok();
  auto fail = [&](Status status) {
    failure = std::move(status);
    isOver = true;
  };
  auto check = [&](int64_t sample, std::vector<std::byte> &row, Scratch &scratch) {
    for (const Column &column : columns) {
      row.resize(size_t(column.bytesOfSample()));
      Status status = column.copySample(sample, row.data(), scratch);
      if (status)
        continue;
      std::lock_guard lock(mutex);
      bad.push_back({sample, status.message()});
      if (status.kind() != ErrorKind::badInput && !isOver)
        fail(std::move(status)); // memory or a decoder is missing: no sample's fault
      else if (int64_t(bad.size()) > most && !isOver)
        fail(Status::error(ErrorKind::badInput, "more than {} samples cannot be read (--skip-bad), as {}", most,
                           status.message()));
      return;
    }
  };
  auto work = [&] {
    std::vector<std::byte> row;
    Scratch scratch;
    for (int64_t begin = next.fetch_add(atOnce); begin < numSamples() && !isOver; begin = next.fetch_add(atOnce))
      try {
        for (int64_t sample = begin; sample < std::min(begin + atOnce, numSamples()) && !isOver; ++sample)
          check(sample, row, scratch);
        if (isStopped && isStopped())
          isOver = true;
      } catch (const std::bad_alloc &) {
        std::lock_guard lock(mutex);
        fail(Status::error(ErrorKind::runFailed, "no memory to read samples {} to {}", begin, begin + atOnce - 1));
      }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < numThreads; ++i)
    threads.emplace_back(work);
  for (std::thread &thread : threads)
    thread.join();
  if (!failure)
    return failure;
  if (isOver)
    return Status::error(ErrorKind::runFailed, "stopped while samples were looked at");
  std::sort(bad.begin(), bad.end(), [](const BadSample &a, const BadSample &b) { return a.number < b.number; });
  return bad;
}

Dataset Dataset::take(std::vector<int64_t> samples) const {
  Dataset taken = *this;
  if (!columns.empty())
    for (int64_t &sample : samples)
      sample = columns.front().numberOf(sample);
  auto rows = std::make_shared<const std::vector<int64_t>>(std::move(samples));
  for (Column &column : taken.columns)
    column.rows = rows;
  return taken;
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
