// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/Coordinator.h"

#include "runtime/launch/link/LinkTimes.h"

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <utility>

namespace dg {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Kind = LaunchMessage::Kind;

static constexpr int exitStoppedResumable = 75;
static constexpr int exitTerminated = 128 + SIGTERM;
/// How long a report that only blames others waits for a better one; over several hosts, until all have been heard
/// after that.
static constexpr milliseconds explanationTime{1000};
/// How often progress is looked at.
static constexpr milliseconds lookTime{200};
/// How long the job waits at its end for the command of --on-failure.
static constexpr milliseconds commandTime{10'000};
/// A rank that others gave up on is to blame if it has not moved for so long.
static constexpr double stalledSeconds = 0.9;

Coordinator::Coordinator(const LaunchOptions &options, std::vector<Member> everyone, RankPlacement placement,
                         std::unique_ptr<RendezvousPoint> point)
    : options(options), members(std::move(everyone)), ranks(size_t(placement.numRanks)), point(std::move(point)),
      local(options, std::move(placement), [this](LaunchMessage event) { handle(0, std::move(event)); }),
      restarts(options), command(options.onFailure, [this](const std::string &text) { local.say(text); }) {
  for (Member &member : members) {
    member.heardAt = Clock::now();
    for (int64_t rank = member.firstRank; rank < member.firstRank + member.numRanks; ++rank) {
      ranks[size_t(rank)].host = member.host;
      ranks[size_t(rank)].progress.rank = rank;
    }
  }
}

/// "node 1 (host b, ranks 2 to 3)"
std::string Coordinator::nameOf(const Member &member) const {
  std::string which = member.numRanks == 1
                          ? fmt::format("rank {}", member.firstRank)
                          : fmt::format("ranks {} to {}", member.firstRank, member.firstRank + member.numRanks - 1);
  return fmt::format("node {} (host {}, {})", &member - members.data(), member.host, which);
}

void Coordinator::handle(size_t member, LaunchMessage event) {
  bool isOfRank =
      event.kind == Kind::part || event.kind == Kind::report || event.kind == Kind::ended || event.kind == Kind::kept;
  const Member &from = members[member];
  if (isOfRank && (event.rank < from.firstRank || event.rank >= from.firstRank + from.numRanks))
    return lose(member, fmt::format("spoke of rank {}, which is not its own", event.rank));
  switch (event.kind) {
  case Kind::part:
    numWaiting += ranks[size_t(event.rank)].parts.empty();
    ranks[size_t(event.rank)].parts.push_back(std::move(event.text));
    return;
  case Kind::report:
    return onReport(event);
  case Kind::ended:
    return onEnded(std::move(event));
  case Kind::asked:
    return onAsked(int(event.number));
  case Kind::kept:
    return onKept(event.rank, event.number);
  case Kind::entered:
    members[member].entered = event.number;
    return onEntered();
  case Kind::progress:
    return noteProgress(event.text);
  case Kind::gone:
    noteProgress(event.text);
    members[member].isGone = true;
    return;
  default:
    return;
  }
}

/// A snapshot counts once every rank has it whole: what it has replaced is no longer needed then.
void Coordinator::onKept(int64_t rank, int64_t step) {
  ranks[size_t(rank)].snapshot = step;
  if (!std::all_of(ranks.begin(), ranks.end(), [&](const RankState &other) { return other.snapshot == step; }))
    return;
  restarts.noteWhole(step);
  broadcast({.kind = Kind::whole, .number = step});
  int64_t bytes = 0;
  for (int64_t each = 0; options.snapshotBytes && each < int64_t(ranks.size()); ++each)
    bytes += int64_t(options.snapshotBytes(each));
  local.tell({.kind = "snapshot", .rank = -1, .step = uint64_t(step), .numbers = {{"bytes", bytes}}});
}

void Coordinator::noteProgress(const std::string &packed) {
  for (const RankProgress &now : unpackProgress(packed))
    if (now.rank >= 0 && now.rank < int64_t(ranks.size()))
      watch.note(ranks[size_t(now.rank)], now, Clock::now());
}

void Coordinator::onReport(const LaunchMessage &event) {
  if (mode == Mode::stopping)
    return;
  ranks[size_t(event.rank)].hasReported = true;
  bool isOwn = event.number < 256;
  failure.add(
      {isOwn ? FailureEvent::Kind::own : FailureEvent::Kind::peer, event.rank, int(event.number % 256), event.text});
}

void Coordinator::onEnded(LaunchMessage event) {
  RankState &rank = ranks[size_t(event.rank)];
  int status = int(event.number);
  rank.isAlive = false;
  rank.lastLines = std::move(event.text);
  if (mode == Mode::stopping)
    return;
  if (status == unknownWaitStatus) {
    rank.exitCode = 1;
    if (!rank.hasReported)
      failure.add({FailureEvent::Kind::exitCode, event.rank, unknownWaitStatus, ""});
    return;
  }
  if (WIFSIGNALED(status)) {
    rank.exitCode = 128 + WTERMSIG(status);
    if (mode == Mode::saving && WTERMSIG(status) == SIGTERM)
      return; // it came before the rank had its handler
    return failure.add({FailureEvent::Kind::signal, event.rank, WTERMSIG(status), ""});
  }
  rank.exitCode = WEXITSTATUS(status);
  if (rank.exitCode == exitStoppedResumable || rank.exitCode == exitTerminated)
    save(); // someone sent SIGTERM to the rank itself
  else if (rank.exitCode != 0 && !rank.hasReported)
    failure.add({FailureEvent::Kind::exitCode, event.rank, rank.exitCode, ""});
}

void Coordinator::onAsked(int signal) {
  // Ranks that start anew do what was asked meanwhile: save, and perhaps leave.
  const bool isSave = signal == SIGTERM || signal == SIGUSR1 || signal == SIGUSR2 ||
                      (signal == SIGINT && options.savesOnInterrupt && askedAnew != SIGINT);
  if (mode == Mode::stopping && isSave && (askedAnew == 0 || askedAnew == SIGUSR1))
    askedAnew = signal;
  if (mode == Mode::stopping && isSave)
    return;
  if (signal == SIGUSR1)
    return saveAndGoOn();
  if (signal == SIGTERM || signal == SIGUSR2) {
    savedFor = signal == SIGTERM ? "SIGTERM" : "SIGUSR2";
    return save();
  }
  if (signal == SIGINT && options.savesOnInterrupt && mode == Mode::running) {
    fmt::print(stderr, "{}: stopping after this step to save; Ctrl-C once more ends it at once\n", options.tool);
    savedFor = "Ctrl-C";
    return save();
  }
  if (mode == Mode::stopping && !mayRestart())
    return;
  interrupt = signal;
  stop();
}

/// The polite end: ranks stop at one step, save and leave.
void Coordinator::save() {
  if (mode != Mode::running)
    return;
  mode = Mode::saving;
  if (saveDeadline == Deadline::max())
    saveDeadline = Clock::now() + options.saveTime;
  deadline = saveDeadline;
  isPaused = false;
  for (Member &member : members)
    member.entered.reset();
  broadcast({.kind = Kind::save});
}

/// Ranks are held, as for the polite end, and save before the step after the largest that one has entered.
void Coordinator::saveAndGoOn() {
  if (mode != Mode::running || isPaused)
    return;
  if (!options.savesOnInterrupt)
    return local.say("SIGUSR1 came, but this run saves nothing: give --checkpoint DIR");
  isPaused = true;
  for (Member &member : members)
    member.entered.reset();
  broadcast({.kind = Kind::pause});
}

void Coordinator::onEntered() {
  int64_t last = 0;
  for (const Member &member : members)
    if (!member.entered && !member.isGone)
      return;
    else
      last = std::max(last, member.entered.value_or(0));
  if (std::exchange(isPaused, false))
    return broadcast({.kind = Kind::saveAt, .number = last + 1});
  if (mode != Mode::saving)
    return;
  isStoppedEarly = last == 0 && restarts.generation() == 0;
  if (isStoppedEarly)
    return stop(); // there is nothing to save, and ranks that still meet need not come to an end of that
  broadcast({.kind = Kind::release, .number = last});
}

/// The other end: ranks leave at once.
void Coordinator::stop(bool isAtOnce) {
  if (mode == Mode::stopping)
    return;
  wasSaving = mode == Mode::saving;
  if (failedAt == Deadline() && failure.hasAny())
    failedAt = Clock::now();
  mode = Mode::stopping;
  deadline = explanationDeadline = Deadline::max();
  // A rank that has just told its failure is on its way out and may have more to print.
  bool isLeaving = failure.hasAny() && failure.event().kind == FailureEvent::Kind::own;
  broadcast({.kind = Kind::stop, .rank = isLeaving ? failure.event().rank : -1, .number = isAtOnce});
}

void Coordinator::broadcast(const LaunchMessage &command) {
  const Digest digest = members.size() > 1 ? sha256(command.text) : Digest();
  for (size_t member = 1; member < members.size(); ++member)
    if (NodeLink *link = members[member].link.get()) {
      link->queue(command, digest);
      link->flush(); // if it cannot, the loop will see that
    }
  local.apply(command);
}

/// An exchange is complete when every rank has sent its part.
void Coordinator::answerExchanges() {
  while (numWaiting == ranks.size()) {
    std::vector<std::string> parts;
    numWaiting = 0;
    for (RankState &rank : ranks) {
      parts.push_back(std::move(rank.parts.front()));
      rank.parts.pop_front();
      numWaiting += !rank.parts.empty();
    }
    broadcast({.kind = Kind::gathered, .number = int64_t(numExchanges++), .text = packParts(parts)});
  }
}

/// A rank that ended well while others wait for it in an exchange, which can never end.
void Coordinator::findDeserter() {
  if (mode == Mode::stopping || failure.hasAny() || numWaiting == 0)
    return;
  auto find = [&](bool isAlive) {
    return std::find_if(ranks.begin(), ranks.end(), [&](const RankState &rank) {
      return rank.isAlive == isAlive && rank.parts.empty() != isAlive;
    });
  };
  auto waiting = find(true), left = find(false);
  if (waiting != ranks.end() && left != ranks.end())
    failure.add({FailureEvent::Kind::left, left - ranks.begin(), 0, fmt::format("rank {}", waiting - ranks.begin())});
}

void Coordinator::lose(size_t index, const std::string &how) {
  Member &member = members[index];
  const std::string why = fmt::format("{} {}", nameOf(member), how);
  if (auto link = std::move(member.link); link && !member.isGone && mode != Mode::stopping) {
    // It may hear us though we do not understand it.
    link->queue({.kind = Kind::end,
                 .rank = member.firstRank,
                 .number = exitCodeOf(ErrorKind::lost),
                 .text = packEnd(why, ranks[size_t(member.firstRank)].progress.step)});
    link->flush();
  }
  if (member.isGone)
    return;
  member.isGone = true;
  for (int64_t rank = member.firstRank; rank < member.firstRank + member.numRanks; ++rank)
    ranks[size_t(rank)].isAlive = false, ranks[size_t(rank)].isLost = true;
  if (mode != Mode::stopping)
    failure.add({FailureEvent::Kind::lost, member.firstRank, 0, why});
}

void Coordinator::handleFromLink(size_t index) {
  NodeLink *link = members[index].link.get();
  if (!link)
    return;
  bool isConnected = link->flush();
  isConnected = link->fill() && isConnected;
  while (members[index].link)
    if (std::optional<LaunchMessage> event = link->take()) {
      members[index].heardAt = Clock::now();
      handle(index, std::move(*event));
    } else {
      break;
    }
  if (link == members[index].link.get() && link->isAltered())
    lose(index, describeAltered);
  else if (!isConnected)
    lose(index, fmt::format("is gone: its {} ended or was killed, with the ranks that it had started", options.tool));
}

void Coordinator::checkLinks(Deadline now) {
  bool isBeatDue = now >= nextBeat;
  if (isBeatDue)
    nextBeat = now + beatTime;
  for (Arrival &arrival : point ? point->takeArrivals() : std::vector<Arrival>()) {
    bool isProbe = arrival.greeting.purpose == Greeting::Purpose::probe;
    if (isProbe && arrival.greeting.node < members.size())
      members[arrival.greeting.node].heardAt = now; // a second launcher of a node is left to notice that it is late
  }
  for (size_t index = 1; index < members.size(); ++index) {
    Member &member = members[index];
    if (!member.link)
      continue;
    if (isBeatDue) {
      member.link->queue({.kind = Kind::beat});
      member.link->flush();
    }
    const auto silence = now - member.heardAt, limit = Clock::duration(silenceTime(options.timeout));
    if (silence > limit) {
      lose(index, describeSilence(limit));
    } else if (bool isLong = silence > limit / 2; isLong != member.isSilenceTold) {
      member.isSilenceTold = isLong;
      local.tell({.kind = isLong ? "silence" : "recovered",
                  .rank = member.firstRank,
                  .text = nameOf(member) + (isLong ? describeSilence(silence, limit) : " is heard again")});
    }
  }
}

void Coordinator::watchStragglers() {
  noteProgress(packProgress(local.progress()));
  if (mode == Mode::stopping)
    return;
  if (straggler >= 0) {
    RankState &rank = ranks[size_t(straggler)];
    if (rank.isAlive && rank.stuckFor().count() > 0)
      return;
    if (rank.isAlive)
      local.tell({"recovered", straggler, rank.progress.step, fmt::format("{} continues", describeRank(rank))});
    straggler = -1;
  }
  if (auto slow = watch.findSlow(ranks, Clock::now())) {
    const RankState &rank = ranks[size_t(slow->rank)];
    local.tell({"straggler", slow->rank, rank.progress.step,
                fmt::format("{} is slow: it needs {:.1f} times as long as the others for its part of a step; in the "
                            "last seconds it waited {:.0f} % of the time, they {:.0f} %",
                            describeRank(rank), slow->factor(), 100 * slow->waitedShare, 100 * slow->othersShare)});
  }
  straggler = watch.find(ranks);
  if (straggler < 0)
    return;
  const RankState &rank = ranks[size_t(straggler)];
  local.tell({"straggler", straggler, rank.progress.step,
              fmt::format("{} holds up the others: no progress for {:.1f} s (a step takes {:.3g} s) while {}{}",
                          describeRank(rank), rank.stuckFor().count(), watch.medianStepSeconds().value_or(0),
                          describeProgress(rank, options), describeHindrance(rank))});
}

/// When all that is known is that ranks waited in vain, the one that does not move is the cause, or else the link over
/// which they wait.
void Coordinator::refineCause() {
  if (failure.isCertain())
    return;
  const FailureEvent told = failure.event();
  const int64_t stuck = StragglerWatch::findStuck(ranks, stalledSeconds);
  if (stuck >= 0 && stuck != told.rank)
    failure.add({FailureEvent::Kind::stalled, stuck, 0, told.text});
  else if (auto link = StragglerWatch::findDeadLink(ranks); link && stuck < 0)
    failure.add({FailureEvent::Kind::link, link->first, int(link->second), told.text});
}

bool Coordinator::isEveryoneHeardSince(Deadline time) const {
  return std::all_of(members.begin(), members.end(),
                     [&](const Member &member) { return !member.link || member.heardAt > time; });
}

/// A line before the limit strikes, and as long as the wait goes on.
void Coordinator::tellWait(Deadline now) {
  const int64_t waiter = StragglerWatch::findLongestWait(ranks);
  if (waiter < 0 || mode != Mode::running || failure.hasAny() || now < nextWaitLine)
    return;
  const RankState &rank = ranks[size_t(waiter)];
  const auto waited = now - rank.waitsSince;
  if (waited < options.timeout / 2)
    return;
  nextWaitLine = now + options.timeout / 2;
  std::string missing;
  for (const RankState &other : ranks)
    if (!rank.parts.empty() && other.isAlive && other.parts.empty() && missing.empty())
      missing = fmt::format("; {} is missing, {}", describeRank(other), describeProgress(other, options));
  local.tell({"waiting", waiter, rank.progress.step,
              fmt::format("{} has waited {:.0f} s while {}{}; a wait in which nothing moves ends the run after {:g} s "
                          "(--timeout)",
                          describeRank(rank), std::chrono::duration<double>(waited).count(),
                          describeProgress(rank, options), missing, double(options.timeout.count()) / 1000)});
}

void Coordinator::checkDeadlines(Deadline now) {
  if (mode != Mode::stopping && failure.hasAny()) {
    if (explanationDeadline == Deadline::max())
      explanationDeadline = now + explanationTime;
    const bool isOver = now >= explanationDeadline && isEveryoneHeardSince(explanationDeadline);
    if (isOver)
      refineCause();
    if (failure.isCertain() || isOver)
      stop();
  }
  if (now >= deadline && mode == Mode::saving) {
    isSaveOverdue = true;
    stop(true);
  }
}

void Coordinator::tick() {
  Deadline now = Clock::now();
  // A launcher that was itself suspended has heard nothing meanwhile: that is nobody's silence.
  if (lastTick != Deadline() && now - lastTick > milliseconds(2000)) {
    for (Member &member : members)
      member.heardAt += now - lastTick;
    for (RankState &rank : ranks)
      if (rank.waitsSince != Deadline())
        rank.waitsSince += now - lastTick;
  }
  lastTick = now;
  checkLinks(now);
  if (now >= nextLook) {
    nextLook = now + lookTime;
    watchStragglers();
    tellWait(now);
  }
  answerExchanges();
  findDeserter();
  checkDeadlines(now);
  tellGoingOn(now);
  command.look();
  local.tick();
}

Status Coordinator::runOnce(const RankMain &rankMain, const RestartPoint &start) {
  std::vector<int> foreign = point ? point->descriptors() : std::vector<int>();
  for (const Member &member : members)
    if (member.link)
      foreign.push_back(member.link->descriptor());
  DG_RETURN_IF_ERROR(local.fork(rankMain, std::move(foreign), start));
  if (const int signal = std::exchange(askedAnew, 0))
    onAsked(signal);
  auto isEveryoneGone = [this] {
    for (const Member &member : members)
      if (!member.isGone)
        return false;
    return true;
  };
  while (!isEveryoneGone()) {
    PollSet set;
    local.addTo(set);
    if (point)
      point->addTo(set);
    for (size_t index = 1; index < members.size(); ++index)
      if (const auto &link = members[index].link)
        set.add(link->descriptor(), short(POLLIN | (link->hasOutput() ? POLLOUT : 0)),
                [this, index] { handleFromLink(index); });
    set.wait(tickTime);
    tick();
  }
  return Status::ok();
}

bool Coordinator::mayRestart() const {
  return failure.hasAny() && failure.isPassing() && options.maxRestarts > 0 && !interrupt && !isSaveOverdue &&
         std::all_of(members.begin() + 1, members.end(), [](const Member &member) { return !!member.link; });
}

std::optional<RestartPoint> Coordinator::planRestart() {
  if (!mayRestart())
    return std::nullopt;
  const FailureEvent &event = failure.event();
  const std::string cause = describeCause(event, ranks, options);
  const std::optional<RestartPoint> point = restarts.next(failure, cause);
  if (!point)
    return std::nullopt;
  local.tell({.kind = "restart",
              .rank = event.rank,
              .step = ranks[size_t(event.rank)].progress.step,
              .text = fmt::format("{}; {}", cause, restarts.describe()),
              .numbers = {{"restart", restarts.number()}, {"from_step", restarts.step()}}});
  tellCommand(cause, restarts.number());
  return point;
}

/// --on-failure. `restart`: which one follows; 0: the job ends.
void Coordinator::tellCommand(const std::string &cause, int64_t restart) {
  const FailureEvent &event = failure.event();
  command.start({{"DG_FAILURE", cause},
                 {"DG_FAILURE_RANK", std::to_string(event.rank)},
                 {"DG_FAILURE_STEP", std::to_string(ranks[size_t(event.rank)].progress.step)},
                 {"DG_FAILURE_CODE", std::to_string(failure.exitCode())},
                 {"DG_RESTART", std::to_string(restart)}});
}

/// Once ranks that have started anew run steps.
void Coordinator::tellGoingOn(Deadline now) {
  if (failedAt == Deadline() || mode == Mode::stopping)
    return;
  noteProgress(packProgress(local.progress()));
  const auto isInStep = [](const RankState &rank) { return rank.progress.step > 0; };
  if (!std::all_of(ranks.begin(), ranks.end(), isInStep))
    return;
  const auto past = std::exchange(failedAt, Deadline());
  local.tell({.kind = "recovered",
              .step = ranks[0].progress.step,
              .text = fmt::format("the ranks go on with step {}, {:.2f} s after the failure", ranks[0].progress.step,
                                  std::chrono::duration<double>(now - past).count())});
}

/// Everything of the ranks that are gone is forgotten; launchers and their lines stay.
void Coordinator::restart(const RestartPoint &point) {
  if (options.onBadEnd)
    options.onBadEnd();
  if (wasSaving && askedAnew != SIGINT)
    askedAnew = SIGTERM;
  else if (isPaused && askedAnew == 0)
    askedAnew = SIGUSR1;
  for (RankState &rank : ranks) {
    RankState fresh;
    fresh.host = rank.host, fresh.progress.rank = rank.progress.rank;
    rank = std::move(fresh);
  }
  for (Member &member : members) {
    member.isGone = false;
    member.entered.reset();
  }
  mode = Mode::running;
  failure = {}, watch = {};
  straggler = -1, numExchanges = 0, numWaiting = 0;
  isPaused = wasSaving = false;
  deadline = explanationDeadline = Deadline::max();
  nextWaitLine = {};
  for (Member &member : members)
    if (member.link) {
      member.link->queue({.kind = Kind::restart, .text = packRestart(point)});
      member.link->flush(); // if it cannot, the loop will see that
    }
}

int Coordinator::run(const RankMain &rankMain) {
  RestartPoint start;
  while (true) {
    if (Status status = runOnce(rankMain, start); !status) {
      local.tell({.text = status.message()});
      return end(status.exitCode(), {.text = status.message()});
    }
    std::optional<RestartPoint> next = planRestart();
    if (!next)
      return finish();
    start = *next;
    restart(start);
  }
}

/// The others leave with the same code.
void Coordinator::sayEnd(int code, const LaunchEvent &why) {
  Deadline limit = deadlineIn(farewellTime);
  for (size_t index = 1; index < members.size(); ++index)
    if (members[index].link)
      members[index].link->queue(
          {.kind = Kind::end, .rank = why.rank, .number = code, .text = packEnd(why.text, why.step)});
  for (Member &member : members)
    while (member.link && member.link->flush() && member.link->hasOutput() && Clock::now() < limit) {
      PollSet set;
      set.add(member.link->descriptor(), POLLOUT, [] {});
      set.wait(tickTime);
    }
}

/// The last turn: the others are told before anyone's slow reader is waited for.
int Coordinator::end(int code, const LaunchEvent &why) {
  sayEnd(code, why);
  if (code != 0 && options.onBadEnd)
    options.onBadEnd();
  command.finish(commandTime);
  local.drainOutput(!interrupt);
  return code;
}

int Coordinator::finish() {
  const char *others = ranks.size() > 1 ? "all ranks were" : "the rank was";
  auto fail = [this](int code, const std::string &text) {
    local.tell({.text = text});
    return end(code, {.text = text});
  };
  if (interrupt)
    return fail(128 + interrupt, fmt::format("interrupted; {} stopped", others));
  if (failure.hasAny()) {
    const FailureEvent &event = failure.event();
    const uint64_t step = ranks[size_t(event.rank)].progress.step;
    const auto loop = restarts.loop();
    local.tell(
        {.rank = event.rank, .step = step, .text = describeFailure(event, ranks, options) + (loop ? loop->first : "")});
    tellCommand(describeCause(event, ranks, options), 0);
    return end(loop ? loop->exitCode : failure.exitCode(),
               {.rank = event.rank, .step = step, .text = describeCause(event, ranks, options)});
  }
  if (isStoppedEarly) {
    std::string why = describeEarlyStop(options, savedFor);
    if (!options.isResumable)
      return fail(exitTerminated, why);
    local.say(why);
    return end(exitStoppedResumable, {.text = why});
  }
  if (isSaveOverdue)
    return fail(exitTerminated,
                fmt::format("{} came, and not every rank had left {} s later (--save-timeout); {} killed", savedFor,
                            options.saveTime.count() / 1000, others));
  int code = 0; // finished after all, unless someone says otherwise
  if (mode != Mode::running)
    for (const RankState &rank : ranks)
      if (rank.exitCode == exitTerminated || (rank.exitCode == exitStoppedResumable && code == 0))
        code = rank.exitCode;
  return end(code, {});
}

} // namespace dg
