// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/Coordinator.h"

#include "runtime/launch/link/LinkTimes.h"

#include <algorithm>
#include <csignal>
#include <sys/wait.h>

namespace dg {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Kind = LaunchMessage::Kind;

static constexpr int exitStoppedResumable = 75;
static constexpr int exitTerminated = 128 + SIGTERM;
/// How long a report that only blames others may wait for a better one.
static constexpr milliseconds explanationTime{1000};
/// How often progress is looked at.
static constexpr milliseconds lookTime{200};
/// A rank that others gave up on is to blame if it has not moved for so long.
static constexpr double stalledSeconds = 0.9;

Coordinator::Coordinator(const LaunchOptions &options, std::vector<Member> everyone, RankPlacement placement,
                         std::unique_ptr<RendezvousPoint> point)
    : options(options), members(std::move(everyone)), ranks(size_t(placement.numRanks)), point(std::move(point)),
      local(options, std::move(placement), [this](LaunchMessage event) { handle(0, std::move(event)); }) {
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
  bool isOfRank = event.kind == Kind::part || event.kind == Kind::report || event.kind == Kind::ended;
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
  if (signal == SIGTERM)
    return save();
  if (signal == SIGINT && options.savesOnInterrupt && mode == Mode::running) {
    fmt::print(stderr, "{}: stopping after this step to save; Ctrl-C once more ends it at once\n", options.tool);
    savedFor = "Ctrl-C";
    return save();
  }
  if (mode == Mode::stopping)
    return;
  interrupt = signal;
  stop();
}

/// The polite end: ranks stop at one step, save and leave.
void Coordinator::save() {
  if (mode != Mode::running)
    return;
  mode = Mode::saving;
  deadline = Clock::now() + options.saveTime;
  broadcast({.kind = Kind::save});
}

void Coordinator::onEntered() {
  int64_t last = 0;
  for (const Member &member : members)
    if (!member.entered && !member.isGone)
      return;
    else
      last = std::max(last, member.entered.value_or(0));
  broadcast({.kind = Kind::release, .number = last});
}

/// The other end: ranks leave at once.
void Coordinator::stop(bool isAtOnce) {
  if (mode == Mode::stopping)
    return;
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
  member.link.reset();
  if (member.isGone)
    return;
  member.isGone = true;
  for (int64_t rank = member.firstRank; rank < member.firstRank + member.numRanks; ++rank)
    ranks[size_t(rank)].isAlive = false, ranks[size_t(rank)].isLost = true;
  if (mode != Mode::stopping)
    failure.add({FailureEvent::Kind::lost, member.firstRank, 0, fmt::format("{} {}", nameOf(member), how)});
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
  if (!isConnected)
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
    if (now - member.heardAt > silenceTime)
      lose(index, fmt::format("has been silent for {} s: the link to it is down, or the host hangs",
                              silenceTime.count() / 1000));
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
      local.say(fmt::format("{} continues", describeRank(rank)));
    straggler = -1;
  }
  straggler = watch.find(ranks);
  if (straggler < 0)
    return;
  const RankState &rank = ranks[size_t(straggler)];
  local.say(fmt::format("{} holds up the others: no progress for {:.1f} s (a step takes {:.3g} s) while {}{}",
                        describeRank(rank), rank.stuckFor().count(), watch.medianStepSeconds().value_or(0),
                        describeProgress(rank, options),
                        rank.progress.isSuspended ? "; it is suspended (SIGSTOP)" : ""));
}

/// When all that is known is that ranks waited in vain, the one that does not move is the cause.
void Coordinator::blameStraggler() {
  int64_t stuck = StragglerWatch::findStuck(ranks, stalledSeconds);
  if (failure.isCertain() || stuck < 0 || stuck == failure.event().rank)
    return;
  const FailureEvent &told = failure.event();
  failure.add({FailureEvent::Kind::stalled, stuck, 0, told.text});
}

void Coordinator::checkDeadlines(Deadline now) {
  if (mode != Mode::stopping && failure.hasAny()) {
    if (explanationDeadline == Deadline::max())
      explanationDeadline = now + explanationTime;
    if (now >= explanationDeadline)
      blameStraggler();
    if (failure.isCertain() || now >= explanationDeadline)
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
  if (lastTick != Deadline() && now - lastTick > milliseconds(2000))
    for (Member &member : members)
      member.heardAt += now - lastTick;
  lastTick = now;
  checkLinks(now);
  if (now >= nextLook) {
    nextLook = now + lookTime;
    watchStragglers();
  }
  answerExchanges();
  findDeserter();
  checkDeadlines(now);
  local.tick();
}

int Coordinator::run(const RankMain &rankMain) {
  std::vector<int> foreign = point ? point->descriptors() : std::vector<int>();
  for (const Member &member : members)
    if (member.link)
      foreign.push_back(member.link->descriptor());
  if (Status status = local.fork(rankMain, std::move(foreign)); !status) {
    local.tellFailure({.text = status.message()});
    return end(status.exitCode(), status.message());
  }
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
  return finish();
}

/// The others leave with the same code.
void Coordinator::sayEnd(int code, const std::string &why) {
  Deadline limit = deadlineIn(farewellTime);
  for (size_t index = 1; index < members.size(); ++index)
    if (members[index].link)
      members[index].link->queue({.kind = Kind::end, .number = code, .text = why});
  for (Member &member : members)
    while (member.link && member.link->flush() && member.link->hasOutput() && Clock::now() < limit) {
      PollSet set;
      set.add(member.link->descriptor(), POLLOUT, [] {});
      set.wait(tickTime);
    }
}

/// The last turn: the others are told before anyone's slow reader is waited for.
int Coordinator::end(int code, const std::string &why) {
  sayEnd(code, why);
  if (code != 0 && options.onBadEnd)
    options.onBadEnd();
  local.drainOutput(!interrupt);
  return code;
}

int Coordinator::finish() {
  const char *others = ranks.size() > 1 ? "all ranks were" : "the rank was";
  if (interrupt) {
    std::string why = fmt::format("interrupted; {} stopped", others);
    local.tellFailure({.text = why});
    return end(128 + interrupt, why);
  }
  if (failure.hasAny()) {
    const FailureEvent &event = failure.event();
    const RankProgress &last = ranks[size_t(event.rank)].progress;
    local.tellFailure({event.rank, last.pid, last.step, describeFailure(event, ranks, options)});
    return end(failure.exitCode(), describeCause(event, ranks, options));
  }
  int code = 0; // finished after all, unless someone says otherwise
  std::string why;
  if (isSaveOverdue) {
    why = fmt::format("{} came, and not every rank had left {} s later (--save-timeout); {} killed", savedFor,
                      options.saveTime.count() / 1000, others);
    local.tellFailure({.text = why});
    code = exitTerminated;
  } else if (mode != Mode::running) {
    for (const RankState &rank : ranks)
      if (rank.exitCode == exitTerminated || (rank.exitCode == exitStoppedResumable && code == 0))
        code = rank.exitCode;
  }
  return end(code, why);
}

} // namespace dg
