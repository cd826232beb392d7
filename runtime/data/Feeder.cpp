// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Feeder.h"

#include <algorithm>
#include <cstring>

namespace dg::data {

/// The program has no batch: one rank on the data axis is fed each input as one row.
static Status checkWhole(const plan::Value &value, Deal deal) {
  if (value.shape != value.globalShape || deal.dataRanks > 1 || deal.microbatches > 1)
    return Status::error(ErrorKind::usage,
                         "input '{}' is cut over {} data ranks and {} micro-batches, but the job was compiled without "
                         "--batch: compile it with --batch, or with data=1 and one micro-batch",
                         value.name, deal.dataRanks, deal.microbatches);
  return Status::ok();
}

static Status checkInput(const plan::Value &value, const plan::Program &program, Deal deal) {
  if (value.shape.empty() || value.globalShape.size() != value.shape.size())
    return Status::error(ErrorKind::badInput, "plan: input '{}' has no batch dimension", value.name);
  for (size_t dim = 1; dim < value.shape.size(); ++dim)
    if (value.shape[dim] != value.globalShape[dim])
      return Status::error(ErrorKind::badInput, "plan: input '{}' is cut along dimension {}; only the batch may be cut",
                           value.name, dim);
  int64_t rows = rowsNeeded(program.batch, deal);
  if (value.shape[0] < rows)
    return Status::error(
        ErrorKind::badInput,
        "plan: input '{}' holds {} rows; a batch of {} over {} micro-batches and {} data ranks needs {}", value.name,
        value.shape[0], program.batch, deal.microbatches, deal.dataRanks, rows);
  if (value.slots < program.microbatches)
    return Status::error(ErrorKind::badInput, "plan: input '{}' has {} slots for {} micro-batches", value.name,
                         value.slots, program.microbatches);
  return Status::ok();
}

Result<Feeder> Feeder::create(const plan::Plan &plan, const plan::Program &program, const Dataset &dataset,
                              plan::Coordinates at, const BufferOf &bufferOf) {
  Feeder feeder;
  bool isWhole = program.batch == 0;
  feeder.batch = isWhole ? 1 : program.batch;
  feeder.dataRank = at.data;
  feeder.deal = dealOf(plan, program, at);
  for (const plan::Port &port : program.inputs) {
    const Column *column = dataset.find(port.name);
    feeder.anyColumn = column ? column : feeder.anyColumn;
    for (plan::ValueId id : port.values) {
      const plan::Value &value = plan.values[id];
      if (int64_t(value.stage) != at.pipe)
        continue;
      DG_RETURN_IF_ERROR(isWhole ? checkWhole(value, feeder.deal) : checkInput(value, program, feeder.deal));
      Input input;
      input.rows = isWhole ? 1 : value.shape[0];
      input.rowBytes = plan::sizeOf(value.dtype);
      for (size_t dim = isWhole ? 0 : 1; dim < value.shape.size(); ++dim)
        input.rowBytes *= value.shape[dim];
      if (port.name == sampleWeightPort) {
        input.source = Input::Source::weight;
        if (value.dtype != plan::DType::f32 || input.rowBytes != int64_t(sizeof(float)))
          return Status::error(ErrorKind::badInput, "plan: input '{}' is not one f32 per sample", value.name);
      } else if (port.name == sampleIndexPort) {
        input.source = Input::Source::index;
        if (value.dtype != plan::DType::i64 || input.rowBytes != int64_t(sizeof(int64_t)))
          return Status::error(ErrorKind::badInput, "plan: input '{}' is not one i64 per sample", value.name);
      } else {
        input.column = column;
        if (!input.column)
          return Status::error(ErrorKind::usage, "argument '{}' has no data", port.name);
      }
      for (uint32_t m = 0; m < program.microbatches; ++m)
        input.slots.push_back(static_cast<std::byte *>(bufferOf(id, m)));
      feeder.inputs.push_back(std::move(input));
    }
  }
  return feeder;
}

/// The place among `count` samples of the one in a row. Padding repeats this rank's last sample, or the first of a step
/// in which the rank has none.
static int64_t numberIn(Block mine, int64_t row) {
  return mine.size > 0 ? mine.begin + std::min(row, mine.size - 1) : 0;
}

int64_t Feeder::numberAt(int64_t count, int64_t microbatch, int64_t row) const {
  return numberIn(dealtTo(count, deal, microbatch, dataRank), row);
}

void Feeder::takeMicrobatches(Block own) {
  if (prefetch)
    waited.readSeconds += prefetch->readSeconds();
  prefetch.reset();
  deal.own = own;
}

void Feeder::readAhead(const PrefetchOptions &options, StepOrder order) {
  struct Row {
    const Column *column;
    int64_t microbatch, row, at;
  };
  std::vector<Row> rows;
  int64_t bytes = 0;
  for (Input &input : inputs) {
    if (input.source != Input::Source::column)
      continue;
    input.aheadAt = bytes;
    for (int64_t m = 0; m < deal.own->size; ++m)
      for (int64_t i = 0; i < input.rows; ++i, bytes += input.rowBytes)
        rows.push_back({input.column, deal.own->begin + m, i, bytes});
  }
  constexpr int64_t usualSteps = 2;
  const bool isDecoded = std::any_of(rows.begin(), rows.end(), [](const Row &row) { return row.column->isDecoded(); });
  const int64_t steps = options.steps.value_or(isDecoded ? usualSteps : 0);
  if (steps < 1 || rows.empty())
    return;
  const int64_t numRows = int64_t(rows.size());
  // Readers see nothing of the feeder, which may move.
  auto readRow = [rows = std::move(rows), deal = deal, dataRank = dataRank](
                     int64_t number, int64_t count, const auto &sampleAt, std::byte *step, Scratch &scratch) {
    const Row &row = rows[size_t(number)];
    const Block mine = dealtTo(count, deal, row.microbatch, dataRank);
    return row.column->copySample(sampleAt(numberIn(mine, row.row)), step + row.at, scratch);
  };
  prefetch = std::make_unique<Prefetch>(steps, options, std::move(order), numRows, bytes, std::move(readRow));
  waited.readers = options.readers;
  waited.steps = steps;
  waited.bytes = prefetch->bytes();
}

DataWait Feeder::wait() const {
  DataWait wait = waited;
  if (prefetch)
    wait.readSeconds += prefetch->readSeconds();
  return wait;
}

Status Feeder::fill(std::span<const int64_t> samples) {
  const auto begin = std::chrono::steady_clock::now();
  int64_t count = int64_t(samples.size());
  if (count < 1 || count > batch)
    return Status::error(ErrorKind::runFailed, "a step of {} samples was asked of a program for {}", count, batch);
  const std::byte *ahead = nullptr;
  if (prefetch) {
    auto taken = prefetch->take(count, samples.front());
    if (!taken)
      return taken.status();
    ahead = *taken;
  }
  Status status = fillFrom(ahead, samples);
  if (prefetch)
    prefetch->release();
  waited.waitSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return status;
}

Status Feeder::fillFrom(const std::byte *ahead, std::span<const int64_t> samples) {
  const int64_t count = int64_t(samples.size());
  filled = samples;
  const float weights[] = {float(1.0 / double(count)), 0};
  for (Input &input : inputs)
    for (int64_t m = 0; m < deal.own->size; ++m) {
      const int64_t microbatch = deal.own->begin + m;
      Block mine = dealtTo(count, deal, microbatch, dataRank);
      std::byte *row = input.slots[size_t(microbatch)];
      if (const int64_t bytes = input.rows * input.rowBytes; ahead && input.column) {
        std::memcpy(row, ahead + input.aheadAt + m * bytes, size_t(bytes));
        continue;
      }
      switch (input.source) {
      case Input::Source::weight:
        for (int64_t i = 0; i < input.rows; ++i)
          std::memcpy(row + i * input.rowBytes, &weights[i >= mine.size], sizeof(float));
        break;
      case Input::Source::index:
        for (int64_t i = 0; i < input.rows; ++i) {
          const int64_t number = numberIn(mine, i);
          std::memcpy(row + i * input.rowBytes, &number, sizeof(number));
        }
        break;
      case Input::Source::column:
        for (int64_t i = 0; i < input.rows; ++i, row += input.rowBytes)
          DG_RETURN_IF_ERROR(input.column->copySample(samples[size_t(numberIn(mine, i))], row, scratch));
      }
    }
  return Status::ok();
}

} // namespace dg::data
