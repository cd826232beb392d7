// SPDX-License-Identifier: Apache-2.0
// Copies one rank's share of a step from the data set into its input buffers: nothing but what this rank computes on is
// touched. Padding rows repeat a sample of the step with weight zero: rows of zeros could make a model's values
// infinite (log 0, x / |x|), and zero times that is NaN.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/data/Dealing.h"
#include "runtime/data/Prefetch.h"
#include "runtime/plan/Plan.h"

#include <functional>
#include <memory>
#include <span>

namespace dg::data {

/// Feeds one program of one rank. One thread at a time.
class Feeder {
public:
  /// Where value `id` of micro-batch `microbatch` lies in this rank's arena.
  using BufferOf = std::function<void *(plan::ValueId id, uint32_t microbatch)>;

  /// Resolves every buffer once. Fails if the plan's input buffers cannot hold the program's batch, or an input is cut
  /// along another dimension than the batch.
  static Result<Feeder> create(const plan::Plan &plan, const plan::Program &program, const Dataset &dataset,
                               plan::Coordinates at, const BufferOf &bufferOf);

  /// From the next fill on this rank is fed these micro-batches of a step, and not those that the plan deals to its
  /// replica. Nothing is read ahead any more.
  void takeMicrobatches(Block own);
  /// From now on rows are read ahead, in the order of the steps that fill will be asked for. The data set outlives the
  /// feeder. Without an effect if no step is to be read ahead.
  void readAhead(const PrefetchOptions &options, StepOrder order);
  /// Fills every input for a step over these samples (indices into the data set, in the step's order; at least one, at
  /// most the program's batch). Each filled row weighs 1 / samples.size() and has its place in `samples` as number.
  /// Fails if a sample cannot be read or does not fit its argument. Does not allocate, but where a sample is decoded
  /// and nothing is read ahead.
  Status fill(std::span<const int64_t> samples);
  /// Of all fills so far.
  DataWait wait() const;
  /// Which sample of the files the last fill has put into a row of a micro-batch, also as padding. As long as the
  /// feeder and what fill was given.
  std::function<int64_t(uint32_t microbatch, int64_t row)> samples() const {
    return [this](uint32_t microbatch, int64_t row) {
      const int64_t sample = filled[size_t(numberAt(int64_t(filled.size()), microbatch, row))];
      return anyColumn ? anyColumn->numberOf(sample) : sample;
    };
  }

private:
  Status fillFrom(const std::byte *ahead, std::span<const int64_t> samples);
  int64_t numberAt(int64_t count, int64_t microbatch, int64_t row) const;

  struct Input {
    enum class Source { column, weight, index } source = Source::column;
    const Column *column = nullptr;
    std::vector<std::byte *> slots; ///< per micro-batch of all replicas
    int64_t rows = 0, rowBytes = 0;
    int64_t aheadAt = 0; ///< where its rows begin in the memory of a step that was read ahead
  };
  std::vector<Input> inputs;
  Deal deal;
  int64_t dataRank = 0, batch = 0;
  Scratch scratch;
  const Column *anyColumn = nullptr;
  std::span<const int64_t> filled; ///< what fill was given
  DataWait waited;
  std::unique_ptr<Prefetch> prefetch; ///< null: fill reads
};

} // namespace dg::data
