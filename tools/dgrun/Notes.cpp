// SPDX-License-Identifier: Apache-2.0
// Flags and data that fit the job, and still are probably not what was meant.
#include "tools/dgrun/Notes.h"

#include "runtime/session/DiskNeed.h"
#include "runtime/session/Evaluation.h"
#include "runtime/support/HostCores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace dg::dgrun {

using session::Assignment;

/// Where a training would go on with the rate 0, which its schedule has come to: "epoch 3", "step 501".
static std::string findIdle(const Assignment &assignment, int64_t stepsPerEpoch) {
  const session::TrainingOptions &training = *assignment.training;
  if (training.learningRate == 0) // asked for
    return "";
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

/// Says so where the training ends before its schedule comes to its last part, or in the middle of it.
static std::string findUnreached(const session::TrainingOptions &training, int64_t stepsPerEpoch) {
  const int64_t last = training.steps > 0 ? training.steps : training.epochs * stepsPerEpoch;
  const int64_t begins = training.schedule.stepOfLastPart(stepsPerEpoch);
  const std::optional<int64_t> ends = training.schedule.stepOfEnd(stepsPerEpoch);
  if (last > 0 && begins >= last)
    return fmt::format("--lr-schedule {} comes to its last part after step {}, but this training ends with step {}",
                       training.schedule.describe(), begins, last);
  if (last > 0 && ends && *ends > last)
    return fmt::format("--lr-schedule {} lasts {} steps, but this training ends with step {}",
                       training.schedule.describe(), *ends, last);
  return "";
}

/// The files of a source without what says which of their tokens, and whether it is those that follow.
static std::pair<std::string, bool> splitShift(const std::string &source) {
  const std::string shift = ":+1";
  std::string files = source;
  bool isShifted = false;
  for (size_t at = files.find(shift); at != files.npos; at = files.find(shift))
    files.erase(at, shift.size()), isShifted = true;
  return {files, isShifted};
}

/// Tokens that are their own targets, or the targets of those before them: a model learns that at once, and is of no
/// use.
static std::string findOwnTargets(const std::vector<std::string> &sources, const std::vector<std::string> &arguments) {
  std::map<std::string, std::pair<std::string, bool>> read;
  for (const std::string &source : sources)
    if (auto pair = data::splitAssignment("", source);
        pair && (pair->second.find(".u16") != std::string::npos || pair->second.find(".u32") != std::string::npos))
      read[pair->first] = splitShift(pair->second);
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t j = i + 1; j < arguments.size(); ++j) {
      auto first = read.find(arguments[i]), second = read.find(arguments[j]);
      if (first == read.end() || second == read.end() || first->second.first != second->second.first)
        continue;
      const auto &[files, isShifted] = first->second;
      if (isShifted == second->second.second)
        return fmt::format(
            "'{}' and '{}' are the same tokens of {}; where a model predicts the tokens that follow, its "
            "targets are {}={}:+1",
            arguments[i], arguments[j], files, arguments[j], files);
      if (isShifted)
        return fmt::format("'{}' are the tokens that follow those of '{}'; where a model predicts the tokens that "
                           "follow, write {}={} and {}={}:+1",
                           arguments[i], arguments[j], arguments[i], files, arguments[j], files);
    }
  return "";
}

/// What a resumed training takes from its checkpoint although the job says something else.
static std::vector<std::string> findInherited(const Flags &flags, const Assignment &assignment) {
  std::vector<std::string> notes;
  const checkpoint::TrainingState &before = assignment.resume->state();
  const double own = assignment.job->plan().model.learningRate;
  if (!flags.learningRate && before.learningRate != own)
    notes.push_back(fmt::format("the learning rate {:g} is the checkpoint's; the job's own is {:g}, which --lr {:g} "
                                "takes",
                                before.learningRate, own, own));
  if (before.numSamples != assignment.dataset->numSamples())
    notes.push_back(fmt::format("the training had {} samples until this checkpoint, and goes on with {}",
                                before.numSamples, assignment.dataset->numSamples()));
  return notes;
}

/// Parameters that were drawn and never trained, in a run that only uses them.
static std::string findRandom(const Assignment &assignment) {
  if (assignment.dryRun || assignment.resume)
    return "";
  std::set<std::string> all, random;
  for (const plan::Value &value : assignment.job->plan().values)
    if (value.kind == plan::ValueKind::parameter) {
      all.insert(value.name);
      if (value.init.kind == plan::Init::Kind::uniform || value.init.kind == plan::Init::Kind::normal)
        random.insert(value.name);
    }
  if (random.empty())
    return "";
  return fmt::format("{} of {} parameters ('{}'{}) {} random values: the job holds no weights for {}; give --resume "
                     "DIR, or compile it with --weights",
                     random.size(), all.size(), *random.begin(), random.size() == 1 ? "" : ", …",
                     random.size() == 1 ? "has" : "have", random.size() == 1 ? "it" : "them");
}

/// Flags of data that have nothing to do in this run.
static void noteIdleDataFlags(const Flags &flags, const Assignment &assignment, std::vector<std::string> &notes) {
  auto isDecoded = [](const std::optional<data::Dataset> &dataset) { return dataset && dataset->isDecoded(); };
  const bool readsAhead =
      flags.prefetch ? *flags.prefetch > 0 : isDecoded(assignment.dataset) || isDecoded(assignment.evalDataset);
  if (flags.readers && !readsAhead)
    notes.push_back(fmt::format("--readers {}: nothing is read ahead{}", *flags.readers,
                                flags.prefetch ? "" : ", for all samples lie in memory; --prefetch 2 reads ahead"));
  auto isRemote = [](const std::vector<std::string> &sources) {
    return std::any_of(sources.begin(), sources.end(),
                       [](const std::string &text) { return text.find("://") != std::string::npos; });
  };
  if (!flags.dataCache.empty() && !isRemote(flags.data) && !isRemote(flags.evalData) && !isRemote(flags.input))
    notes.push_back(fmt::format("--data-cache {}: no data are on another machine", flags.dataCache));
}

std::vector<std::string> notesOn(const Flags &flags, const Assignment &assignment) {
  std::vector<std::string> notes;
  if (assignment.resume)
    for (const checkpoint::PassedOver &one : assignment.resume->passedOver())
      notes.push_back(fmt::format("{}; --resume-older goes back from step {} to step {}", one.reason, one.step,
                                  assignment.resume->state().step));
  notes.insert(notes.end(), assignment.dataNotes.begin(), assignment.dataNotes.end());
  noteIdleDataFlags(flags, assignment, notes);
  if (assignment.dryRun && (!flags.data.empty() || !flags.evalData.empty() || !flags.input.empty()))
    notes.push_back("--dry-run reads no data: whether they fit the job is not known from it");
  const plan::Mesh &mesh = assignment.job->plan().mesh;
  if (assignment.training && flags.checkReplicas > 0 && mesh.sizeOf(plan::Axis::data) * mesh.replicas == 1)
    notes.push_back(fmt::format("--check-replicas {}: one rank holds each parameter, there is nothing to compare",
                                flags.checkReplicas));
  if (const size_t cores = usableCores().size(); flags.threads && *flags.threads > cores)
    notes.push_back(fmt::format("--threads {}: this host has {} cores for this process", *flags.threads, cores));
  for (const auto *dataset : {&assignment.dataset, &assignment.evalDataset})
    if (*dataset)
      for (std::string &note : (*dataset)->notes())
        notes.push_back(std::move(note));
  if (!assignment.training) {
    if (std::string random = findRandom(assignment); !random.empty())
      notes.push_back(random);
    if (assignment.inference && assignment.inference->outputs.empty())
      notes.push_back("no result is kept; --output OUTPUT=@FILE.npy writes one");
    return notes;
  }
  const int64_t doneSteps = assignment.resume ? assignment.resume->state().step : 0;
  const session::TrainingOptions &training = *assignment.training;
  const bool isDone =
      assignment.resume && ((training.steps > 0 && doneSteps >= training.steps) ||
                            (training.epochs > 0 && assignment.resume->state().epoch >= training.epochs));
  if (assignment.resume && !isDone)
    for (std::string &inherited : findInherited(flags, assignment))
      notes.push_back(std::move(inherited));
  if (isDone)
    notes.push_back(fmt::format("nothing is left to train: the checkpoint is at step {} (epoch {}); --steps and "
                                "--epochs count from the beginning of the training",
                                doneSteps, assignment.resume->state().epoch));
  if (std::string need = session::describeDiskNeed(assignment.job->plan(), *assignment.training,
                                                   assignment.dataset->numSamples(), doneSteps);
      !need.empty())
    notes.push_back(need);
  if (flags.resume && !assignment.resume)
    notes.push_back(fmt::format("{} holds no checkpoint yet: this run begins at step 0", flags.checkpoint));
  if (std::string own = findOwnTargets(flags.data, assignment.dataset->arguments()); !own.empty())
    notes.push_back(own);
  if (const std::set<std::string> read(flags.data.begin(), flags.data.end());
      !flags.evalData.empty() && read == std::set<std::string>(flags.evalData.begin(), flags.evalData.end()))
    notes.push_back("--eval-data is what --data is: the evaluation is on the samples of the training; --validation 0.1 "
                    "holds some of them out");
  if (flags.learningRate == 0.0)
    notes.push_back("--lr 0: no parameter is changed");
  const int64_t stepsPerEpoch =
      std::max<int64_t>(session::stepsPerEpoch(assignment.job->plan(), training, assignment.dataset->numSamples()), 1);
  if (std::string unreached = findUnreached(training, stepsPerEpoch); !unreached.empty())
    notes.push_back(unreached);
  if (std::string idle = isDone ? "" : findIdle(assignment, stepsPerEpoch); !idle.empty())
    notes.push_back(fmt::format("{} learns nothing: {} gives it the rate 0; --lr-schedule and --lr give it another",
                                idle, assignment.training->schedule.describe()));
  return notes;
}

} // namespace dg::dgrun
