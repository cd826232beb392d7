// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/Follower.h"

#include "runtime/launch/FailureReport.h"
#include "runtime/launch/link/LinkTimes.h"

#include <csignal>

namespace dg {

using Clock = std::chrono::steady_clock;
using Kind = LaunchMessage::Kind;

Follower::Follower(const LaunchOptions &options, CoordinatorPlace place, std::unique_ptr<NodeLink> link,
                   RankPlacement placement)
    : options(options), place(std::move(place)), link(std::move(link)),
      local(options, std::move(placement), [this](LaunchMessage event) {
        if (this->link)
          this->link->queue(event);
      }) {}

void Follower::lose(std::string how) {
  if (!link)
    return;
  link.reset();
  attempt.reset();
  loss = std::move(how);
  local.apply({.kind = Kind::stop});
}

void Follower::handleFromLink() {
  if (!link)
    return;
  bool isConnected = link->flush();
  isConnected = link->fill() && isConnected;
  while (std::optional<LaunchMessage> command = link->take()) {
    heardAt = Clock::now();
    if (command->kind == Kind::end)
      end = std::move(*command);
    else if (command->kind != Kind::restart)
      local.apply(*command);
    else if (!restart(*command))
      return;
  }
  if (end) {
    link.reset(); // nothing more will come
    attempt.reset();
    if (local.isAnyAlive())
      local.apply({.kind = Kind::stop});
  } else if (link->isAltered()) {
    lose(describeAltered);
  } else if (!isConnected) {
    lose(fmt::format("is gone: its {} ended or was killed", options.tool));
  }
}

/// Looks whether the way to the coordinator is open although its line is silent.
void Follower::knock(Deadline now) {
  if (now - heardAt < knockAfter) {
    attempt.reset();
    return;
  }
  if (attempt && attempt->state() == Handshake::State::done) {
    heardAt = now; // it lives and knows the secret
    attempt.reset();
    return;
  }
  if (now < nextKnock)
    return;
  nextKnock = now + knockTime;
  attempt = std::make_unique<RendezvousAttempt>(place.addresses, place.secret, place.greeting);
}

void Follower::tick() {
  Deadline now = Clock::now();
  if (now - lastTick > std::chrono::milliseconds(2000)) // this launcher was suspended: that is nobody's silence
    heardAt += now - lastTick;
  lastTick = now;
  local.tick();
  if (!link)
    return;
  if (now >= nextBeat) {
    nextBeat = now + beatTime;
    if (local.isAnyAlive()) // what is past must not come between the ranks that follow
      link->queue({.kind = Kind::progress, .text = packProgress(local.progress())});
    else
      link->queue({.kind = Kind::beat});
  }
  link->flush(); // if it cannot, handleFromLink sees that
  knock(now);
  const auto silence = now - heardAt, limit = Clock::duration(silenceTime(options.timeout));
  if (silence > limit) {
    lose(describeSilence(limit));
  } else if (bool isLong = silence > limit / 2; isLong != isSilenceTold) {
    isSilenceTold = isLong;
    local.tell({.kind = isLong ? "silence" : "recovered",
                .text = fmt::format("the coordinator (node 0, {}){}", place.name,
                                    isLong ? describeSilence(silence, limit) : " is heard again")});
  }
}

bool Follower::restart(const LaunchMessage &command) {
  RestartPoint point;
  Status started = Status::error(ErrorKind::runFailed, "node 0 asks for a restart that cannot be");
  if (unpackRestart(command.text, point) && !local.isAnyAlive()) {
    if (options.onBadEnd)
      options.onBadEnd();
    started = local.fork(*rankMain, {link->descriptor()}, point);
  }
  if (!started) {
    local.tell({.text = started.message()});
    lose("was left: the ranks of this node cannot start anew"); // it sees the line closed
  }
  return started.isOk();
}

int Follower::run(const RankMain &main) {
  heardAt = lastTick = Clock::now();
  rankMain = &main;
  Status started = local.fork(main, {link->descriptor()});
  if (!started) {
    local.tell({.text = started.message()});
    link.reset(); // the coordinator sees the line closed
    local.drainOutput(true);
    return started.exitCode();
  }
  while (local.isAnyAlive() || link) {
    PollSet set;
    local.addTo(set);
    if (link)
      set.add(link->descriptor(), short(POLLIN | (link->hasOutput() ? POLLOUT : 0)), [] {});
    if (attempt)
      attempt->addTo(set);
    set.wait(tickTime);
    handleFromLink();
    tick();
  }
  return finish();
}

int Follower::finish() {
  LaunchEvent why;
  if (!end)
    why.text = fmt::format("the coordinator (node 0, {}) {}; the ranks of this node were stopped", place.name, loss);
  else if (unpackEnd(end->text, why.text, why.step))
    why.rank = end->rank;
  constexpr int exitStoppedResumable = 75;
  // Where all nodes share one output, node 0 has said it already.
  if (why.text.empty() || (end && options.isOutputShared))
    ;
  else if (end && end->number == exitStoppedResumable)
    local.say(why.text);
  else
    local.tell(std::move(why));
  int code = end ? int(end->number) : exitCodeOf(ErrorKind::lost);
  if (code != 0 && options.onBadEnd)
    options.onBadEnd();
  local.drainOutput(code != 128 + SIGINT && code != 128 + SIGHUP);
  return code;
}

} // namespace dg
