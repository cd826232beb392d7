// SPDX-License-Identifier: Apache-2.0
#include "tools/dgrun/Prepare.h"

#include "runtime/data/order/HoldOut.h"
#include "runtime/launch/link/HeldSignals.h"
#include "runtime/session/Evaluation.h"
#include "runtime/support/HostCores.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sys/mman.h>
#include <unistd.h>

namespace dg::dgrun {

using session::Assignment;
namespace fs = std::filesystem;

static Result<data::DataSpecs> readSpecs(const char *flag, const std::vector<std::string> &sources, const Flags &flags,
                                         uint64_t seed) {
  data::DataSpecs specs;
  specs.flag = flag;
  specs.cache = flags.dataCache;
  specs.findsBad = flags.skipBad.has_value();
  specs.transfers.silence = std::chrono::milliseconds(int64_t(std::min(flags.timeoutSeconds, 1e6) * 1000));
  specs.transfers.isStopped = isStopAsked;
  specs.seed = seed;
  for (const std::string &text : sources) {
    auto pair = data::splitAssignment(flag, text);
    if (!pair)
      return pair.status();
    if (!specs.sources.insert(*pair).second)
      return Status::error(ErrorKind::usage, "{} {}: '{}' was given before; separate shards by commas", flag, text,
                           pair->first);
  }
  for (const std::string &text : flags.normalize) {
    auto pair = data::splitAssignment("--normalize", text);
    if (!pair)
      return pair.status();
    if (specs.normalizations.contains(pair->first) || specs.channelNormalizations.contains(pair->first))
      return Status::error(ErrorKind::usage,
                           "--normalize {}: '{}' was given before; give each argument one mean and "
                           "deviation",
                           text, pair->first);
    if (pair->second.find('/') != std::string::npos) {
      auto channels = data::parseChannelNormalization(pair->second);
      if (!channels)
        return channels.status();
      specs.channelNormalizations[pair->first] = *channels;
      continue;
    }
    auto normalization = data::parseNormalization(pair->second);
    if (!normalization)
      return normalization.status();
    specs.normalizations[pair->first] = *normalization;
  }
  return specs;
}

static Result<data::Dataset> openDataset(const plan::Plan &plan, plan::ProgramKind kind, const data::DataSpecs &specs) {
  const plan::Program *program = plan.findProgram(kind);
  if (!program)
    return Status::error(ErrorKind::usage, "{}: the job has no program '{}'", specs.flag, nameOf(kind));
  auto arguments = data::argumentsOf(plan, *program);
  if (!arguments)
    return arguments.status();
  return data::Dataset::open(*arguments, specs);
}

/// The samples that are left where --skip-bad leaves some out, else nothing; what was left out goes to `notes`.
static Result<std::optional<std::vector<int64_t>>> findGood(const Flags &flags, const data::Dataset &dataset,
                                                            std::vector<std::string> &notes) {
  using Found = std::optional<std::vector<int64_t>>;
  if (!flags.skipBad)
    return Found();
  auto bad = dataset.findBad(*flags.skipBad, int64_t(usableCores().size()), isStopAsked);
  if (!bad)
    return bad.status();
  if (bad->empty())
    return Found();
  if (int64_t(bad->size()) == dataset.numSamples())
    return Status::error(ErrorKind::badInput, "none of {} samples can be read, as {}", bad->size(), bad->front().why);
  constexpr size_t mostNamed = 5;
  for (size_t i = 0; i < std::min(bad->size(), mostNamed); ++i)
    notes.push_back("left out: " + (*bad)[i].why);
  notes.push_back(
      fmt::format("--skip-bad {}: {} of {} samples were left out", *flags.skipBad, bad->size(), dataset.numSamples()));
  std::vector<int64_t> good;
  auto next = bad->begin();
  for (int64_t sample = 0; sample < dataset.numSamples(); ++sample)
    if (next != bad->end() && next->number == sample)
      ++next;
    else
      good.push_back(sample);
  return Found(std::move(good));
}

/// What --eval-data names, which the plan can evaluate in batches of `batch`.
static Result<data::Dataset> openEvalData(const Flags &flags, const plan::Plan &plan, int64_t batch, uint64_t seed,
                                          std::vector<std::string> &notes) {
  DG_RETURN_IF_ERROR(session::checkEvaluation(plan, batch));
  auto specs = readSpecs("--eval-data", flags.evalData, flags, seed);
  if (!specs)
    return specs.status();
  auto dataset = openDataset(plan, plan::ProgramKind::eval, *specs);
  if (!dataset)
    return dataset.status();
  auto good = findGood(flags, *dataset, notes);
  if (!good)
    return good.status();
  if (*good)
    dataset = dataset->take(std::move(**good));
  DG_RETURN_IF_ERROR(session::checkWholeBatches(
      *plan.findProgram(plan::ProgramKind::eval), batch, dataset->numSamples(), "--eval-data",
      "compile it with a --batch that divides them, and leave --eval-batch out"));
  return dataset;
}

/// The checkpoint to begin from, if one was asked for; and no mixing of two trainings in one folder.
static Status openCheckpoint(const Flags &flags, const plan::Plan &plan, bool isInference, Assignment &assignment) {
  for (auto [flag, isGiven] : {std::pair("--checkpoint-every", flags.checkpointEvery.has_value()),
                               {"--keep", flags.keep.has_value()},
                               {"--max-lost", flags.maxLost.has_value()},
                               {"--keep-best", flags.keepBest.has_value()}})
    if (isGiven && flags.checkpoint.empty())
      return Status::error(ErrorKind::usage, "{}: say where: --checkpoint DIR", flag);
  if (!flags.resume) {
    if (auto steps = checkpoint::namedStepsIn(flags.checkpoint); !flags.checkpoint.empty() && !steps.empty())
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
  const auto unreadable = flags.resumeOlder ? checkpoint::Unreadable::passOver : checkpoint::Unreadable::refuse;
  auto opened = checkpoint::Checkpoint::open(from, unreadable);
  if (!opened)
    return opened.status();
  if (!isInference && !flags.checkpoint.empty())
    opened = checkpoint::continueIn(flags.checkpoint, std::move(*opened), unreadable);
  if (!opened)
    return opened.status();
  assignment.resume.emplace(std::move(*opened));
  return assignment.resume->check(plan, isInference ? checkpoint::Purpose::inference : checkpoint::Purpose::training);
}

/// The first flag that is given and only a training takes, or "".
static std::string findTrainingFlag(const Flags &flags) {
  for (auto [flag, isGiven] : {std::pair("--lr", flags.learningRate.has_value()),
                               {"--lr-schedule", flags.schedule.has_value()},
                               {"--stop-when", flags.stopWhen.has_value()},
                               {"--eval-every", flags.evalEvery.has_value()},
                               {"--deal", flags.deal.has_value()},
                               {"--validation", flags.validation.has_value()},
                               {"--checkpoint-every", flags.checkpointEvery.has_value()},
                               {"--keep", flags.keep.has_value()},
                               {"--keep-best", flags.keepBest.has_value()},
                               {"--max-lost", flags.maxLost.has_value()},
                               {"--max-restarts", flags.maxRestarts.has_value()},
                               {"--snapshot-every", flags.snapshotEvery.has_value()},
                               {"--shuffle-buffer", flags.shuffleBuffer.has_value()},
                               {"--no-shuffle", flags.noShuffle},
                               {"--drop-last", flags.dropLast},
                               {"--check-replicas", flags.checkReplicas > 0},
                               {"--allow-nan", flags.allowNan}})
    if (isGiven)
      return flag;
  return "";
}

/// The job and the files that sources name alone: what a run must not write over.
static std::vector<std::string> readFiles(const Flags &flags,
                                          std::initializer_list<const std::vector<std::string> *> sources) {
  std::vector<std::string> read = {flags.job};
  for (const std::vector<std::string> *all : sources)
    for (const std::string &text : *all) {
      const std::string file = text.substr(text.find('=') + 1);
      read.push_back(file.starts_with("@") ? file.substr(1) : file);
    }
  return read;
}

/// A result would take the place of what is read.
static Status checkOverwritten(const Flags &flags, const session::InferenceOptions &options) {
  std::error_code error;
  for (const auto &[name, path] : options.outputs)
    for (const std::string &file : readFiles(flags, {&flags.input}))
      if (fs::equivalent(path, file, error))
        return Status::error(ErrorKind::usage, "--output {}={}: is {}, which is read: choose another name", name, path,
                             file);
  return Status::ok();
}

/// Where ranks write a result that goes to stdout once it is whole.
static Result<int> makeMemory(const Flags &flags, const std::string &output, bool isAlone) {
  auto refuse = [&](const char *why) {
    return Status::error(ErrorKind::usage, "--output {}: {}; give it a file: --output NAME=@FILE.npy", output, why);
  };
  if (flags.json)
    return refuse("--json writes to stdout too");
  if (!isAlone)
    return refuse("the ranks were not started by one dgrun, and have no stdout in common");
  if (::isatty(STDOUT_FILENO))
    return refuse("stdout is a terminal");
  if (int memory = ::memfd_create("dgrun result", MFD_CLOEXEC); memory >= 0)
    return memory;
  return Status::error(ErrorKind::runFailed, "--output {}: no memory for it: {}", output, std::strerror(errno));
}

static Status prepareInference(const Flags &flags, const plan::Plan &plan, bool isAlone, Assignment &assignment) {
  if (!flags.data.empty() || !flags.evalData.empty() || flags.epochs || flags.steps)
    return Status::error(ErrorKind::usage,
                         "--input and --output infer; --data, --eval-data, --epochs and --steps train");
  if (std::string flag = findTrainingFlag(flags); !flag.empty() || flags.evalBatch)
    return Status::error(ErrorKind::usage, "{}: this run infers; leave it out", flag.empty() ? "--eval-batch" : flag);
  if (flags.skipBad)
    return Status::error(ErrorKind::usage, "--skip-bad: an inference gives a result for each sample; leave it out");
  if (!flags.checkpoint.empty() && !flags.resume)
    return Status::error(ErrorKind::usage, "--checkpoint {}: an inference saves nothing; --resume {} takes its weights",
                         flags.checkpoint, flags.checkpoint);
  session::InferenceOptions options;
  options.threads = assignment.threads;
  options.seed = assignment.seed;
  for (const std::string &text : flags.output) {
    auto pair = data::splitAssignment("--output", text);
    if (!pair)
      return pair.status();
    const std::string path = pair->second.starts_with("@") ? pair->second.substr(1) : pair->second;
    if (!options.outputs.emplace(pair->first, path).second)
      return Status::error(ErrorKind::usage, "--output {}: '{}' was given before; give each output one file", text,
                           pair->first);
    if (path != session::standardOutput)
      continue;
    if (options.memory >= 0)
      return Status::error(ErrorKind::usage, "--output {}: stdout was given before; it takes one result", text);
    auto memory = makeMemory(flags, text, isAlone);
    if (!memory)
      return memory.status();
    options.memory = *memory;
  }
  DG_RETURN_IF_ERROR(checkInference(plan, options));
  if (assignment.resume)
    for (const plan::Plan &smaller : assignment.job->smallerPlans())
      DG_RETURN_IF_ERROR(assignment.resume->check(smaller, checkpoint::Purpose::inference));
  auto specs = readSpecs("--input", flags.input, flags, assignment.seed);
  if (!specs)
    return specs.status();
  auto dataset = openDataset(plan, plan::ProgramKind::infer, *specs);
  if (!dataset)
    return dataset.status();
  DG_RETURN_IF_ERROR(checkResults(assignment.job->planFor(dataset->numSamples()), options, dataset->numSamples()));
  DG_RETURN_IF_ERROR(checkOverwritten(flags, options));
  assignment.dataset.emplace(std::move(*dataset));
  assignment.inference = std::move(options);
  return Status::ok();
}

static Status prepareEvaluation(const Flags &flags, const plan::Plan &plan, Assignment &assignment) {
  if (!flags.data.empty() || flags.validation || flags.epochs || flags.steps || !flags.checkpoint.empty() ||
      !flags.input.empty() || !flags.output.empty())
    return Status::error(ErrorKind::usage,
                         "--evaluate takes --eval-data and --resume; --data, --validation, --epochs, --steps and "
                         "--checkpoint train, --input and --output infer");
  if (std::string flag = findTrainingFlag(flags); !flag.empty())
    return Status::error(ErrorKind::usage, "{}: --evaluate trains nothing; leave one of them out", flag);
  session::EvaluationOptions options;
  options.batch = flags.evalBatch.value_or(0);
  options.seed = assignment.seed;
  options.threads = assignment.threads;
  auto dataset = openEvalData(flags, plan, options.batch, assignment.seed, assignment.dataNotes);
  if (!dataset)
    return dataset.status();
  assignment.dataset.emplace(std::move(*dataset));
  assignment.evaluation = options;
  return Status::ok();
}

/// What evaluations decide, which needs some.
static Status readEvaluationRules(const Flags &flags, const plan::Plan &plan, session::TrainingOptions &options) {
  const bool hasEvaluations = !flags.evalData.empty() || options.validation > 0;
  const std::string schedule = fmt::format("--lr-schedule {}", options.schedule.describe());
  for (auto [flag, isGiven] : {std::pair(schedule.c_str(), options.schedule.watchesEvaluations()),
                               {"--eval-batch", flags.evalBatch.has_value()},
                               {"--eval-every", flags.evalEvery.has_value()},
                               {"--keep-best", flags.keepBest.has_value()},
                               {"--stop-when", flags.stopWhen.has_value()}})
    if (isGiven && !hasEvaluations)
      return Status::error(ErrorKind::usage, "{}: there are no evaluations; give --eval-data or --validation", flag);
  if (flags.evalEvery) {
    auto interval = session::Interval::parse("--eval-every", *flags.evalEvery);
    if (!interval)
      return interval.status();
    options.evalEvery = *interval;
  }
  if (flags.keepBest) {
    auto metric = session::WatchedMetric::parse("--keep-best", *flags.keepBest);
    if (!metric)
      return metric.status();
    DG_RETURN_IF_ERROR(metric->check("--keep-best", plan));
    options.keepBest = *metric;
  }
  if (flags.stopWhen) {
    auto rule = session::StopRule::parse(*flags.stopWhen);
    if (!rule)
      return rule.status();
    DG_RETURN_IF_ERROR(rule->metric.check("--stop-when", plan));
    options.stopWhen = *rule;
  }
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
  auto deal = session::DealRule::parse(flags.deal.value_or("even"));
  if (!deal)
    return deal.status();
  if (const plan::Program *program = plan.findProgram(plan::ProgramKind::train))
    DG_RETURN_IF_ERROR(deal->check(plan.mesh.replicas, program->microbatches));
  options.deal = *deal;
  options.evalBatch = flags.evalBatch.value_or(0);
  options.checkReplicas = flags.checkReplicas;
  options.allowNan = flags.allowNan;
  options.checkpointDirectory = flags.checkpoint;
  using Kind = data::Shuffle::Kind;
  options.shuffle.kind = flags.noShuffle ? Kind::none : flags.shuffleBuffer ? Kind::window : Kind::random;
  options.shuffle.windowSize = flags.shuffleBuffer.value_or(0);
  const checkpoint::TrainingState *before = assignment.resume ? &assignment.resume->state() : nullptr;
  options.learningRate = flags.learningRate.value_or(before ? before->learningRate : plan.model.learningRate);
  auto schedule = session::LearningRateSchedule::parse(flags.schedule.value_or(before ? before->schedule : "constant"));
  if (!schedule)
    return schedule.status();
  options.schedule = *schedule;
  if (flags.checkpointEvery) {
    auto interval = session::Interval::parse("--checkpoint-every", *flags.checkpointEvery);
    if (!interval)
      return interval.status();
    options.checkpointEvery = *interval;
  }
  if (flags.snapshotEvery) {
    auto interval = session::Interval::parse("--snapshot-every", *flags.snapshotEvery);
    if (!interval)
      return interval.status();
    if (assignment.maxRestarts == 0)
      return Status::error(ErrorKind::usage,
                           "--snapshot-every {}: nothing goes on from snapshots unless ranks start "
                           "anew: give --max-restarts 3 too",
                           *flags.snapshotEvery);
    options.snapshotEvery = *interval;
  }
  options.keep = flags.keep.value_or(0);
  options.maxLost = flags.maxLost.value_or(options.maxLost);
  if (flags.saveSeconds)
    options.savePatience = std::chrono::milliseconds(int64_t(std::min(*flags.saveSeconds, 1e9) * 1000));
  options.validation = flags.validation.value_or(before ? before->validation : 0);
  if (options.validation >= 1 || (flags.validation && *flags.validation == 0))
    return Status::error(ErrorKind::usage, "--validation {:g}: expected a part above 0 and below 1, as 0.1",
                         options.validation);
  if (options.validation > 0 && !flags.evalData.empty())
    return Status::error(ErrorKind::usage, "--eval-data and --validation{}: give one of them",
                         flags.validation ? "" : ", which the checkpoint was trained with");
  DG_RETURN_IF_ERROR(readEvaluationRules(flags, plan, options));
  return options;
}

/// Holds a part of the training's samples out: they are evaluated instead.
static Status splitValidation(const data::DataSpecs &specs, const plan::Plan &plan, session::TrainingOptions &options,
                              const std::optional<std::vector<int64_t>> &good, data::Dataset &dataset,
                              Assignment &assignment) {
  DG_RETURN_IF_ERROR(session::checkEvaluation(plan, options.evalBatch));
  data::HoldOut parts = data::holdOut(dataset.numSamples(), options.validation, options.seed);
  if (parts.training.empty() || parts.validation.empty())
    return Status::error(ErrorKind::usage,
                         "--validation {:g}: of {} samples {} are left to train on and {} to evaluate",
                         options.validation, dataset.numSamples(), parts.training.size(), parts.validation.size());
  auto evaluated = openDataset(plan, plan::ProgramKind::eval, specs);
  if (!evaluated)
    return evaluated.status();
  if (good)
    evaluated = evaluated->take(*good);
  assignment.evalDataset.emplace(evaluated->take(std::move(parts.validation)));
  dataset = dataset.take(std::move(parts.training));
  return session::checkWholeBatches(*plan.findProgram(plan::ProgramKind::eval), options.evalBatch,
                                    assignment.evalDataset->numSamples(), "--validation",
                                    "choose a part that gives whole batches");
}

static Status prepareTraining(const Flags &flags, const plan::Plan &plan, Assignment &assignment) {
  auto options = readTrainingOptions(flags, plan, assignment);
  if (!options)
    return options.status();
  DG_RETURN_IF_ERROR(checkTraining(plan, *options, INT64_MAX));
  auto specs = readSpecs("--data", flags.data, flags, assignment.seed);
  if (!specs)
    return specs.status();
  auto dataset = openDataset(plan, plan::ProgramKind::train, *specs);
  if (!dataset)
    return dataset.status();
  auto good = findGood(flags, *dataset, assignment.dataNotes);
  if (!good)
    return good.status();
  if (*good)
    dataset = dataset->take(**good);
  if (options->validation > 0)
    DG_RETURN_IF_ERROR(splitValidation(*specs, plan, *options, *good, *dataset, assignment));
  DG_RETURN_IF_ERROR(checkTraining(plan, *options, dataset->numSamples()));
  if (!options->dropLast)
    DG_RETURN_IF_ERROR(session::checkWholeBatches(*plan.findProgram(plan::ProgramKind::train), 0, dataset->numSamples(),
                                                  "--data",
                                                  "give --drop-last, or compile it with a --batch that divides them"));
  if (assignment.resume)
    DG_RETURN_IF_ERROR(checkResume(assignment.resume->state(), *options, dataset->numSamples()));
  assignment.dataset.emplace(std::move(*dataset));
  if (!flags.evalData.empty()) {
    auto evalDataset = openEvalData(flags, plan, options->evalBatch, assignment.seed, assignment.dataNotes);
    if (!evalDataset)
      return evalDataset.status();
    DG_RETURN_IF_ERROR(evalDataset->checkClasses(*assignment.dataset));
    assignment.evalDataset.emplace(std::move(*evalDataset));
  }
  assignment.training = std::move(*options);
  return Status::ok();
}

/// Asked before the run, not after it.
static Status checkTrace(const Flags &flags) {
  const std::string &path = flags.trace;
  if (path.empty())
    return Status::ok();
  std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code ignored;
  for (const std::string &file : readFiles(flags, {&flags.data, &flags.evalData, &flags.input}))
    if (fs::equivalent(path, file, ignored))
      return Status::error(ErrorKind::usage, "--trace {}: is {}, which is read: choose another name", path, file);
  if (folder.empty() || std::filesystem::is_directory(folder, ignored))
    return Status::ok();
  return Status::error(ErrorKind::usage, "--trace {}: there is no folder {}: make it, or choose another", path, folder);
}

Result<Assignment> prepare(const Flags &flags, const session::Job &job, const Where &where) {
  const plan::Plan &plan = job.plan();
  DG_RETURN_IF_ERROR(checkTrace(flags));
  Assignment assignment;
  assignment.job = &job;
  assignment.json = flags.json;
  if (flags.json) {
    auto table = job.parameterTable();
    if (!table)
      return table.status();
    assignment.parameterTable = std::move(*table);
  }
  assignment.tracePath = flags.trace;
  assignment.logDirectory = flags.logDirectory;
  for (auto [flag, text] : {std::pair("--log-every", &flags.logEvery), {"--json-every", &flags.jsonEvery}})
    if (*text) {
      auto pace = session::LogPace::parse(flag, **text);
      if (!pace)
        return pace.status();
      if (text == &flags.logEvery)
        assignment.logEvery = *pace;
      else
        assignment.jsonEvery = *pace;
    }
  assignment.checkNumerics = flags.checkNumerics;
  assignment.dryRun = flags.dryRun;
  assignment.maxRestarts = flags.maxRestarts.value_or(0);
  assignment.profile = flags.profile;
  assignment.timeout = std::chrono::milliseconds(int64_t(std::min(flags.timeoutSeconds, 1e9) * 1000));
  assignment.ranksOnHost = where.ranksOnHost;
  assignment.threads =
      flags.threads.value_or(std::max(1u, uint32_t(usableCores().size()) / uint32_t(where.ranksOnHost)));
  if (assignment.dryRun)
    return assignment; // it needs no data
  constexpr int64_t mostReaders = 8;
  const int64_t coresOfRank = int64_t(usableCores().size()) / where.ranksOnHost;
  assignment.readAhead.steps = flags.prefetch;
  assignment.readAhead.readers =
      flags.readers.value_or(std::clamp<int64_t>(coresOfRank - int64_t(assignment.threads), 1, mostReaders));
  bool isInference = !flags.input.empty() || !flags.output.empty() || !plan.findProgram(plan::ProgramKind::train);
  DG_RETURN_IF_ERROR(openCheckpoint(flags, plan, isInference || flags.evaluate, assignment));
  assignment.seed = flags.seed.value_or(assignment.resume ? assignment.resume->state().seed : 0);
  DG_RETURN_IF_ERROR(flags.evaluate ? prepareEvaluation(flags, plan, assignment)
                     : isInference  ? prepareInference(flags, plan, where.isAlone(), assignment)
                                    : prepareTraining(flags, plan, assignment));
  return assignment;
}

Status claimFolder(const checkpoint::FolderLock &lock, Assignment &assignment) {
  if (!assignment.training)
    return Status::ok();
  std::error_code error;
  if (assignment.resume)
    for (const checkpoint::PassedOver &one : assignment.resume->passedOver())
      if (fs::equivalent(fs::path(one.folder).parent_path(), assignment.training->checkpointDirectory, error))
        DG_RETURN_IF_ERROR(checkpoint::setAside(one));
  assignment.training->checkpointRun = lock.run();
  return Status::ok();
}

std::string describeSaved(const Assignment &assignment, int code) {
  constexpr int exitUsage = 2, exitBadInput = 65, exitSaved = 75;
  if (!assignment.training || code == 0 || code == exitUsage || code == exitBadInput || code == exitSaved)
    return "";
  const std::string &directory = assignment.training->checkpointDirectory;
  constexpr int exitInterrupted = 130;
  if (directory.empty()) // a failure's message is all there is to say
    return code == exitInterrupted ? "nothing of this training was saved; --checkpoint DIR saves it" : "";
  std::vector<int64_t> steps = checkpoint::stepsIn(directory);
  return steps.empty() ? fmt::format("nothing was saved in {} yet", directory)
                       : fmt::format("{} holds checkpoints up to step {}; what came after it was not saved", directory,
                                     steps.back());
}

std::string describeRun(const Assignment &assignment) {
  if (assignment.dryRun)
    return fmt::format("job {} replicas {} dry run", assignment.job->identity(), assignment.job->plan().mesh.replicas);
  std::string text =
      fmt::format("job {} replicas {} seed {} samples {}{}{}", assignment.job->identity(),
                  assignment.job->plan().mesh.replicas, assignment.seed, assignment.dataset->numSamples(),
                  assignment.checkNumerics ? " check-numerics" : "", assignment.tracePath.empty() ? "" : " trace");
  if (const auto &training = assignment.training)
    text +=
        fmt::format(" epochs {} steps {} lr {} schedule {} shuffle {}{} checkpoint {} every {}/{} check-replicas {}{}",
                    training->epochs, training->steps, training->learningRate, training->schedule.describe(),
                    training->shuffle.describe(), training->dropLast ? " drop-last" : "",
                    training->checkpointDirectory.empty() ? "no" : "yes", training->checkpointEvery.epochs,
                    training->checkpointEvery.steps, training->checkReplicas, training->allowNan ? " allow-nan" : "") +
        fmt::format(" eval-every {}/{} keep {} max-lost {} best {} stop {} validation {}", training->evalEvery.epochs,
                    training->evalEvery.steps, training->keep, training->maxLost,
                    training->keepBest ? training->keepBest->name : "no",
                    training->stopWhen ? training->stopWhen->text : "no", training->validation) +
        fmt::format(" deal {} restarts {} snapshot {}/{}", training->deal.describe(), assignment.maxRestarts,
                    training->snapshotEvery.epochs, training->snapshotEvery.steps);
  if (const auto &inference = assignment.inference)
    for (const auto &[name, path] : inference->outputs)
      text += fmt::format(" output {}", name);
  if (const auto &evaluation = assignment.evaluation)
    text += fmt::format(" evaluate by {}", evaluation->batch);
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
