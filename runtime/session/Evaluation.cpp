// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Evaluation.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dg::session {

size_t indexOfProgram(const plan::Plan &plan, plan::ProgramKind kind) {
  return size_t(plan.findProgram(kind) - plan.programs.data());
}

float scalarOf(const Executor &executor, size_t program, const std::string &port) {
  float value = 0;
  std::optional<plan::ValueId> found = executor.findPort(program, port);
  return found && executor.read(*found, 0, std::as_writable_bytes(std::span(&value, 1))) ? value : 0;
}

bool hasOutput(const plan::Program &program, const std::string &name) {
  return std::any_of(program.outputs.begin(), program.outputs.end(),
                     [&](const plan::Port &port) { return port.name == name; });
}

Status checkWholeBatches(const plan::Program &program, int64_t batch, int64_t numSamples, const char *flag,
                         const char *advice) {
  const bool isWhole =
      (batch == 0 || batch == program.batch) && (program.batch == 0 || numSamples % program.batch == 0);
  if (program.mixesSamples.empty() || isWhole)
    return Status::ok();
  return Status::error(ErrorKind::usage,
                       "{}: {} mixes the samples of a batch, so that only whole batches of {} can be run; found {} "
                       "samples{}: {}",
                       flag, program.mixesSamples, program.batch, numSamples,
                       batch > 0 ? fmt::format(", {} at a time", batch) : "", advice);
}

Status checkEvaluation(const plan::Plan &plan, int64_t batch) {
  const plan::Program *program = plan.findProgram(plan::ProgramKind::eval);
  if (!program)
    return Status::error(ErrorKind::usage, "--eval-data: the job has no program 'eval'; compile the model with a loss");
  if (program->batch < 1)
    return Status::error(ErrorKind::usage,
                         "--eval-data: the job was compiled without --batch, so that it cannot tell samples apart; "
                         "compile the model with --batch N");
  if (batch > program->batch)
    return Status::error(ErrorKind::usage, "--eval-batch {}: the job evaluates at most {} samples at once", batch,
                         program->batch);
  return Status::ok();
}

Result<Evaluation> Evaluation::create(const RankRun &run, const data::Dataset &dataset, int64_t batch) {
  DG_RETURN_IF_ERROR(checkEvaluation(run.plan, batch));
  size_t index = indexOfProgram(run.plan, plan::ProgramKind::eval);
  const plan::Program &program = run.plan.programs[index];
  auto feeder = data::Feeder::create(run.plan, program, dataset, run.at(),
                                     [&](plan::ValueId id, uint32_t m) { return run.executor.inputBuffer(id, m); });
  if (!feeder)
    return feeder.status();
  Evaluation evaluation(run, std::move(*feeder));
  evaluation.program = index;
  evaluation.batch = batch > 0 ? batch : program.batch;
  evaluation.feeder.readAhead(run.readAhead, data::inTurn(dataset.numSamples(), evaluation.batch));
  evaluation.numSamples = dataset.numSamples();
  evaluation.samples.resize(size_t(evaluation.batch));
  evaluation.hasLoss = hasOutput(program, "loss");
  evaluation.hasAccuracy = hasOutput(program, "accuracy");
  if (MetricSums::areIn(program))
    evaluation.metrics.emplace(run.plan, program, run.at());
  return evaluation;
}

Result<std::optional<EvaluationInfo>> Evaluation::evaluate(LossChannel &channel, uint64_t seed,
                                                           const std::function<bool()> &mayGoOn, bool &hasPeerFailed) {
  run->setPhase(RankPhase::evaluating);
  auto begin = std::chrono::steady_clock::now();
  double sums[2] = {0, 0};
  if (metrics)
    metrics->clear();
  dg_scalars scalars{};
  scalars.seed = seed;
  for (int64_t position = 0; position < numSamples; position += batch) {
    if (!mayGoOn())
      return std::optional<EvaluationInfo>();
    int64_t count = std::min(batch, numSamples - position);
    std::iota(samples.begin(), samples.end(), position);
    DG_RETURN_IF_ERROR(feeder.fill(std::span(samples).first(size_t(count))));
    ++scalars.step;
    if (Status status = run->executor.runStep(program, scalars, feeder.samples()); !status) {
      hasPeerFailed = true;
      return status;
    }
    if (run->trace)
      run->trace->collect(plan::ProgramKind::eval, scalars.step);
    if (channel.isSource()) {
      sums[0] += double(scalarOf(run->executor, program, "loss")) * double(count);
      sums[1] += double(scalarOf(run->executor, program, "accuracy")) * double(count);
    }
    if (metrics)
      DG_RETURN_IF_ERROR(metrics->add(run->executor, count));
  }
  // Every rank learns the numbers: schedules and stopping depend on them.
  auto all = run->gather(channel.isSource() ? std::string(reinterpret_cast<const char *>(sums), sizeof sums) : "");
  if (!all) {
    hasPeerFailed = true;
    return all.status();
  }
  for (const std::string &part : *all)
    if (part.size() == sizeof sums)
      std::memcpy(sums, part.data(), sizeof sums);
  EvaluationInfo info;
  if (metrics) {
    auto counts = run->gather(metrics->pack());
    if (!counts) {
      hasPeerFailed = true;
      return counts.status();
    }
    metrics->clear();
    for (const std::string &part : *counts)
      if (!metrics->merge(part))
        return Status::error(ErrorKind::runFailed, "the counts of an evaluation came damaged from another rank");
    info.metrics = metrics->finish();
  }
  info.samples = numSamples;
  info.loss = sums[0] / double(numSamples);
  info.accuracy = sums[1] / double(numSamples);
  info.hasLoss = hasLoss, info.hasAccuracy = hasAccuracy;
  info.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run->setPhase(RankPhase::training);
  return std::optional(info);
}

Result<bool> runEvaluation(const RankRun &run, const EvaluationOptions &options, const data::Dataset &dataset,
                           bool &hasPeerFailed) {
  auto evaluation = Evaluation::create(run, dataset, options.batch);
  if (!evaluation)
    return evaluation.status();
  LossChannel channel(run.plan, run.rank, run.transport, run.timeout, [](const StepInfo &) {}, run.progress);
  StartInfo start;
  start.plan = &run.plan;
  start.program = plan::ProgramKind::eval;
  start.batch = options.batch > 0 ? options.batch : run.plan.findProgram(plan::ProgramKind::eval)->batch;
  start.samples = dataset.numSamples();
  start.threads = options.threads;
  start.seed = options.seed;
  start.target = run.target;
  run.reporter.start(start);
  auto begin = std::chrono::steady_clock::now();
  uint64_t steps = 0;
  auto info = evaluation->evaluate(channel, options.seed, [&] { return run.mayStartStep(++steps); }, hasPeerFailed);
  if (!info)
    return info.status();
  if (*info)
    run.reporter.evaluation(**info);
  EndInfo end;
  end.steps = int64_t(steps);
  end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  end.stopped = !*info;
  end.arenaBytes = run.executor.arenaBytes(), end.peakBytes = run.peakBytes();
  end.samples = dataset.numSamples(), end.data = evaluation->wait();
  run.reporter.end(end);
  run.reporter.flush();
  return info->has_value();
}

} // namespace dg::session
