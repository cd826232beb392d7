// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Inference.h"

#include "runtime/data/Feeder.h"
#include "runtime/data/format/TensorFiles.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/SampleRows.h"
#include "runtime/session/Evaluation.h"
#include "runtime/support/FileWriting.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <numeric>
#include <unistd.h>

namespace dg::session {

static const plan::Port *findOutput(const plan::Program &program, const std::string &name) {
  for (const plan::Port &port : program.outputs)
    if (port.name == name && !port.values.empty())
      return &port;
  return nullptr;
}

Status checkInference(const plan::Plan &plan, const InferenceOptions &options) {
  const plan::Program *program = plan.findProgram(plan::ProgramKind::infer);
  if (!program)
    return Status::error(ErrorKind::usage, "the job has no program 'infer'; compile the model with --infer");
  std::vector<std::string> names;
  for (const plan::Port &port : program->outputs)
    names.push_back(port.name);
  for (const auto &[name, path] : options.outputs) {
    const plan::Port *port = findOutput(*program, name);
    if (!port)
      return Status::error(ErrorKind::usage, "--output {}={}: the model has no output '{}'; it has {}", name, path,
                           name, fmt::join(names, ", "));
    const plan::Value &value = plan.values[port->values.front()];
    bool isPerSample = plan::hasSampleRows(plan, *program, value);
    if (!isPerSample && value.shape != value.globalShape)
      return Status::error(ErrorKind::usage,
                           "--output {}={}: the output has no row for each sample, and each rank holds [{}] of [{}]: "
                           "compile the job for a mesh that does not cut it",
                           name, path, fmt::join(value.shape, ", "), fmt::join(value.globalShape, ", "));
    // What its ranks and micro-batches are dealt must be there to be written.
    if (int64_t rows = data::rowsNeeded(program->batch, data::dealOf(plan, *program, {}));
        isPerSample && value.shape[0] < rows)
      return Status::error(ErrorKind::badInput, "plan: output '{}' holds {} rows; a batch of {} needs {}", name,
                           value.shape[0], program->batch, rows);
    if (uint32_t slots = isPerSample ? program->microbatches : 1; value.slots < slots)
      return Status::error(ErrorKind::badInput, "plan: output '{}' has {} slots for {} micro-batches", name,
                           value.slots, slots);
  }
  return Status::ok();
}

Status checkResults(const plan::Plan &plan, const InferenceOptions &options, int64_t numSamples) {
  DG_RETURN_IF_ERROR(checkInference(plan, options));
  const plan::Program &program = *plan.findProgram(plan::ProgramKind::infer);
  const data::Deal deal = data::dealOf(plan, program, {});
  const int64_t rows = plan::sampleRows(plan, program) * deal.dataRanks;
  for (const auto &[name, path] : options.outputs) {
    const plan::Value &value = plan.values[findOutput(program, name)->values.front()];
    if (program.batch == 0 || plan::isPersistent(value.kind) || plan::hasSampleRows(plan, program, value))
      continue;
    std::string what = fmt::format("--output {}={}: the output [{}] has no row for each sample, so that it is of one "
                                   "whole batch",
                                   name, path, fmt::join(value.shape, ", "));
    if (deal.microbatches > 1)
      return Status::error(ErrorKind::usage, "{}, which is cut into {} micro-batches: compile it with --microbatches 1",
                           what, deal.microbatches);
    if (rows != program.batch)
      return Status::error(ErrorKind::usage,
                           "{}, which is padded from {} samples to {}: compile it with --batch {}, or another multiple "
                           "of data={}",
                           what, program.batch, rows, rows, deal.dataRanks);
    if (numSamples != program.batch)
      return Status::error(ErrorKind::usage, "{} of {} samples; found {}: give as many, or compile it with --batch {}",
                           what, program.batch, numSamples, numSamples);
  }
  return Status::ok();
}

/// What a result is called until it is whole.
static std::string partialOf(const std::string &path) { return path + ".partial"; }

void removeUnfinishedResults(const InferenceOptions &options) {
  for (const auto &[name, path] : options.outputs)
    if (path != standardOutput)
      ::unlink(partialOf(path).c_str());
}

namespace {

/// One result file, to which every rank writes the rows that it computed.
class ResultFile {
public:
  /// With a row for each sample, or the whole value. `memory`: of a result that goes to stdout.
  ResultFile(const plan::Plan &plan, const plan::Program &program, std::string output, std::string path, int memory,
             int64_t samples)
      : output(std::move(output)), path(std::move(path)), memory(this->path == standardOutput ? memory : -1) {
    readFrom(plan, program);
    isWhole = !plan::hasSampleRows(plan, program, *value);
    std::vector<int64_t> shape = value->globalShape;
    if (!isWhole)
      shape[0] = samples;
    header = data::makeNpyHeader(value->dtype, shape);
    rowBytes = *data::bytesOf({shape.begin() + (isWhole ? 0 : 1), shape.end()}, plan::sizeOf(value->dtype));
    fileBytes = int64_t(header.size()) + (isWhole ? 1 : samples) * rowBytes;
  }
  ~ResultFile() {
    if (file >= 0)
      ::close(file);
  }
  ResultFile(ResultFile &&other) noexcept = delete;

  /// From now on its rows are those of the output of this plan, which are the same but for their number.
  void readFrom(const plan::Plan &plan, const plan::Program &program) {
    id = findOutput(program, output)->values.front();
    value = &plan.values[id];
  }

  Status create() const {
    int made = memory >= 0 ? ::dup(memory) : makeFileAnew(partialOf(path)); // every rank knows the name
    if (made < 0)
      return failed(-made);
    int code = ::posix_fallocate(made, 0, off_t(fileBytes));
    if (code == 0)
      code = writeAllAt(made, header.data(), header.size(), 0);
    ::close(made);
    return code == 0 ? Status::ok() : failed(code);
  }
  Status open() {
    file = memory >= 0 ? ::dup(memory) : ::open(partialOf(path).c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    return file >= 0 ? Status::ok() : failed(errno);
  }
  /// Rows `first` … of the result, from the first rows of a slot.
  Status writeRows(const ValueAccess &values, uint32_t slot, int64_t first, int64_t count) const {
    return values.inspect(id, slot, [&](std::span<const std::byte> rows) {
      int code = writeAllAt(file, rows.data(), size_t(count * rowBytes), header.size() + uint64_t(first * rowBytes));
      return code == 0 ? Status::ok() : failed(code);
    });
  }
  /// What this rank wrote is on the disk then.
  Status synchronise() const { return ::fsync(file) == 0 ? Status::ok() : failed(errno); }
  /// Gives it its name, or to stdout, once all ranks have synchronised.
  Status finish() const {
    if (memory >= 0)
      return copyToStandardOutput();
    if (::rename(partialOf(path).c_str(), path.c_str()) != 0)
      return failed(errno);
    int code = syncFolder(std::filesystem::path(path).parent_path().string());
    return code == 0 ? Status::ok() : failed(code);
  }

  /// Whether this rank writes rows of the result: of ranks with the same rows, the first.
  bool isMine(plan::Coordinates at) const {
    return int64_t(value->stage) == at.pipe && at.tensor == 0 && (!isWhole || (at.data == 0 && at.replica == 0));
  }

  bool isWhole = false; ///< the value has no row for each sample: it is written once

private:
  Status failed(int error) const {
    return Status::error(ErrorKind::unwritten, "{}: the result ({} bytes) cannot be written: {}",
                         memory >= 0 ? "stdout" : path, fileBytes, std::strerror(error));
  }
  Status copyToStandardOutput() const {
    std::array<char, 1 << 16> piece;
    errno = 0;
    for (off_t at = 0; at < fileBytes;) {
      ssize_t got = ::pread(memory, piece.data(), piece.size(), at);
      if (got <= 0 || std::fwrite(piece.data(), 1, size_t(got), stdout) != size_t(got))
        return failed(errno);
      at += got;
    }
    return std::fflush(stdout) == 0 ? Status::ok() : failed(errno);
  }
  const plan::Value *value = nullptr;
  plan::ValueId id = 0;
  std::string output, path, header;
  int memory;
  int64_t rowBytes = 0, fileBytes = 0;
  int file = -1;
};

} // namespace

namespace {

/// The samples of one plan, in batches of its size.
struct Part {
  int64_t first = 0, count = 0;
};

/// What a run has done so far, over its parts.
struct Progress {
  uint64_t steps = 0, arenaBytes = 0;
  data::DataWait wait;
};

} // namespace

static Status inferBatches(const RankRun &run, const InferenceOptions &options, Part part, data::Feeder &feeder,
                           std::span<const std::unique_ptr<ResultFile>> files, Progress &progress,
                           bool &hasPeerFailed) {
  size_t index = indexOfProgram(run.plan, plan::ProgramKind::infer);
  const plan::Program &program = run.plan.programs[index];
  plan::Coordinates at = run.at();
  const data::Deal deal = data::dealOf(run.plan, program, at);
  const int64_t batch = std::max<int64_t>(program.batch, 1);
  std::vector<int64_t> ofStep(static_cast<size_t>(batch));
  dg_scalars scalars{};
  scalars.seed = options.seed;
  scalars.step = progress.steps;
  if (run.plan.findProgram(plan::ProgramKind::prepare))
    if (Status status = run.executor.runStep(indexOfProgram(run.plan, plan::ProgramKind::prepare), scalars); !status) {
      hasPeerFailed = true;
      return status;
    }
  for (int64_t position = part.first, end = part.first + part.count; position < end; position += batch) {
    int64_t count = std::min(batch, end - position);
    std::iota(ofStep.begin(), ofStep.end(), position);
    DG_RETURN_IF_ERROR(feeder.fill(std::span(ofStep).first(size_t(count))));
    progress.steps = ++scalars.step;
    auto begin = std::chrono::steady_clock::now();
    if (Status status = run.executor.runStep(index, scalars, feeder.samples()); !status) {
      hasPeerFailed = true;
      return status;
    }
    double stepUs = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    run.reporter.inferred({int64_t(scalars.step), count, stepUs, int64_t(program.batch)});
    if (run.trace)
      run.trace->collect(plan::ProgramKind::infer, scalars.step);
    for (const auto &file : files)
      for (uint32_t m = 0; file->isMine(at) && !file->isWhole && m < program.microbatches; ++m) {
        data::Block rows = data::dealtTo(count, deal, m, at.data);
        DG_RETURN_IF_ERROR(file->writeRows(run.executor, m, position + rows.begin, rows.size));
      }
  }
  return Status::ok();
}

/// One part on the run's plan and executor; the feeder is gone before another executor comes.
static Status inferPart(const RankRun &run, const InferenceOptions &options, const data::Dataset &dataset, Part part,
                        std::span<const std::unique_ptr<ResultFile>> files, Progress &progress, bool &hasPeerFailed) {
  const plan::Program &program = *run.plan.findProgram(plan::ProgramKind::infer);
  auto feeder = data::Feeder::create(run.plan, program, dataset, run.at(),
                                     [&](plan::ValueId id, uint32_t m) { return run.executor.inputBuffer(id, m); });
  if (!feeder)
    return feeder.status();
  data::StepOrder order = data::inTurn(part.count, std::max<int64_t>(program.batch, 1));
  feeder->readAhead(run.readAhead, {order.count, [order, first = part.first](int64_t step, int64_t number) {
                                      return first + order.sample(step, number);
                                    }});
  for (const auto &file : files)
    file->readFrom(run.plan, program);
  Status status = inferBatches(run, options, part, *feeder, files, progress, hasPeerFailed);
  const data::DataWait wait = feeder->wait();
  progress.wait.waitSeconds += wait.waitSeconds, progress.wait.readSeconds += wait.readSeconds;
  progress.wait.readers = wait.readers, progress.wait.bytes = std::max(progress.wait.bytes, wait.bytes);
  progress.arenaBytes = std::max(progress.arenaBytes, run.executor.arenaBytes());
  for (const auto &file : files)
    if (status && file->isWhole && file->isMine(run.at()))
      status = file->writeRows(run.executor, 0, 0, 1);
  return status;
}

/// Whole batches on the run's plan, and what is left on the plan of `rest` where it has one.
static Status inferAll(const RankRun &run, const InferenceOptions &options, const data::Dataset &dataset,
                       const RestRun &rest, std::span<const std::unique_ptr<ResultFile>> files, Progress &progress,
                       bool &hasPeerFailed) {
  const plan::Program &program = *run.plan.findProgram(plan::ProgramKind::infer);
  // Without a batch all inputs together are one sample, also where there is no input.
  const int64_t samples = program.batch == 0 ? 1 : dataset.numSamples();
  const int64_t numLeft = rest.plan ? samples % program.batch : 0;
  DG_RETURN_IF_ERROR(inferPart(run, options, dataset, {0, samples - numLeft}, files, progress, hasPeerFailed));
  if (numLeft == 0)
    return Status::ok();
  Result<Executor *> executor = rest.make();
  if (!executor)
    return executor.status();
  RankRun last(*rest.plan, run.rank, **executor, run.reporter);
  last.readAhead = run.readAhead;
  return inferPart(last, options, dataset, {samples - numLeft, numLeft}, files, progress, hasPeerFailed);
}

Status runInference(const RankRun &run, const InferenceOptions &options, const data::Dataset &dataset,
                    bool &hasPeerFailed, const RestRun &rest) {
  DG_RETURN_IF_ERROR(checkResults(run.plan, options, dataset.numSamples()));
  auto begin = std::chrono::steady_clock::now();
  const plan::Program &program = *run.plan.findProgram(plan::ProgramKind::infer);
  std::vector<std::unique_ptr<ResultFile>> files;
  for (const auto &[name, path] : options.outputs)
    files.push_back(std::make_unique<ResultFile>(run.plan, program, name, path, options.memory, dataset.numSamples()));
  StartInfo info;
  info.plan = &run.plan;
  info.program = plan::ProgramKind::infer;
  info.batch = program.batch;
  info.samples = dataset.numSamples();
  info.threads = options.threads;
  info.seed = options.seed;
  info.target = run.target;
  run.reporter.start(info);
  auto each = [&](auto action) {
    for (auto &file : files)
      DG_RETURN_IF_ERROR(action(*file));
    return Status::ok();
  };
  Status status = run.agree(run.rank == 0 ? each([](ResultFile &file) { return file.create(); }) : Status::ok());
  if (status)
    status = each([](ResultFile &file) { return file.open(); });
  run.setPhase(RankPhase::inferring);
  Progress progress;
  if (status)
    status = inferAll(run, options, dataset, rest, files, progress, hasPeerFailed);
  if (status)
    status = each([](ResultFile &file) { return file.synchronise(); });
  if (!hasPeerFailed)
    status = run.agree(status);
  if (status)
    status = run.agree(run.rank == 0 ? each([](ResultFile &file) { return file.finish(); }) : Status::ok());
  if (!status && run.rank == 0)
    removeUnfinishedResults(options);
  if (status) {
    EndInfo end;
    end.steps = int64_t(progress.steps);
    end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    end.arenaBytes = progress.arenaBytes, end.peakBytes = run.peakBytes();
    end.samples = dataset.numSamples(), end.data = progress.wait;
    run.reporter.end(end);
  }
  run.reporter.flush();
  return status;
}

} // namespace dg::session
