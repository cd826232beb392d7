// SPDX-License-Identifier: Apache-2.0
// A set of samples: one column per graph argument, each from files or a random source, checked against the argument
// when it is opened. The values stay where they are (mapped, in memory, or compressed in files); ranks that are forked
// afterwards share them.
#pragma once

#include "runtime/data/ChannelNormalization.h"
#include "runtime/data/Conversion.h"
#include "runtime/data/remote/Transfer.h"
#include "runtime/data/source/Argument.h"
#include "runtime/data/source/SampleSet.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dg::data {

/// The input port that the runtime feeds itself: one weight per sample, zero for padding.
inline constexpr const char *sampleWeightPort = "sample_weight";
/// The number of each row's sample in the step, which random numbers are drawn by.
inline constexpr const char *sampleIndexPort = "sample_index";

/// The arguments of a program: its input ports but sample_weight and sample_index. Fails if the program has a batch and
/// a port no dimension for it.
Result<std::vector<Argument>> argumentsOf(const plan::Plan &plan, const plan::Program &program);

struct Source;

/// The samples of one argument. Immutable: any thread may read.
class Column {
public:
  const Argument &argument() const { return target; }
  int64_t numSamples() const { return rows ? int64_t(rows->size()) : count; }
  /// Reads and converts sample `index` into `to`, as many elements as the argument's sample has. Fails with its name if
  /// it cannot be read, if a value does not fit, or is a place outside its table.
  Status copySample(int64_t index, std::byte *to, Scratch &scratch) const;
  /// Which sample of the files it is.
  int64_t numberOf(int64_t index) const { return rows ? (*rows)[size_t(index)] : index; }
  /// Bytes of a converted sample.
  int64_t bytesOfSample() const { return elements * conversion.targetBytes(); }
  /// Whether reading a sample costs more than converting what lies in memory or in a mapped file.
  bool isDecoded() const;
  /// What the user wrote: for messages.
  const std::string &spec() const { return text; }

private:
  friend class Dataset;
  struct Shard {
    int64_t firstSample = 0;
    std::shared_ptr<const SampleSet> samples;
    ChannelsLast layout;
  };
  struct Outside {
    int64_t place = 0, value = 0;
  };
  /// The first element of a converted sample that is not below `bound`, or below `least`.
  using FindOutside = std::optional<Outside> (*)(std::span<const std::byte> sample, int64_t least, int64_t bound);
  template <typename T>
  static std::optional<Outside> findIn(std::span<const std::byte> sample, int64_t least, int64_t bound);
  /// Where a sample is, and its number there.
  std::pair<const Shard *, int64_t> locate(int64_t index) const;
  bool convert(const Shard &shard, const std::byte *from, std::byte *to) const;
  std::optional<Outside> outsideIn(const std::byte *sample) const;
  Status addShard(std::shared_ptr<const SampleSet> samples, const Source &from);
  /// Reads places in a table before anything runs: all of a small set, the beginning of one that takes long to read.
  Status checkBeginning() const;
  Argument target;
  std::string text;
  Conversion conversion;
  ChannelNormalization channels;
  std::vector<Shard> shards;
  int64_t count = 0, elements = 0;
  FindOutside findOutside = nullptr;                ///< null: its elements are not places in a table
  std::shared_ptr<const std::vector<int64_t>> rows; ///< which samples of the shards; null: all
};

/// Which data feed which argument, as the user wrote it.
struct DataSpecs {
  std::map<std::string, std::string> sources; ///< argument → spec
  std::map<std::string, Normalization> normalizations;
  std::map<std::string, std::vector<Normalization>> channelNormalizations;
  std::string cache;           ///< folder for files of other machines; empty: none
  TransferLimits transfers;    ///< of these files
  bool findsBad = false;       ///< findBad is asked next: opening looks at no values
  uint64_t seed = 0;           ///< of the random sources
  std::string flag = "--data"; ///< for messages
};

/// A sample that cannot be fed, and why.
struct BadSample {
  int64_t number = 0;
  std::string why;
};

/// Immutable once open: any thread may read, and processes forked later share its memory.
class Dataset {
public:
  /// Opens one column per argument. Fails if one has no source, a source has no argument, a sample's
  /// shape is another, columns differ in their number of samples, or an index is outside its table.
  static Result<Dataset> open(const std::vector<Argument> &arguments, const DataSpecs &specs);
  int64_t numSamples() const { return columns.empty() ? 0 : columns.front().numSamples(); }
  /// Names, shapes and types of the columns, how they are converted, and a hash of the first and last sample of each:
  /// cheap, and the same on every host that was given the same data.
  std::string describe() const;
  /// What the user should know of it: the classes of a folder, files that were left out. A line each.
  std::vector<std::string> notes() const;
  /// The names of its arguments, in their order.
  std::vector<std::string> arguments() const;
  /// Whether classes that were numbered by the names of folders have the same numbers in both. Fails with badInput.
  Status checkClasses(const Dataset &other) const;
  /// Whether any of its columns is.
  bool isDecoded() const;
  /// The samples that cannot be read, in their order. Reads every sample once, with so many threads, which have ended
  /// when it returns. Fails with what is wrong with one of them if there are more than `most`, or if `isStopped`.
  Result<std::vector<BadSample>> findBad(int64_t most, int64_t numThreads,
                                         const std::function<bool()> &isStopped) const;
  /// The samples of these numbers, in this order; it shares the memory of this set.
  Dataset take(std::vector<int64_t> samples) const;
  /// Null if there is none.
  const Column *find(const std::string &argument) const;

private:
  static Result<Column> openColumn(const Argument &argument, const DataSpecs &specs,
                                   const std::vector<Source> &sources);
  std::vector<Column> columns;
};

/// Splits "x=FILE". Fails (usage), naming `flag`, if there is no name or no value.
Result<std::pair<std::string, std::string>> splitAssignment(const std::string &flag, const std::string &text);
/// Reads "MEAN,STD" of --normalize.
Result<Normalization> parseNormalization(const std::string &text);

} // namespace dg::data
