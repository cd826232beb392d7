// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/LossChannel.h"

#include <thread>

namespace dg::session {

/// The executor's tags hold a program number below 15 in their highest bits.
static constexpr uint64_t stepTag = 0xff0000000000u;

/// The stage that ends with the loss: the last part of the model need not lie on the last stage.
static int64_t lossStage(const plan::Plan &plan) {
  for (const plan::Program &program : plan.programs)
    for (const plan::Port &port : program.outputs)
      if (port.name == "loss" && !port.values.empty())
        return plan.values[port.values.front()].stage;
  return plan.mesh.sizeOf(plan::Axis::pipe) - 1;
}

LossChannel::LossChannel(const plan::Plan &plan, int64_t rank, Transport *transport, std::chrono::milliseconds timeout,
                         OnStep onStep, ProgressLine *progress)
    : rank(rank), source(plan.mesh.rankOf({lossStage(plan), 0, 0})), transport(transport), timeout(timeout),
      onStep(std::move(onStep)), progress(progress) {}

LossChannel::~LossChannel() {
  if (opened != retired)
    transport->cancelAll();
}

Status LossChannel::await(Transport::Request request) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  int64_t peer = rank == 0 ? source : 0;
  uint64_t activity = transport->activity(peer);
  Progress state;
  while ((state = transport->test(request)) == Progress::pending) {
    if (progress) {
      progress->waitingFor.store(int32_t(peer) + 1, std::memory_order_relaxed);
      progress->pulses.fetch_add(1, std::memory_order_relaxed);
    }
    auto now = std::chrono::steady_clock::now();
    if (uint64_t moved = transport->activity(peer); moved != activity) { // slow is not dead
      activity = moved;
      deadline = now + timeout;
    }
    if (now > deadline)
      return Status::error(ErrorKind::lost, "rank {} waited {} ms for rank {} to pass on a loss", rank, timeout.count(),
                           peer);
    std::this_thread::yield();
  }
  if (progress)
    progress->waitingFor.store(0, std::memory_order_relaxed);
  return state == Progress::done ? Status::ok() : transport->failure();
}

Status LossChannel::retire(bool wait, bool &moved) {
  moved = false;
  if (opened == retired)
    return Status::ok();
  Slot &slot = slots[retired % depth];
  if (wait) {
    DG_RETURN_IF_ERROR(await(slot.request));
  } else {
    Progress progress = transport->test(slot.request);
    if (progress == Progress::failed)
      return transport->failure();
    if (progress == Progress::pending)
      return Status::ok();
  }
  ++retired;
  moved = true;
  if (rank != 0)
    return Status::ok();
  slot.info.loss = slot.numbers[0];
  if (slot.info.gradientNorm)
    slot.info.gradientNorm = slot.numbers[1];
  onStep(slot.info);
  return Status::ok();
}

Status LossChannel::push(const StepInfo &info) {
  if (source == 0) {
    if (rank == 0)
      onStep(info);
    return Status::ok();
  }
  if (rank != 0 && rank != source)
    return Status::ok();
  bool moved = true;
  while (moved)
    DG_RETURN_IF_ERROR(retire(opened - retired == depth, moved));
  Slot &slot = slots[opened++ % depth];
  slot.info = info;
  slot.numbers = {info.loss, info.gradientNorm.value_or(0)};
  slot.request = rank == 0 ? transport->startReceive(source, stepTag, slot.numbers.data(), sizeof slot.numbers)
                           : transport->startSend(0, stepTag, slot.numbers.data(), sizeof slot.numbers);
  return Status::ok();
}

Status LossChannel::drain() {
  bool moved = true;
  while (moved)
    DG_RETURN_IF_ERROR(retire(true, moved));
  return Status::ok();
}

} // namespace dg::session
