// SPDX-License-Identifier: Apache-2.0
#include "tools/dgrun/Prepare.h"

#include "runtime/session/Evaluation.h"
#include "runtime/session/HostCores.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace dg::dgrun {

using session::Assignment;

static Result<data::DataSpecs> readSpecs(const char *flag, const std::vector<std::string> &sources,
                                         const std::vector<std::string> &normalizations, uint64_t seed) {
  data::DataSpecs specs;
  specs.flag = flag;
  specs.seed = seed;
  for (const std::string &text : sources) {
    auto pair = data::splitAssignment(flag, text);
    if (!pair)
      return pair.status();
    if (!specs.sources.insert(*pair).second)
      return Status::error(ErrorKind::usage, "{} {}: '{}' was given before; separate shards by commas", flag, text,
                           pair->first);
  }
  for (const std::string &text : normalizations) {
    auto pair = data::splitAssignment("--normalize", text);
    if (!pair)
      return pair.status();
    auto normalization = data::parseNormalization(pair->second);
    if (!normalization)
      return normalization.status();
    specs.normalizations[pair->first] = *normalization;
  }
  return specs;
}

static Result<data::Dataset> openDataset(const plan::Plan &plan, const char *programName,
                                         const data::DataSpecs &specs) {
  const plan::Program *program = plan.findProgram(programName);
  if (!program)
    return Status::error(ErrorKind::usage, "{}: the job has no program '{}'", specs.flag, programName);
  auto arguments = data::argumentsOf(plan, *program);
  if (!arguments)
    return arguments.status();
  return data::Dataset::open(*arguments, specs);
}

/// The checkpoint to begin from, if one was asked for; and no mixing of two trainings in one folder.
static Status openCheckpoint(const Flags &flags, const plan::Plan &plan, bool isInference, Assignment &assignment) {
  if (flags.checkpointEvery && flags.checkpoint.empty())
    return Status::error(ErrorKind::usage, "--checkpoint-every: say where: --checkpoint DIR");
  if (!flags.resume) {
    if (auto steps = flags.checkpoint.empty() ? std::vector<int64_t>() : checkpoint::stepsIn(flags.checkpoint);
        !steps.empty())
      return Status::error(
          ErrorKind::usage,
          "--checkpoint {}: holds a training up to step {}; add --resume to continue it, or choose another "
          "folder",
          flags.checkpoint, steps.back());
    return Status::ok();
  }
  const std::string &from = flags.resumeFrom.empty() ? flags.checkpoint : flags.resumeFrom;
  if (from.empty())
    return Status::error(ErrorKind::usage, "--resume: say from where: --resume DIR or --checkpoint DIR");
  if (flags.resumeFrom.empty() && !isInference && checkpoint::isUnused(from))
    return Status::ok(); // The first start of a job that is started again with the same command; see notesOn.
  auto opened = checkpoint::Checkpoint::open(from);
  if (!opened)
    return opened.status();
  if (!isInference && !flags.checkpoint.empty())
    opened = checkpoint::continueIn(flags.checkpoint, std::move(*opened));
  if (!opened)
    return opened.status();
  assignment.resume.emplace(std::move(*opened));
  return assignment.resume->check(plan, isInference ? checkpoint::Purpose::inference : checkpoint::Purpose::training);
}

static Status prepareInference(const Flags &flags, const plan::Plan &plan, Assignment &assignment) {
  if (!flags.data.empty() || !flags.evalData.empty() || flags.epochs || flags.steps)
    return Status::error(ErrorKind::usage,
                         "--input and --output infer; --data, --eval-data, --epochs and --steps train");
  session::InferenceOptions options;
  options.threads = assignment.threads;
  options.seed = assignment.seed;
  for (const std::string &text : flags.output) {
    auto pair = data::splitAssignment("--output", text);
    if (!pair)
      return pair.status();
    options.outputs[pair->first] = pair->second.starts_with("@") ? pair->second.substr(1) : pair->second;
  }
  DG_RETURN_IF_ERROR(checkInference(plan, options));
  auto specs = readSpecs("--input", flags.input, flags.normalize, assignment.seed);
  if (!specs)
    return specs.status();
  auto dataset = openDataset(plan, "infer", *specs);
  if (!dataset)
    return dataset.status();
  DG_RETURN_IF_ERROR(checkResults(plan, options, dataset->numSamples()));
  assignment.dataset.emplace(std::move(*dataset));
  assignment.inference = std::move(options);
  return Status::ok();
}

static Result<session::TrainingOptions> readTrainingOptions(const Flags &flags, const plan::Plan &plan,
                                                            const Assignment &assignment) {
  session::TrainingOptions options;
  options.epochs = flags.epochs.value_or(flags.steps ? 0 : 1);
  options.steps = flags.steps.value_or(0);
  options.seed = assignment.seed;
  options.threads = assignment.threads;
  options.dropLast = flags.dropLast;
  options.evalBatch = flags.evalBatch.value_or(0);
  options.checkReplicas = flags.checkReplicas;
  options.allowNan = flags.allowNan;
  options.checkpointDirectory = flags.checkpoint;
  using Kind = data::Shuffle::Kind;
  options.shuffle.kind = flags.noShuffle ? Kind::none : flags.shuffleBuffer ? Kind::buffer : Kind::whole;
  options.shuffle.bufferSize = flags.shuffleBuffer.value_or(0);
  const checkpoint::TrainingState *before = assignment.resume ? &assignment.resume->state() : nullptr;
  options.learningRate = flags.learningRate.value_or(before ? before->learningRate : plan.model.learningRate);
  auto schedule = session::LearningRateSchedule::parse(flags.schedule.value_or(before ? before->schedule : "constant"));
  if (!schedule)
    return schedule.status();
  options.schedule = *schedule;
  if (flags.checkpointEvery) {
    auto interval = session::CheckpointInterval::parse(*flags.checkpointEvery);
    if (!interval)
      return interval.status();
    options.checkpointEvery = *interval;
  }
  return options;
}

static Status prepareTraining(const Flags &flags, const plan::Plan &plan, Assignment &assignment) {
  auto options = readTrainingOptions(flags, plan, assignment);
  if (!options)
    return options.status();
  DG_RETURN_IF_ERROR(checkTraining(plan, *options, INT64_MAX));
  auto specs = readSpecs("--data", flags.data, flags.normalize, assignment.seed);
  if (!specs)
    return specs.status();
  auto dataset = openDataset(plan, "train", *specs);
  if (!dataset)
    return dataset.status();
  DG_RETURN_IF_ERROR(checkTraining(plan, *options, dataset->numSamples()));
  if (!options->dropLast)
    DG_RETURN_IF_ERROR(session::checkWholeBatches(*plan.findProgram("train"), 0, dataset->numSamples(), "--data",
                                                  "give --drop-last, or compile it with a --batch that divides them"));
  if (assignment.resume)
    DG_RETURN_IF_ERROR(checkResume(assignment.resume->state(), *options, dataset->numSamples()));
  assignment.dataset.emplace(std::move(*dataset));
  if (options->schedule.watchesEvaluations() && flags.evalData.empty())
    return Status::error(ErrorKind::usage,
                         "--lr-schedule {}: a plateau watches the loss of evaluations, but there are none; give "
                         "--eval-data",
                         options->schedule.describe());
  if (!flags.evalData.empty()) {
    DG_RETURN_IF_ERROR(session::checkEvaluation(plan, options->evalBatch));
    auto evalSpecs = readSpecs("--eval-data", flags.evalData, flags.normalize, assignment.seed);
    if (!evalSpecs)
      return evalSpecs.status();
    auto evalDataset = openDataset(plan, "eval", *evalSpecs);
    if (!evalDataset)
      return evalDataset.status();
    DG_RETURN_IF_ERROR(session::checkWholeBatches(
        *plan.findProgram("eval"), options->evalBatch, evalDataset->numSamples(), "--eval-data",
        "compile it with a --batch that divides them, and leave --eval-batch out"));
    assignment.evalDataset.emplace(std::move(*evalDataset));
  }
  assignment.training = std::move(*options);
  return Status::ok();
}

/// Asked before the run, not after it.
static Status checkTrace(const std::string &path) {
  if (path.empty())
    return Status::ok();
  std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code ignored;
  if (folder.empty() || std::filesystem::is_directory(folder, ignored))
    return Status::ok();
  return Status::error(ErrorKind::usage, "--trace {}: there is no folder {}: make it, or choose another", path, folder);
}

Result<Assignment> prepare(const Flags &flags, const session::Job &job, int64_t ranksOnHost) {
  const plan::Plan &plan = job.plan();
  DG_RETURN_IF_ERROR(checkTrace(flags.trace));
  Assignment assignment;
  assignment.job = &job;
  assignment.json = flags.json;
  assignment.tracePath = flags.trace;
  assignment.checkNumerics = flags.checkNumerics;
  assignment.dryRun = flags.dryRun;
  assignment.profile = flags.profile;
  assignment.timeout = std::chrono::milliseconds(int64_t(std::min(flags.timeoutSeconds, 1e9) * 1000));
  assignment.ranksOnHost = ranksOnHost;
  assignment.threads =
      flags.threads.value_or(std::max(1u, uint32_t(session::usableCores().size()) / uint32_t(ranksOnHost)));
  if (assignment.dryRun)
    return assignment; // it needs no data
  bool isInference = !flags.input.empty() || !flags.output.empty() || !plan.findProgram("train");
  DG_RETURN_IF_ERROR(openCheckpoint(flags, plan, isInference, assignment));
  assignment.seed = flags.seed.value_or(assignment.resume ? assignment.resume->state().seed : 0);
  DG_RETURN_IF_ERROR(isInference ? prepareInference(flags, plan, assignment)
                                 : prepareTraining(flags, plan, assignment));
  return assignment;
}

/// Where a training would go on with the rate 0, which its schedule has come to: "epoch 3", "step 501".
static std::string findIdle(const Assignment &assignment) {
  const session::TrainingOptions &training = *assignment.training;
  if (training.learningRate == 0) // asked for
    return "";
  const int64_t stepsPerEpoch =
      std::max<int64_t>(session::stepsPerEpoch(assignment.job->plan(), training, assignment.dataset->numSamples()), 1);
  auto isIdle = [&](int64_t step, int64_t epoch) {
    constexpr double leastFactor = 1e-12; // a cosine in doubles ends near 0, not at it
    return std::abs(training.schedule.factorAt({step, epoch, stepsPerEpoch})) < leastFactor;
  };
  const int64_t first = assignment.resume ? assignment.resume->state().epoch : 0;
  const int64_t end = training.epochs > 0 ? training.epochs : (training.steps + stepsPerEpoch - 1) / stepsPerEpoch;
  for (int64_t epoch = first; epoch < std::max(end, first + 1); ++epoch)
    if (isIdle(epoch * stepsPerEpoch, epoch))
      return fmt::format("epoch {}", epoch + 1);
  const int64_t last = training.steps > 0 ? training.steps : training.epochs * stepsPerEpoch;
  return last > 0 && isIdle(last - 1, (last - 1) / stepsPerEpoch) ? fmt::format("step {}", last) : "";
}

std::vector<std::string> notesOn(const Flags &flags, const Assignment &assignment) {
  std::vector<std::string> notes;
  if (!assignment.training)
    return notes;
  if (flags.resume && !assignment.resume)
    notes.push_back(fmt::format("{} holds no checkpoint yet: this run begins at step 0", flags.checkpoint));
  if (std::string idle = findIdle(assignment); !idle.empty())
    notes.push_back(fmt::format("{} learns nothing: {} gives it the rate 0; --lr-schedule and --lr give it another",
                                idle, assignment.training->schedule.describe()));
  return notes;
}

std::string describeRun(const Assignment &assignment) {
  if (assignment.dryRun)
    return fmt::format("job {} dry run", assignment.job->identity());
  std::string text = fmt::format("job {} seed {} samples {}{}{}", assignment.job->identity(), assignment.seed,
                                 assignment.dataset->numSamples(), assignment.checkNumerics ? " check-numerics" : "",
                                 assignment.tracePath.empty() ? "" : " trace");
  if (const auto &training = assignment.training)
    text +=
        fmt::format(" epochs {} steps {} lr {} schedule {} shuffle {}{} checkpoint {} every {}/{} replicas {}{}",
                    training->epochs, training->steps, training->learningRate, training->schedule.describe(),
                    training->shuffle.describe(), training->dropLast ? " drop-last" : "",
                    training->checkpointDirectory.empty() ? "no" : "yes", training->checkpointEvery.epochs,
                    training->checkpointEvery.steps, training->checkReplicas, training->allowNan ? " allow-nan" : "");
  if (const auto &inference = assignment.inference)
    for (const auto &[name, path] : inference->outputs)
      text += fmt::format(" output {}", name);
  if (assignment.evalDataset)
    text += fmt::format(" eval {} by {}", assignment.evalDataset->numSamples(), assignment.training->evalBatch);
  if (assignment.resume)
    text += fmt::format(" from step {}", assignment.resume->state().step);
  text += fmt::format(" data ({})", assignment.dataset->describe());
  if (assignment.evalDataset)
    text += fmt::format(" eval data ({})", assignment.evalDataset->describe());
  return text;
}

} // namespace dg::dgrun
