// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/CheckpointSave.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace dg::checkpoint {

using Clock = std::chrono::steady_clock;

/// Ranks meet that often about a save, so that meetings cost short steps little.
static constexpr std::chrono::milliseconds meetingTime{50};
/// Who waits for its own disk tells the others so often that it is alive.
static constexpr std::chrono::seconds longestBetweenMeetings{1};
/// For the thread of a run that ends to see it.
static constexpr std::chrono::milliseconds farewellTime{500};

/// The first character of a word; "steps:" comes before it.
static constexpr char wordPending = 'w', wordDone = 'd', wordFailed = 'f', wordFatal = 'x';

static std::string wordOf(const Status &status, char ifNot) {
  return status ? std::string(1, wordDone) : std::string(1, ifNot) + char('0' + int(status.kind())) + status.message();
}

ValueCopy::ValueCopy(const plan::Plan &plan, std::vector<plan::ValueId> kept) : ids(std::move(kept)) {
  for (plan::ValueId id : ids)
    size += plan.values[id].bytes;
}

Status ValueCopy::take(const ValueAccess &from) {
  if (!memory)
    memory = std::make_unique_for_overwrite<std::byte[]>(size);
  parts.clear();
  uint64_t used = 0;
  for (plan::ValueId id : ids)
    DG_RETURN_IF_ERROR(from.inspect(id, 0, [&](std::span<const std::byte> data) {
      const uint64_t room = std::min<uint64_t>(data.size(), size - used);
      std::memcpy(memory.get() + used, data.data(), room);
      parts.emplace_back(memory.get() + used, room);
      used += room;
      return room == data.size() ? Status::ok()
                                 : Status::error(ErrorKind::runFailed, "value {} is larger than the plan says", id);
    }));
  return Status::ok();
}

Status ValueCopy::inspect(plan::ValueId value, uint32_t, const Use &use) const {
  const auto found = std::find(ids.begin(), ids.end(), value);
  if (found == ids.end() || parts.size() != ids.size())
    return Status::error(ErrorKind::usage, "value {} was not copied", value);
  return use(parts[size_t(found - ids.begin())]);
}

Status ValueCopy::fill(plan::ValueId value, uint32_t, const Write &) {
  return Status::error(ErrorKind::usage, "value {} is a copy", value);
}

CheckpointSave::CheckpointSave(CheckpointWriter writer, int64_t rank, const plan::Plan &plan, const ValueAccess &values,
                               Exchange exchange, std::chrono::milliseconds patience)
    : files(std::make_shared<const CheckpointWriter>(std::move(writer))),
      copy(std::make_shared<ValueCopy>(plan, files->ownValues())), values(values), rank(rank),
      exchange(std::move(exchange)), patience(patience) {}

CheckpointSave::~CheckpointSave() {
  *isCancelled = true;
  if (work.valid())
    work.wait_for(farewellTime);
}

Status CheckpointSave::begin(const TrainingState &now, Pace wanted) {
  state = now;
  pace = wanted;
  started = Clock::now();
  Status copied = pace == Pace::behindSteps ? copy->take(values) : Status::ok();
  return copied ? retry() : copied;
}

Status CheckpointSave::retry() {
  inFlight = true;
  begun = Status::ok();
  lastMeeting = Clock::now(), lastStep = nextMeeting = state.step;
  reserve();
  return Status::ok();
}

void CheckpointSave::launch(std::function<std::string()> phase) {
  word.reset();
  lastMoved = files->moved(), lastMove = Clock::now();
  std::packaged_task<std::string()> task([phase = std::move(phase)] {
    constexpr int niceness = 10; // steps come first
    ::setpriority(PRIO_PROCESS, id_t(::gettid()), niceness);
    return phase();
  });
  work = task.get_future();
  // Signals are for the thread that runs the steps.
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(std::move(task)).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CheckpointSave::reserve() {
  phase = Phase::reserving;
  if (rank == 0)
    launch([files = files, step = state.step] { return wordOf(files->reserve(step), wordFailed); });
  else
    word = std::string(1, wordDone);
}

void CheckpointSave::write() {
  phase = Phase::writing;
  std::shared_ptr<ValueCopy> copied = pace == Pace::behindSteps ? copy : nullptr;
  launch([files = files, copied, live = &values, step = state.step, isCancelled = isCancelled] {
    const ValueAccess &from = copied ? *copied : *live;
    if (Status finite = files->checkFinite(step, from); !finite)
      return wordOf(finite, wordFatal);
    auto hash = files->writeShards(step, from, *isCancelled);
    return hash ? wordDone + *hash : wordOf(hash.status(), wordFailed);
  });
}

void CheckpointSave::finish(std::vector<std::string> hashes) {
  phase = Phase::finishing;
  if (rank != 0) {
    word = std::string(1, wordDone);
    return;
  }
  launch([files = files, state = state, hashes = std::move(hashes)] {
    if (Status proved = files->prove(state, hashes); !proved)
      return wordOf(proved, wordFailed);
    if (Status owner = files->checkOwner(); !owner)
      return wordOf(owner, wordFatal);
    return wordOf(files->publish(state.step), wordFailed);
  });
}

/// Takes the word of this phase if it is there, or comes within `time`. Fails where the disk does nothing for too long.
Status CheckpointSave::hear(Clock::duration time) {
  if (word)
    return Status::ok();
  if (work.wait_for(time) == std::future_status::ready) {
    word = work.get();
    return Status::ok();
  }
  const uint64_t moved = files->moved();
  if (moved != std::exchange(lastMoved, moved))
    lastMove = Clock::now();
  if (Clock::now() - lastMove < patience)
    return Status::ok();
  return Status::error(ErrorKind::unwritten,
                       "{}: nothing of it has moved for {:g} s (--save-timeout): the disk, or the way to it, hangs; "
                       "earlier checkpoints are as they were",
                       files->pathOf(state.step), std::chrono::duration<double>(patience).count());
}

Result<CheckpointSave::Verdict> CheckpointSave::meet(int64_t step) {
  // As many steps as take the time between two meetings, by this rank's clock.
  const double past = std::chrono::duration<double>(Clock::now() - lastMeeting).count();
  const double stepSeconds = past / double(std::max<int64_t>(step - lastStep, 1));
  constexpr double mostSteps = 1000;
  const double steps =
      std::clamp(std::chrono::duration<double>(meetingTime).count() / std::max(stepSeconds, 1e-9), 1.0, mostSteps);
  auto said = exchange(fmt::format("{}:{}", int64_t(steps), word.value_or(std::string(1, wordPending))));
  isPeers = !said;
  if (!said)
    return said.status();
  Verdict verdict;
  for (size_t other = 0; other < said->size(); ++other) {
    const std::string &text = (*said)[other];
    const size_t colon = text.find(':');
    if (colon == std::string::npos || colon + 1 >= text.size())
      return Status::error(ErrorKind::runFailed, "rank {} says nothing about the checkpoint", other);
    verdict.steps = std::max<int64_t>(verdict.steps, std::atoll(text.c_str()));
    const char code = text[colon + 1];
    std::string rest = text.substr(colon + 2);
    verdict.isPending = verdict.isPending || code == wordPending;
    const bool isFirst = code == wordFatal ? !verdict.isFatal : code == wordFailed && verdict.failure.isOk();
    if (isFirst && !rest.empty()) {
      isPeers = int64_t(other) != rank;
      verdict.failure = Status::error(ErrorKind(rest[0] - '0'), "{}{}", isPeers ? fmt::format("rank {}: ", other) : "",
                                      rest.substr(1));
    }
    verdict.isFatal = verdict.isFatal || code == wordFatal;
    verdict.hashes.push_back(std::move(rest));
  }
  lastMeeting = Clock::now(), lastStep = step;
  return verdict;
}

Result<std::optional<CheckpointSave::End>> CheckpointSave::advance(int64_t step, bool wait) {
  if (!inFlight || (!wait && begun && step < nextMeeting))
    return std::optional<End>();
  End end{state, files->pathOf(state.step)};
  while (begun) {
    if (Status heard = hear(wait ? Clock::duration(longestBetweenMeetings) : Clock::duration::zero()); !heard) {
      isPeers = false;
      return heard;
    }
    Result<Verdict> verdict = meet(step);
    if (!verdict)
      return verdict.status();
    nextMeeting = step + verdict->steps;
    if (verdict->isPending && wait)
      continue;
    if (verdict->isPending)
      return std::optional<End>();
    if (verdict->isFatal && rank == 0)
      files->discard(state.step);
    if (verdict->isFatal)
      return verdict->failure;
    begun = verdict->failure;
    if (begun && phase == Phase::finishing)
      break;
    if (begun && phase == Phase::reserving)
      write();
    else if (begun)
      finish(std::move(verdict->hashes));
    if (begun && !wait)
      return std::optional<End>();
  }
  inFlight = false;
  end.failure = std::exchange(begun, Status::ok());
  end.seconds = std::chrono::duration<double>(Clock::now() - started).count();
  if (!end.failure && rank == 0)
    files->discard(state.step);
  return std::optional(std::move(end));
}

} // namespace dg::checkpoint
