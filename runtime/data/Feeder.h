// SPDX-License-Identifier: Apache-2.0
// Copies one rank's share of a step from the data set into its input buffers: nothing but what this rank computes on is
// touched. Padding rows repeat a sample of the step with weight zero: rows of zeros could make a model's values
// infinite (log 0, x / |x|), and zero times that is NaN.
#pragma once

#include "runtime/data/Dataset.h"
#include "runtime/data/Dealing.h"
#include "runtime/plan/Plan.h"

#include <functional>
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

  /// Fills every input for a step over these samples (indices into the data set, in the step's order; at least one, at
  /// most the program's batch). Each filled row weighs 1 / samples.size() and has its place in `samples` as number.
  /// Fails if a value does not fit its argument's type. Does not allocate.
  Status fill(std::span<const int64_t> samples);
  /// Which sample of the files the last fill has put into a row of a micro-batch, also as padding. As long as the
  /// feeder and what fill was given.
  std::function<int64_t(uint32_t microbatch, int64_t row)> samples() const {
    return [this](uint32_t microbatch, int64_t row) {
      const int64_t sample = filled[size_t(numberAt(int64_t(filled.size()), microbatch, row))];
      return anyColumn ? anyColumn->numberOf(sample) : sample;
    };
  }

private:
  int64_t numberAt(int64_t count, int64_t microbatch, int64_t row) const;

  struct Input {
    enum class Source { column, weight, index } source = Source::column;
    const Column *column = nullptr;
    std::vector<std::byte *> slots; ///< per micro-batch
    int64_t rows = 0, rowBytes = 0;
  };
  std::vector<Input> inputs;
  Deal deal;
  int64_t dataRank = 0, batch = 0;
  const Column *anyColumn = nullptr;
  std::span<const int64_t> filled; ///< what fill was given
};

} // namespace dg::data
