// SPDX-License-Identifier: Apache-2.0
// The samples of one shard of one argument, by number: the one interface behind which files, archives, folders and
// tables are the same. Samples of one set have one type and shape.
#pragma once

#include "runtime/data/format/Tensor.h"
#include "runtime/support/Status.h"

#include <span>
#include <string>
#include <vector>

namespace dg::data {

/// What a reader of samples needs for itself; it grows to the largest sample and is used again.
struct Scratch {
  std::vector<std::byte> file, image, sample;
};

/// Immutable: any thread may read, each with its own scratch memory, and processes forked later share it.
class SampleSet {
public:
  SampleSet(std::string source, DType type, std::vector<int64_t> sampleShape, int64_t numSamples)
      : source(std::move(source)), type(type), sampleShape(std::move(sampleShape)), numSamples(numSamples) {}
  virtual ~SampleSet() = default;
  SampleSet(const SampleSet &) = delete;
  SampleSet &operator=(const SampleSet &) = delete;

  /// The elements of a sample: where they lie, or decoded into scratch.sample, which the next call overwrites. Fails
  /// with the name of shard and sample.
  virtual Result<const std::byte *> read(int64_t index, Scratch &scratch) const = 0;
  /// "train.tar: sample 17 (0017.jpg)", for messages.
  virtual std::string nameOf(int64_t index) const { return fmt::format("{}: sample {}", source, index); }
  /// Whether a sample costs more than a look into memory or a mapped file.
  virtual bool isDecoded() const { return true; }
  /// Whether its samples are images, height x width x channels.
  virtual bool isImages() const { return false; }
  /// The names of the classes that its samples are numbers of; empty: unknown.
  virtual std::span<const std::string> classes() const { return {}; }
  /// What was left out of it, for the user; empty: nothing.
  virtual std::string note() const { return ""; }

  const std::string source; ///< as the user wrote it
  const DType type;
  const std::vector<int64_t> sampleShape;
  const int64_t numSamples;
};

/// The rows of a tensor, or the whole tensor as one sample.
class TensorSet final : public SampleSet {
public:
  /// The tensor has a dimension unless it is whole.
  TensorSet(std::string source, Tensor tensor, bool isWhole);
  Result<const std::byte *> read(int64_t index, Scratch &) const override { return data + index * sampleBytes; }
  bool isDecoded() const override { return false; }

private:
  const std::byte *data;
  std::shared_ptr<const void> owner;
  int64_t sampleBytes;
};

} // namespace dg::data
