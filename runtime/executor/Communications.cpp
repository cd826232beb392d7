// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/Communications.h"

#include "runtime/support/SpinWait.h"

#include <algorithm>
#include <thread>

namespace dg {

/// How often a wait that gives its core to others looks at the clock and says for whom it waits.
static constexpr uint32_t spinsPerClock = 8, spinsPerName = 64;
/// Who has waited for so long sleeps between its looks: on a host with more ranks than cores those that work need them.
static constexpr uint64_t sleepAfterNs = 20'000'000;
static constexpr std::chrono::microseconds sleepTime{50};
/// Open communications that are advanced between two tiles; where messages travel all of them after so long, because
/// the link is idle when none of them goes on.
static constexpr size_t pollsAtOnce = 4;
static constexpr uint64_t sweepAfterNs = 50'000;

Operation *Communications::add(plan::TaskId task, std::unique_ptr<Communication> communication, int64_t firstPeer,
                               std::string peers) {
  operations.push_back(std::make_unique<Operation>());
  if (Transport *transport = communication->messages())
    messages = transport;
  operations.back()->communication = std::move(communication);
  operations.back()->task = task;
  operations.back()->firstPeer = firstPeer;
  operations.back()->peers = std::move(peers);
  open.reserve(operations.size());
  return operations.back().get();
}

void Communications::start(Operation &operation, void *input, void *output, uint32_t microbatch) {
  operation.microbatch = microbatch;
  operation.openPosition = uint32_t(open.size());
  open.push_back(&operation);
  ++numOpen;
  if (trace)
    operation.startNs = nowNs();
  operation.communication->start(input, output);
}

void Communications::close(Operation &operation) {
  open[operation.openPosition] = open.back();
  open[operation.openPosition]->openPosition = operation.openPosition;
  open.pop_back();
  --numOpen;
  operation.openPosition = Operation::closed;
  if (trace)
    trace->record(trace->communicationLane(), {operation.startNs, nowNs(), operation.task, operation.microbatch, 1});
}

Progress Communications::advance(const Node &node, uint32_t index, uint32_t microbatch, Operation *&awaited) {
  for (Operation *operation : node.operationsOf(index)) {
    Progress progress = poll(*operation);
    if (progress != Progress::done) {
      awaited = operation;
      return progress;
    }
  }
  if (node.kind == NodeKind::start) {
    void *const *buffers = node.row(index);
    start(*node.operationsOf(index).front(), buffers[0], buffers[node.numBuffers - 1], microbatch);
  }
  return Progress::done;
}

void Communications::fail(Status status) {
  failed = std::move(status);
  isFailed = true;
}

Progress Communications::poll(Operation &operation) {
  if (!operation.isOpen())
    return Progress::done;
  if (messages)
    messages->advance();
  return goOn(operation);
}

Progress Communications::goOn(Operation &operation) {
  Progress progress = operation.communication->goOn();
  if (progress == Progress::done) {
    close(operation);
  } else if (progress == Progress::failed && failed.isOk()) {
    Status cause = operation.communication->failure();
    fail(Status::error(ErrorKind::lost, "rank {} lost {} in {}: {}", rank, peerOf(operation), describe(operation),
                       cause.message()));
  }
  return progress;
}

void Communications::pollOpen() {
  size_t count = std::min(pollsAtOnce, open.size());
  if (messages) {
    messages->advance();
    if (uint64_t now = nowNs(); now - lastSweepNs >= sweepAfterNs) {
      count = open.size();
      lastSweepNs = now;
    }
  }
  for (; count > 0 && !open.empty(); --count) {
    if (nextToPoll >= open.size())
      nextToPoll = 0;
    // One that is done gives its place to the last, which is then next.
    if (goOn(*open[nextToPoll]) != Progress::done)
      ++nextToPoll;
  }
}

bool Communications::idle(const Operation &awaited, Patience &patience) {
  if (hasFailed())
    return false;
  if (patience.spins == 0) {
    patience.lastNs = nowNs();
    lastActivity = activityOf(awaited);
  }
  if (++patience.spins < spinsBeforeYield) {
    pauseCore();
    return true;
  }
  if (patience.waitedNs < sleepAfterNs)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(sleepTime);
  if (patience.spins % spinsPerClock != 0)
    return true;
  patience.count(nowNs());
  progress.pulses.fetch_add(1, std::memory_order_relaxed);
  // Slow is not dead: what counts is how long nothing has moved.
  if (uint64_t activity = activityOf(awaited); activity != lastActivity) {
    lastActivity = activity;
    patience.waitedNs = 0;
  }
  bool isOver = patience.waitedNs >= uint64_t(std::chrono::nanoseconds(timeout).count());
  if (patience.spins % spinsPerName != 0 && !isOver)
    return true;
  int64_t waitsFor = awaited.communication->waitsFor();
  progress.waitingFor.store(int32_t(waitsFor == Communication::nobody ? awaited.firstPeer : waitsFor) + 1,
                            std::memory_order_relaxed);
  if (!isOver)
    return true;
  std::string peer = peerOf(awaited);
  fail(Status::error(ErrorKind::lost,
                     "rank {} waited {:g} s for {} in {}: no answer before the deadline; {} has stopped, or needs "
                     "longer than that for its part of the step",
                     rank, double(timeout.count()) / 1000, peer, describe(awaited), peer));
  return false;
}

uint64_t Communications::activityOf(const Operation &operation) const {
  int64_t peer = operation.communication->waitsFor();
  return messages ? messages->activity(peer == Communication::nobody ? operation.firstPeer : peer) : 0;
}

bool Communications::finishAll() {
  Patience patience;
  size_t numOpen = open.size();
  while (!open.empty()) {
    pollOpen();
    if (open.size() != numOpen) {
      numOpen = open.size();
      patience = {};
    } else if (!idle(*open.front(), patience)) {
      return false;
    }
  }
  endWait();
  return !hasFailed();
}

std::string Communications::peerOf(const Operation &operation) {
  int64_t peer = operation.communication->waitsFor();
  return peer == Communication::nobody ? operation.peers : fmt::format("rank {}", peer);
}

std::string Communications::describe(const Operation &operation) const {
  const plan::Task &task = plan.tasks[operation.task];
  return fmt::format("'{}' ({}, {}), step {}, micro-batch {}", task.name, task.op,
                     task.source.empty() ? "no source" : task.source, step, operation.microbatch);
}

} // namespace dg
