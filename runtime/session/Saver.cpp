// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Saver.h"

#include "runtime/checkpoint/Retention.h"

#include <cmath>
#include <utility>

namespace dg::session {

using Clock = std::chrono::steady_clock;
using checkpoint::CheckpointSave;

Status Saver::begin(const checkpoint::TrainingState &state, const SavedCheckpoint &saved) {
  savedStep = saved.step;
  lastPath = saved.path;
  if (state.kept && options.keepBest && state.kept->metric == options.keepBest->name)
    bestSaved = state.kept->step;
  if (options.checkpointDirectory.empty())
    return Status::ok();
  auto writer = checkpoint::CheckpointWriter::create(run.plan, run.rank, options.checkpointDirectory, run.agree,
                                                     options.allowNan, options.checkpointRun);
  if (!writer)
    return writer.status();
  save.emplace(std::move(*writer), run.rank, run.plan, run.executor, run.exchange, options.savePatience);
  return Status::ok();
}

uint64_t Saver::copyBytes() const {
  const bool isOnlyAtEnd =
      options.checkpointEvery.steps == 0 && options.checkpointEvery.epochs == 0 && !options.keepBest;
  return isOn() && !isOnlyAtEnd ? save->copyBytes() : 0;
}

Status Saver::saveBehind(const checkpoint::TrainingState &state, bool again) {
  return saveNow(state, again, CheckpointSave::Pace::behindSteps);
}

Status Saver::saveAtOnce(const checkpoint::TrainingState &state, bool again) {
  DG_RETURN_IF_ERROR(saveNow(state, again, CheckpointSave::Pace::atOnce));
  if (pruneAfter)
    prune(); // nothing comes after it in this run
  return Status::ok();
}

Status Saver::saveNow(const checkpoint::TrainingState &state, bool again, CheckpointSave::Pace pace) {
  if (!isOn())
    return Status::ok();
  now = state.step;
  DG_RETURN_IF_ERROR(settle());
  if (savedStep == state.step && !again)
    return Status::ok();
  run.setPhase(RankPhase::checkpointing);
  const bool atOnce = pace == CheckpointSave::Pace::atOnce;
  auto begin = Clock::now();
  isRetried = false;
  DG_RETURN_IF_ERROR(save->begin(state, pace));
  stallSeconds = std::chrono::duration<double>(Clock::now() - begin).count();
  DG_RETURN_IF_ERROR(turn(atOnce, atOnce));
  run.setPhase(RankPhase::training);
  return Status::ok();
}

Status Saver::advance(int64_t step) {
  now = step;
  return isOn() && save->isInFlight() ? turn(false, false) : Status::ok();
}

Status Saver::settle() {
  if (!isOn() || !save->isInFlight())
    return Status::ok();
  run.setPhase(RankPhase::checkpointing);
  DG_RETURN_IF_ERROR(turn(true, false));
  run.setPhase(RankPhase::training);
  return Status::ok();
}

Status Saver::turn(bool wait, bool isLast) {
  auto begin = Clock::now();
  while (save->isInFlight()) {
    auto ended = save->advance(now, wait);
    stallSeconds += std::chrono::duration<double>(Clock::now() - std::exchange(begin, Clock::now())).count();
    if (!ended)
      return run.setPhase(RankPhase::checkpointing), ended.status();
    if (!*ended)
      return Status::ok();
    if ((*ended)->failure)
      return publish(**ended);
    const bool isMissing = std::exchange(isRetried, true);
    numMissing += isMissing;
    const bool isOver = isMissing && (isLast || numMissing >= options.maxLost);
    if (isOver)
      return run.setPhase(RankPhase::checkpointing), (*ended)->failure;
    run.reporter.saveFailed(
        {(*ended)->state.step, (*ended)->failure.message(), isMissing, options.maxLost - numMissing});
    if (isMissing)
      return Status::ok();
    DG_RETURN_IF_ERROR(save->retry());
  }
  return Status::ok();
}

Status Saver::publish(const CheckpointSave::End &end) {
  const int64_t step = end.state.step;
  numMissing = 0;
  savedStep = step;
  pathBefore = std::exchange(lastPath, end.path);
  const bool isBest = end.state.kept && end.state.kept->step == step;
  if (run.rank == 0) {
    if (isBest)
      bestSaved = step;
    DG_RETURN_IF_ERROR(save->writer().checkOwner());
    checkpoint::retain(options.checkpointDirectory, {0, bestSaved});
    pruneAfter = step;
    if (options.allowNan || goodLoss > step)
      prune();
  }
  run.reporter.checkpoint({end.path, step, end.seconds, isBest, stallSeconds});
  return Status::ok();
}

void Saver::hasGoodLoss(int64_t step) {
  goodLoss = step;
  if (pruneAfter && *pruneAfter < step)
    prune();
}

void Saver::prune() {
  pruneAfter.reset();
  if (save->writer().checkOwner())
    checkpoint::retain(options.checkpointDirectory, {options.keep, bestSaved});
}

std::string Saver::describeGood(int64_t step) const {
  const bool isLastSuspect = savedStep == step && !lastPath.empty();
  const std::string &good = isLastSuspect ? pathBefore : lastPath;
  return (good.empty() ? "this run has no checkpoint from before it"
                       : fmt::format("the last good checkpoint is {}", good)) +
         (isLastSuspect ? fmt::format(" ({} holds the parameters that it came from)", lastPath) : "");
}

} // namespace dg::session
