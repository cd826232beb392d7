// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/LaunchedDevice.h"

#include "runtime/support/SpinWait.h"

#include <thread>

namespace dg {

/// Looks at a device that has not finished before the core is given away, and between two looks at the clock.
static constexpr uint32_t spinsBeforeYield = 100, spinsPerClock = 64;

namespace {

/// Either a section, which begins with `node`, or a node of the caller.
struct Piece {
  std::unique_ptr<Section> section;
  size_t node = 0;
};

struct PreparedPieces final : PreparedWork {
  std::vector<Piece> pieces;
};

} // namespace

Status LaunchedDevice::setUp(const DeviceOptions &options, StepContext &stepContext) {
  timeout = options.timeout;
  context = &stepContext;
  return Status::ok();
}

Status LaunchedDevice::prepare(Segment &segment) {
  auto prepared = std::make_unique<PreparedPieces>();
  for (size_t begin = 0, end = 0; begin < segment.nodes.size(); begin = end) {
    end = begin + 1;
    Piece piece;
    piece.node = begin;
    if (!segment.nodes[begin].isCallerOnly()) {
      // A trace has the time of each node: then each is launched alone.
      while (!context->trace && end < segment.nodes.size() && !segment.nodes[end].isCallerOnly())
        ++end;
      Result<std::unique_ptr<Section>> made = makeSection(std::span(segment.nodes).subspan(begin, end - begin));
      if (!made)
        return made.status();
      piece.section = std::move(*made);
    }
    prepared->pieces.push_back(std::move(piece));
  }
  segment.prepared = std::move(prepared);
  return Status::ok();
}

bool LaunchedDevice::run(const Segment &segment, uint32_t index) {
  for (const Piece &piece : static_cast<const PreparedPieces &>(*segment.prepared).pieces) {
    const Node &node = segment.nodes[piece.node];
    context->runningTask.store(node.task + 1, std::memory_order_relaxed);
    uint64_t startNs = context->trace ? nowNs() : 0;
    if (piece.section) {
      launch(*piece.section, index, context->scalars);
      if (context->trace && !awaitAll())
        return false;
    } else if ((node.kind == NodeKind::start && !awaitAll()) || !runCallerNode(node, index, *context)) {
      return false;
    }
    if (context->trace && (piece.section || node.kind == NodeKind::finish))
      context->trace->record(0, {startNs, nowNs(), node.task, context->microbatch, node.tiles, node.tiles});
    context->companion.pollSome();
  }
  return !context->companion.hasFailed();
}

bool LaunchedDevice::awaitAll() {
  Patience patience;
  for (Progress progress; (progress = poll()) != Progress::done;) {
    if (progress == Progress::failed)
      return fail(cause());
    context->companion.pollSome();
    if (context->companion.hasFailed())
      return false;
    if (patience.spins == 0)
      patience.lastNs = nowNs();
    if (++patience.spins < spinsBeforeYield)
      pauseCore();
    else
      std::this_thread::yield();
    if (patience.spins % spinsPerClock != 0)
      continue;
    patience.count(nowNs());
    if (patience.waitedNs >= uint64_t(std::chrono::nanoseconds(timeout).count()))
      return fail(
          Status::error(ErrorKind::runFailed,
                        "the device has not finished within {:g} s what it was given up to task {} of the plan; "
                        "it hangs, or needs more time: --timeout",
                        double(timeout.count()) / 1000, context->runningTask.load() - 1));
  }
  return true;
}

bool LaunchedDevice::fail(Status status) {
  failed = std::move(status);
  return false;
}

} // namespace dg
