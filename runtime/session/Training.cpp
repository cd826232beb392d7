// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Training.h"

#include "runtime/checkpoint/Retention.h"
#include "runtime/data/Feeder.h"
#include "runtime/session/Evaluation.h"
#include "runtime/session/ReplicaCheck.h"
#include "runtime/session/report/LossChannel.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

namespace dg::session {

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Status checkTraining(const plan::Plan &plan, const TrainingOptions &options, int64_t numSamples) {
  const plan::Program *program = plan.findProgram(plan::ProgramKind::train);
  if (!program)
    return Status::error(ErrorKind::usage, "the job has no program 'train'; compile the model with --train");
  if (program->batch < 1)
    return Status::error(ErrorKind::usage, "the job was compiled without --batch, so that it cannot tell samples "
                                           "apart; compile the model with --batch N");
  if (options.dropLast && numSamples < program->batch)
    return Status::error(ErrorKind::usage, "--drop-last: the data set has {} samples, less than one batch of {}",
                         numSamples, program->batch);
  return Status::ok();
}

int64_t stepsPerEpoch(const plan::Plan &plan, const TrainingOptions &options, int64_t numSamples) {
  const int64_t batch = plan.findProgram(plan::ProgramKind::train)->batch;
  return options.dropLast ? numSamples / batch : (numSamples + batch - 1) / batch;
}

Status checkResume(const checkpoint::TrainingState &state, const TrainingOptions &options, int64_t numSamples) {
  if (state.seed != options.seed)
    return Status::error(ErrorKind::usage,
                         "--seed {}: the checkpoint was trained with seed {}; leave --seed out to continue",
                         options.seed, state.seed);
  if (state.validation != options.validation)
    return Status::error(ErrorKind::usage,
                         "--validation {:g}: the checkpoint was trained with {:g} of the data held out; give the same, "
                         "or leave --validation out",
                         options.validation, state.validation);
  if (state.position == 0)
    return Status::ok();
  if (state.numSamples != numSamples)
    return Status::error(ErrorKind::usage,
                         "the checkpoint is at sample {} of {} in epoch {}, but the data set now has {} samples; "
                         "resume with the same data",
                         state.position, state.numSamples, state.epoch + 1, numSamples);
  if (state.shuffle != options.shuffle.describe())
    return Status::error(ErrorKind::usage,
                         "the checkpoint is in the middle of epoch {}, shuffled as '{}', but '{}' is given now; resume "
                         "with the same order",
                         state.epoch + 1, state.shuffle, options.shuffle.describe());
  return Status::ok();
}

namespace {

class Loop {
public:
  Loop(const RankRun &run, const TrainingOptions &options, const data::Dataset &dataset, data::Feeder feeder)
      : run(run), options(options), dataset(dataset), feeder(std::move(feeder)),
        program(indexOfProgram(run.plan, plan::ProgramKind::train)), batch(run.plan.programs[program].batch),
        channel(
            run.plan, run.rank, run.transport, run.timeout,
            [this](const StepInfo &info) {
              state.lossSum += double(info.loss) * double(info.samples);
              this->run.reporter.step(info);
              // The step before left good parameters: what its checkpoint replaces may go.
              if (pruneAfter == info.step - 1 && std::isfinite(info.loss))
                prune();
            },
            run.progress) {}

  Status begin(const checkpoint::Checkpoint *resume, const data::Dataset *evalDataset);
  Result<Outcome> train();
  bool hasPeerFailed = false;

private:
  bool isFinished() const {
    return (options.epochs > 0 && state.epoch >= options.epochs) ||
           (options.steps > 0 && state.step >= options.steps) || isStoppedByRule();
  }
  bool isStoppedByRule() const { return options.stopWhen && options.stopWhen->isOver(state.stopping); }
  /// Samples of the next step; 0 at the end of the epoch.
  int64_t nextCount() const {
    int64_t left = dataset.numSamples() - state.position;
    return options.dropLast && left < batch ? 0 : std::min(left, batch);
  }
  int64_t stepsPerEpoch() const { return session::stepsPerEpoch(run.plan, options, dataset.numSamples()); }
  /// Where the schedule stands after `step` steps.
  TrainingPoint pointAt(int64_t step) const { return {step, state.epoch, std::max<int64_t>(stepsPerEpoch(), 1)}; }
  double learningRateAt(int64_t step) const {
    return options.learningRate * options.schedule.factorAt(pointAt(step)) * state.plateau.factor;
  }
  Status runStep(std::span<const int64_t> order, int64_t count);
  /// Whether all steps of the epoch were run, but it is not closed: the job was stopped in its evaluation.
  bool isEpochOpen() const { return state.position > 0 && nextCount() == 0; }
  /// Evaluates, then reports and closes the epoch. `stopped`: the job was asked to stop before that was done, and the
  /// epoch is still open.
  Result<Outcome> closeEpoch(Clock::time_point begin);
  Status checkReplicas();
  /// Leaves `found` empty where there is nothing to evaluate on.
  Result<Outcome> evaluate(std::optional<EvaluationInfo> &found);
  /// Tells an evaluation, and what follows from it. One that is not due, as at the end of --steps, changes nothing of
  /// how a longer run goes on.
  void report(std::optional<EvaluationInfo> evaluated, bool isDue);
  /// Fails, on the rank that has the loss, unless it is finite or need not be. It came from the parameters after
  /// `parametersStep`: a checkpoint of these is not a good one.
  Status checkLoss(const char *what, double loss, int64_t parametersStep) const;
  /// Inside an epoch, before its next step: what is due after the step before it. `stopped` as evaluate.
  Result<Outcome> betweenSteps();
  Status save();
  /// Counts the step. Who was asked to save in an evaluation does it before the next step of the training.
  bool mayStartStep() {
    const bool may = run.mayStartStep(++stepsHere);
    isSaveAsked = isSaveAsked || (may && run.isSaveDue && run.isSaveDue(stepsHere));
    return may;
  }
  /// Removes the checkpoints that --keep does not keep, on rank 0; what fails is said by the next save.
  void prune();
  /// Without a checkpoint, which would have refused them: whether the last step left finite parameters.
  Status checkParameters() const;
  Result<Outcome> finish(Outcome outcome);
  /// A failure inside a step or in a message means that another rank is gone or silent.
  Status fromPeer(Status status) {
    hasPeerFailed = hasPeerFailed || !status;
    return status;
  }

  const RankRun &run;
  const TrainingOptions &options;
  const data::Dataset &dataset;
  data::Feeder feeder;
  size_t program;
  int64_t batch;
  checkpoint::TrainingState state;
  LossChannel channel;
  std::optional<Evaluation> evaluation;
  std::optional<checkpoint::CheckpointWriter> writer;
  int64_t savedStep = -1;
  std::string lastCheckpoint, checkpointBefore; ///< empty: none
  bool isNewBest = false;                       ///< the last evaluation, which then is saved
  std::optional<int64_t> bestSaved;             ///< the step of the best checkpoint
  std::optional<int64_t> pruneAfter;            ///< the step of a checkpoint whose parameters have not given a loss yet
  bool isSaveAsked = false;                     ///< by SIGUSR1
  uint64_t stepsHere = 0;                       ///< of this process, those of evaluations too
  Clock::time_point started = Clock::now();
};

Status Loop::begin(const checkpoint::Checkpoint *resume, const data::Dataset *evalDataset) {
  if (resume) {
    DG_RETURN_IF_ERROR(resume->restore(run.plan, run.at(), run.executor));
    state = resume->state();
    savedStep = state.step;
    lastCheckpoint = resume->path();
    if (state.kept && options.keepBest && state.kept->metric == options.keepBest->name)
      bestSaved = state.kept->step;
  }
  state.model = run.plan.model.name;
  state.seed = options.seed;
  state.numSamples = dataset.numSamples();
  state.shuffle = options.shuffle.describe();
  state.learningRate = options.learningRate;
  if (state.schedule != options.schedule.describe())
    state.plateau = {}; // it was another schedule's
  state.schedule = options.schedule.describe();
  state.validation = options.validation;
  if (evalDataset) {
    auto made = Evaluation::create(run, *evalDataset, options.evalBatch);
    if (!made)
      return made.status();
    evaluation.emplace(std::move(*made));
  }
  if (!options.checkpointDirectory.empty()) {
    auto made = checkpoint::CheckpointWriter::create(run.plan, run.rank, options.checkpointDirectory, run.executor,
                                                     run.agree, options.allowNan, options.checkpointRun);
    if (!made)
      return made.status();
    writer.emplace(std::move(*made));
  }
  StartInfo info;
  info.plan = &run.plan;
  info.program = plan::ProgramKind::train;
  info.batch = batch;
  info.samples = dataset.numSamples();
  info.stepsPerEpoch = stepsPerEpoch();
  info.epochs = options.epochs, info.steps = options.steps;
  info.threads = options.threads;
  info.seed = options.seed;
  info.target = run.target;
  info.step = state.step;
  if (resume)
    info.resumedFrom = resume->path();
  run.reporter.start(info);
  return Status::ok();
}

Status Loop::runStep(std::span<const int64_t> order, int64_t count) {
  auto begin = Clock::now();
  const double learningRate = learningRateAt(state.step);
  DG_RETURN_IF_ERROR(feeder.fill(order.subspan(size_t(state.position), size_t(count))));
  dg_scalars scalars{};
  scalars.lr = float(learningRate);
  scalars.step = state.step + 1;
  scalars.seed = options.seed;
  DG_RETURN_IF_ERROR(fromPeer(run.executor.runStep(program, scalars)));
  StepInfo info;
  info.stepUs = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  info.stepInEpoch = state.position / batch + 1;
  state.position += count;
  info.step = ++state.step;
  info.epoch = state.epoch + 1;
  info.samples = count;
  info.learningRate = learningRate;
  info.loss = scalarOf(run.executor, program, "loss");
  if (run.trace)
    run.trace->collect(plan::ProgramKind::train, info.step);
  DG_RETURN_IF_ERROR(fromPeer(channel.push(info)));
  return checkLoss("of", info.loss, state.step - 1);
}

Status Loop::checkLoss(const char *what, double loss, int64_t parametersStep) const {
  if (std::isfinite(loss) || options.allowNan || !channel.isSource())
    return Status::ok();
  if (run.progress)
    run.progress->task.store(0, std::memory_order_relaxed); // the last one is over, and not to blame
  const bool isLastSuspect = savedStep == parametersStep && !lastCheckpoint.empty();
  const std::string &good = isLastSuspect ? checkpointBefore : lastCheckpoint;
  return Status::error(
      ErrorKind::defect,
      "the loss {} step {} is {}, expected a finite number; {}{}: find the op that made it with --check-numerics, "
      "learn "
      "slower with --lr, or go on with --allow-nan",
      what, state.step, std::isnan(loss) ? "nan" : "infinite",
      good.empty() ? "this run has no checkpoint from before it" : fmt::format("the last good checkpoint is {}", good),
      isLastSuspect ? fmt::format(" ({} holds the parameters that it came from)", lastCheckpoint) : "");
}

Status Loop::checkReplicas() {
  if (options.checkReplicas == 0 || state.step % options.checkReplicas != 0)
    return Status::ok();
  Result<std::vector<uint64_t>> mine = hashReplicas(run.plan, run.at(), run.executor);
  if (!mine)
    return mine.status();
  auto all = run.gather(std::string(reinterpret_cast<const char *>(mine->data()), mine->size() * sizeof(uint64_t)));
  if (!all)
    return fromPeer(all.status());
  std::vector<std::vector<uint64_t>> hashes;
  for (const std::string &bytes : *all) {
    hashes.emplace_back(bytes.size() / sizeof(uint64_t));
    std::memcpy(hashes.back().data(), bytes.data(), hashes.back().size() * sizeof(uint64_t));
  }
  auto drift = findDrift(run.plan, hashes, state.step);
  if (!drift)
    return Status::ok();
  hasPeerFailed = drift->rank != run.rank; // the guilty one tells it
  return Status::error(ErrorKind::runFailed, "{}", drift->message);
}

Result<Outcome> Loop::evaluate(std::optional<EvaluationInfo> &found) {
  if (!evaluation)
    return Outcome::done;
  run.reporter.flush(); // nothing more is told until it is over
  auto mayGoOn = [this] { return mayStartStep(); };
  auto info = evaluation->evaluate(channel, options.seed, mayGoOn, hasPeerFailed);
  if (!info)
    return info.status();
  found = *info;
  if (found && found->hasLoss)
    DG_RETURN_IF_ERROR(checkLoss("of the evaluation after", found->loss, state.step));
  return found ? Outcome::done : Outcome::stopped;
}

void Loop::report(std::optional<EvaluationInfo> evaluated, bool isDue) {
  if (!evaluated)
    return;
  evaluated->epoch = state.epoch, evaluated->step = state.step;
  run.reporter.evaluation(*evaluated);
  state.evaluatedStep = state.step;
  if (options.keepBest)
    isNewBest = options.keepBest->observe(*evaluated, 0, state.kept);
  if (!isDue)
    return;
  options.schedule.observe(evaluated->loss, pointAt(state.step), state.plateau);
  if (options.stopWhen)
    options.stopWhen->metric.observe(*evaluated, options.stopWhen->least, state.stopping);
}

Status Loop::save() {
  if (!writer || (savedStep == state.step && !isNewBest))
    return Status::ok();
  isNewBest = false;
  DG_RETURN_IF_ERROR(fromPeer(channel.drain())); // rank 0 writes the sum of losses into the manifest
  run.reporter.flush(); // a resumed run goes on after this step: what came before must have been told
  run.setPhase(RankPhase::checkpointing);
  auto begin = Clock::now();
  auto path = writer->write(state);
  if (!path)
    return path.status();
  savedStep = state.step;
  checkpointBefore = std::exchange(lastCheckpoint, *path);
  const bool isBest = state.kept && state.kept->step == state.step;
  if (run.rank == 0) {
    if (isBest)
      bestSaved = state.step;
    DG_RETURN_IF_ERROR(writer->checkOwner());
    checkpoint::retain(options.checkpointDirectory, {0, bestSaved});
    pruneAfter = state.step;
    if (options.allowNan)
      prune();
  }
  run.reporter.checkpoint({*path, state.step, secondsSince(begin), isBest});
  run.setPhase(RankPhase::training);
  return Status::ok();
}

void Loop::prune() {
  pruneAfter.reset();
  if (writer->checkOwner())
    checkpoint::retain(options.checkpointDirectory, {options.keep, bestSaved});
}

Status Loop::checkParameters() const {
  return options.allowNan ? Status::ok() : checkpoint::checkFinite(run.plan, run.at(), run.executor, state.step);
}

Result<Outcome> Loop::betweenSteps() {
  if (state.position == 0)
    return Outcome::done;
  if (evaluation && options.evalEvery.isDueAfterStep(state.step) && state.evaluatedStep != state.step) {
    DG_RETURN_IF_ERROR(fromPeer(channel.drain()));
    std::optional<EvaluationInfo> evaluated;
    if (auto outcome = evaluate(evaluated); !outcome || *outcome == Outcome::stopped)
      return outcome;
    report(evaluated, true);
  }
  if (isNewBest || options.checkpointEvery.isDueAfterStep(state.step))
    DG_RETURN_IF_ERROR(save());
  return Outcome::done;
}

Result<Outcome> Loop::closeEpoch(Clock::time_point begin) {
  DG_RETURN_IF_ERROR(fromPeer(channel.drain()));
  EpochInfo info;
  info.epoch = state.epoch + 1;
  info.samples = state.position;
  info.meanLoss = state.position > 0 ? state.lossSum / double(state.position) : 0;
  info.seconds = secondsSince(begin);
  info.learningRate = learningRateAt(state.step - 1);
  // Before the epoch is closed and told: a run that is stopped here continues with the evaluation, and nothing is told
  // twice.
  std::optional<EvaluationInfo> evaluated;
  if (options.evalEvery.isDueAfterEpoch(state.epoch + 1, state.step))
    if (auto outcome = evaluate(evaluated); !outcome || *outcome == Outcome::stopped)
      return outcome;
  run.reporter.epoch(info);
  ++state.epoch;
  state.position = 0;
  state.lossSum = 0;
  report(evaluated, true);
  return Outcome::done;
}

Result<Outcome> Loop::finish(Outcome outcome) {
  DG_RETURN_IF_ERROR(fromPeer(channel.drain()));
  if (outcome == Outcome::done && state.evaluatedStep != state.step) {
    std::optional<EvaluationInfo> evaluated;
    auto evaluatedOutcome = evaluate(evaluated);
    if (!evaluatedOutcome)
      return evaluatedOutcome;
    outcome = *evaluatedOutcome;
    report(evaluated, options.evalEvery.isDueAfterStep(state.step));
  }
  if (!writer && outcome == Outcome::done)
    DG_RETURN_IF_ERROR(run.agree(checkParameters()));
  DG_RETURN_IF_ERROR(save());
  if (pruneAfter)
    prune(); // nothing comes after it in this run
  EndInfo info{state.step, state.epoch, secondsSince(started)};
  info.stopped = outcome == Outcome::stopped;
  info.arenaBytes = run.executor.arenaBytes(), info.peakBytes = run.peakBytes();
  if (writer)
    info.saved = lastCheckpoint;
  if (isStoppedByRule())
    info.why = options.stopWhen->describe(*state.stopping);
  run.reporter.end(info);
  run.setPhase(RankPhase::done);
  return outcome;
}

Result<Outcome> Loop::train() {
  run.setPhase(RankPhase::training);
  while (!isFinished() || isEpochOpen()) {
    auto begin = Clock::now();
    std::vector<int64_t> order = data::sampleOrder(dataset.numSamples(), options.shuffle, options.seed, state.epoch);
    int64_t count = 0;
    while (!isFinished() && (count = nextCount()) > 0) {
      if (auto outcome = betweenSteps(); !outcome || *outcome == Outcome::stopped)
        return outcome ? finish(Outcome::stopped) : outcome;
      if (isFinished())
        break; // the evaluation said so
      if (!mayStartStep())
        return finish(Outcome::stopped);
      if (std::exchange(isSaveAsked, false))
        DG_RETURN_IF_ERROR(save());
      DG_RETURN_IF_ERROR(runStep(order, count));
      DG_RETURN_IF_ERROR(checkReplicas());
    }
    if (nextCount() > 0)
      break; // the last step came before the end of the epoch
    auto closed = closeEpoch(begin);
    if (!closed)
      return closed;
    if (*closed == Outcome::stopped)
      return finish(Outcome::stopped);
    // A checkpoint by steps that is due at the last step of an epoch is written once the epoch is closed.
    if (isNewBest || options.checkpointEvery.isDueAfterEpoch(state.epoch, state.step))
      DG_RETURN_IF_ERROR(save());
  }
  return finish(Outcome::done);
}

} // namespace

Result<Outcome> runTraining(const RankRun &run, const TrainingOptions &options, const data::Dataset &dataset,
                            const data::Dataset *evalDataset, const checkpoint::Checkpoint *resume,
                            bool &hasPeerFailed) {
  DG_RETURN_IF_ERROR(checkTraining(run.plan, options, dataset.numSamples()));
  const plan::Program *program = run.plan.findProgram(plan::ProgramKind::train);
  auto feeder = data::Feeder::create(run.plan, *program, dataset, run.at(),
                                     [&](plan::ValueId id, uint32_t m) { return run.executor.inputBuffer(id, m); });
  if (!feeder)
    return feeder.status();
  Loop loop(run, options, dataset, std::move(*feeder));
  Status begun = loop.begin(resume, evalDataset);
  Result<Outcome> outcome = begun ? loop.train() : Result<Outcome>(begun);
  run.reporter.flush();
  hasPeerFailed = loop.hasPeerFailed;
  return outcome;
}

} // namespace dg::session
