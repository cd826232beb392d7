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
  feeder.deal = {int64_t(program.microbatches), plan.mesh.sizeOf(plan::Axis::data)};
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
int64_t Feeder::numberAt(int64_t count, int64_t microbatch, int64_t row) const {
  Block mine = dealtTo(count, deal, microbatch, dataRank);
  return mine.size > 0 ? mine.begin + std::min(row, mine.size - 1) : 0;
}

Status Feeder::fill(std::span<const int64_t> samples) {
  int64_t count = int64_t(samples.size());
  if (count < 1 || count > batch)
    return Status::error(ErrorKind::runFailed, "a step of {} samples was asked of a program for {}", count, batch);
  filled = samples;
  const float weights[] = {float(1.0 / double(count)), 0};
  for (Input &input : inputs)
    for (size_t m = 0; m < input.slots.size(); ++m) {
      Block mine = dealtTo(count, deal, int64_t(m), dataRank);
      std::byte *row = input.slots[m];
      for (int64_t i = 0; i < input.rows; ++i, row += input.rowBytes) {
        bool isPadding = i >= mine.size;
        int64_t number = numberAt(count, int64_t(m), i);
        int64_t sample = samples[size_t(number)];
        if (input.source == Input::Source::weight)
          std::memcpy(row, &weights[isPadding], sizeof(float));
        else if (input.source == Input::Source::index)
          std::memcpy(row, &number, sizeof(number));
        else if (!input.column->copySample(sample, row))
          return input.column->refusal(sample);
      }
    }
  return Status::ok();
}

} // namespace dg::data
