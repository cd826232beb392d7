// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Training.h"

#include "runtime/data/Feeder.h"
#include "runtime/plan/MetricPorts.h"
#include "runtime/session/Dealer.h"
#include "runtime/session/Evaluation.h"
#include "runtime/session/ReplicaCheck.h"
#include "runtime/session/Saver.h"
#include "runtime/session/Snapshotter.h"
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
  if (state.shuffle == "whole" || state.shuffle.starts_with("buffer:"))
    return Status::error(ErrorKind::usage,
                         "the checkpoint is in the middle of epoch {}, in the order '{}' of version 0.1, which this "
                         "version does not draw; end the epoch with version 0.1, or resume from a checkpoint between "
                         "two epochs",
                         state.epoch + 1, state.shuffle);
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
        samples(size_t(batch)), hasGradientNorm(hasOutput(run.plan.programs[program], plan::gradientNormPort)),
        channel(
            run.plan, run.rank, run.transport, run.timeout,
            [this](const StepInfo &info) {
              state.lossSum += double(info.loss) * double(info.samples);
              this->run.reporter.step(info);
              if (std::isfinite(info.loss))
                saver.hasGoodLoss(info.step);
            },
            run.progress),
        saver(run, options), snapshots(run), dealer(run, options.deal, this->feeder) {}

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
  /// The steps from now on, for who reads ahead.
  data::StepOrder stepsToCome() const;
  int64_t stepsPerEpoch() const { return session::stepsPerEpoch(run.plan, options, dataset.numSamples()); }
  /// Where the schedule stands after `step` steps.
  TrainingPoint pointAt(int64_t step) const { return {step, state.epoch, std::max<int64_t>(stepsPerEpoch(), 1)}; }
  double learningRateAt(int64_t step) const {
    return options.learningRate * options.schedule.factorAt(pointAt(step)) * state.plateau.factor;
  }
  Status runStep(const data::SampleOrder &order, int64_t count);
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
  /// Saves the state of now, behind the steps that follow; at the end before it returns.
  Status save(bool isEnd = false);
  /// Copies the state of now to memory that outlives this rank, where that is due.
  Status snapshot(bool isDue);
  /// Counts the step. Who was asked to save in an evaluation does it before the next step of the training.
  bool mayStartStep() {
    const bool may = run.mayStartStep(++stepsHere);
    isSaveAsked = isSaveAsked || (may && run.isSaveDue && run.isSaveDue(stepsHere));
    return may;
  }
  /// Without a checkpoint, which would have refused them: whether the last step left finite parameters.
  Status checkParameters() const;
  Result<Outcome> finish(Outcome outcome);
  /// A failure inside a step or in a message means that another rank is gone or silent.
  Status fromPeer(Status status) {
    hasPeerFailed = hasPeerFailed || !status;
    return status;
  }
  Status fromSaver(Status status) {
    hasPeerFailed = hasPeerFailed || (!status && saver.hasPeerFailed());
    return status;
  }

  const RankRun &run;
  const TrainingOptions &options;
  const data::Dataset &dataset;
  data::Feeder feeder;
  size_t program;
  int64_t batch;
  std::vector<int64_t> samples; ///< of a step
  bool hasGradientNorm;
  checkpoint::TrainingState state;
  LossChannel channel;
  std::optional<Evaluation> evaluation;
  Saver saver;
  Snapshotter snapshots;
  Dealer dealer;
  bool isNewBest = false;   ///< the last evaluation, which then is saved
  bool isSaveAsked = false; ///< by SIGUSR1
  uint64_t stepsHere = 0;   ///< of this process, those of evaluations too
  int64_t samplesHere = 0;  ///< that this process has trained on
  std::optional<BestEvaluation> best;
  Clock::time_point started = Clock::now();
};

Status Loop::begin(const checkpoint::Checkpoint *resume, const data::Dataset *evalDataset) {
  auto kept = snapshots.restore();
  if (!kept)
    return kept.status();
  if (*kept) {
    state = std::move(**kept);
  } else if (resume) {
    DG_RETURN_IF_ERROR(resume->restore(run.plan, run.at(), run.executor));
    state = resume->state();
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
  DG_RETURN_IF_ERROR(saver.begin(state, run.saved ? *run.saved
                                        : resume  ? SavedCheckpoint{resume->state().step, resume->path()}
                                                  : SavedCheckpoint()));
  DG_RETURN_IF_ERROR(dealer.begin(state.step));
  feeder.readAhead(run.readAhead, stepsToCome());
  // The snapshot comes before the save of a new best one.
  isNewBest = *kept && options.keepBest && state.kept && state.kept->step == state.step && !saver.isSaved(state.step);
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
  info.copyBytes = saver.copyBytes();
  if (resume)
    info.resumedFrom = resume->path();
  run.reporter.start(info);
  dealer.reportBegin(state.step);
  return Status::ok();
}

data::StepOrder Loop::stepsToCome() const {
  struct Place {
    int64_t epoch, position;
  };
  const int64_t numSamples = dataset.numSamples(), perEpoch = stepsPerEpoch(), left = numSamples - state.position;
  const int64_t leftSteps = options.dropLast ? left / batch : (left + batch - 1) / batch;
  auto placeOf = [=, batch = batch, epoch = state.epoch, position = state.position](int64_t step) -> Place {
    if (step < leftSteps)
      return {epoch, position + step * batch};
    step -= leftSteps;
    return {epoch + 1 + step / perEpoch, step % perEpoch * batch};
  };
  return {[=, batch = batch](int64_t step) { return std::min(batch, numSamples - placeOf(step).position); },
          [=, shuffle = options.shuffle, seed = options.seed](int64_t step, int64_t number) {
            const Place place = placeOf(step);
            return data::SampleOrder(numSamples, shuffle, seed, place.epoch)[place.position + number];
          }};
}

Status Loop::runStep(const data::SampleOrder &order, int64_t count) {
  auto begin = Clock::now();
  const double learningRate = learningRateAt(state.step);
  const std::span<int64_t> ofStep = std::span(samples).first(size_t(count));
  order.fill(state.position, ofStep);
  DG_RETURN_IF_ERROR(feeder.fill(ofStep));
  dg_scalars scalars{};
  scalars.lr = float(learningRate);
  scalars.step = state.step + 1;
  scalars.seed = options.seed;
  DG_RETURN_IF_ERROR(fromPeer(run.executor.runStep(program, scalars, feeder.samples())));
  dealer.hasRun();
  StepInfo info;
  info.stepUs = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  info.stepInEpoch = state.position / batch + 1;
  state.position += count;
  samplesHere += count;
  info.step = ++state.step;
  info.epoch = state.epoch + 1;
  info.samples = count;
  info.learningRate = learningRate;
  info.loss = scalarOf(run.executor, program, "loss");
  if (hasGradientNorm)
    info.gradientNorm = scalarOf(run.executor, program, plan::gradientNormPort);
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
  return Status::error(ErrorKind::defect,
                       "the loss {} step {} is {}, expected a finite number; {}: find the op that made it with "
                       "--check-numerics, learn slower with --lr, or go on with --allow-nan",
                       what, state.step, std::isnan(loss) ? "nan" : "infinite", saver.describeGood(parametersStep));
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
  DG_RETURN_IF_ERROR(fromSaver(saver.settle())); // nobody asks after it meanwhile
  run.reporter.flush();                          // nothing more is told until it is over
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
  if (!best || best->isBeatenBy(*evaluated))
    best = {state.step, secondsSince(started), *evaluated};
  state.evaluatedStep = state.step;
  if (options.keepBest)
    isNewBest = options.keepBest->observe(*evaluated, 0, state.kept);
  if (!isDue)
    return;
  options.schedule.observe(evaluated->loss, pointAt(state.step), state.plateau);
  if (options.stopWhen)
    options.stopWhen->metric.observe(*evaluated, options.stopWhen->least, state.stopping);
}

Status Loop::save(bool isEnd) {
  const bool again = std::exchange(isNewBest, false);
  DG_RETURN_IF_ERROR(fromPeer(channel.drain())); // rank 0 writes the sum of losses into the manifest
  run.reporter.flush(); // a resumed run goes on after this step: what came before must have been told
  return fromSaver(isEnd ? saver.saveAtOnce(state, again) : saver.saveBehind(state, again));
}

Status Loop::snapshot(bool isDue) {
  if (!snapshots.isTime(state.step, isDue, saver.isInFlight()))
    return Status::ok();
  DG_RETURN_IF_ERROR(fromPeer(channel.drain())); // the sum of losses is a part of it
  run.reporter.flush();                          // what came before is not told again
  Status taken = snapshots.take(state);
  hasPeerFailed = hasPeerFailed || snapshots.hasPeerFailed();
  return taken;
}

Status Loop::checkParameters() const {
  return options.allowNan ? Status::ok() : checkpoint::checkFinite(run.plan, run.at(), run.executor, state.step);
}

Result<Outcome> Loop::betweenSteps() {
  DG_RETURN_IF_ERROR(fromSaver(saver.advance(state.step)));
  if (state.position == 0)
    return Outcome::done;
  if (evaluation && options.evalEvery.isDueAfterStep(state.step) && state.evaluatedStep != state.step) {
    DG_RETURN_IF_ERROR(fromPeer(channel.drain()));
    std::optional<EvaluationInfo> evaluated;
    if (auto outcome = evaluate(evaluated); !outcome || *outcome == Outcome::stopped)
      return outcome;
    report(evaluated, true);
  }
  DG_RETURN_IF_ERROR(snapshot(options.snapshotEvery.isDueAfterStep(state.step)));
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
  if (!saver.isOn() && outcome == Outcome::done)
    DG_RETURN_IF_ERROR(run.agree(checkParameters()));
  DG_RETURN_IF_ERROR(save(true));
  EndInfo info;
  info.steps = state.step, info.epochs = state.epoch, info.seconds = secondsSince(started);
  info.stopped = outcome == Outcome::stopped;
  info.arenaBytes = run.executor.arenaBytes(), info.peakBytes = run.peakBytes();
  info.samples = samplesHere;
  info.best = best;
  info.data = feeder.wait();
  if (saver.isOn())
    info.saved = saver.last();
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
    data::SampleOrder order(dataset.numSamples(), options.shuffle, options.seed, state.epoch);
    bool isEpochsBegin = state.position == 0;
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
      auto isDealtAnew = dealer.redeal(state.step, std::exchange(isEpochsBegin, false), hasPeerFailed);
      if (!isDealtAnew)
        return isDealtAnew.status();
      if (*isDealtAnew)
        feeder.readAhead(run.readAhead, stepsToCome());
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
    DG_RETURN_IF_ERROR(snapshot(options.snapshotEvery.isDueAfterEpoch(state.epoch, state.step)));
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
