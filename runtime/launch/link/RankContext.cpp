// SPDX-License-Identifier: Apache-2.0
// The rank's side of the line to the launcher.
#include "runtime/launch/link/RankContext.h"

#include "runtime/launch/link/ControlSocket.h"
#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/launch/link/SharedBoard.h"

#include <unistd.h>

namespace dg {

RankContext::RankContext(int64_t localIndex, const RankPlacement &placement, SharedBoard &board,
                         std::unique_ptr<ControlSocket> socket, std::vector<Digest> keys, KeptMemory *kept)
    : localIndex(localIndex), self(placement.firstRank + localIndex), place(placement), shared(board),
      socket(std::move(socket)), keys(std::move(keys)), keptMemory(kept) {}

RankContext::~RankContext() = default;

int64_t RankContext::numRanks() const { return place.numRanks; }
ProgressLine &RankContext::board() { return shared.line(localIndex); }
bool RankContext::isShutdownRequested() const { return shared.isShutdownRequested(); }
bool RankContext::mayStartStep(uint64_t step) { return shared.enterStep(localIndex, step); }

bool RankContext::isSaveDue(uint64_t step) const { return shared.isSaveDue(step); }

void RankContext::reportSnapshot(int64_t step) {
  socket->queue({.kind = FrameKind::kept, .number = uint64_t(step), .payload = {}});
  socket->flush(); // what does not leave now does with the next exchange
}

std::optional<int64_t> RankContext::wholeSnapshot() const { return shared.wholeSnapshot(); }

Result<std::vector<std::string>> RankContext::allGather(const std::string &bytes, Deadline deadline) {
  uint64_t number = exchanges++;
  socket->queue({.kind = FrameKind::gather, .number = number, .payload = bytes});
  DG_RETURN_IF_ERROR(socket->sendBefore(deadline, "exchange"));
  while (true) {
    Result<Frame> answer = socket->takeBefore(deadline, "exchange");
    if (!answer)
      return answer.status();
    if (answer->number < number)
      continue; // of an exchange that this rank had given up
    auto parts = unpackParts(answer->payload);
    if (!parts || parts->size() != size_t(numRanks()))
      return Status::error(ErrorKind::runFailed, "the launcher's answer to exchange {} is damaged", number);
    return std::move(*parts);
  }
}

Status RankContext::barrier(Deadline deadline) { return allGather("", deadline).status(); }

bool RankContext::reportFailure(const Status &status, FailureOrigin origin) {
  if (status.isOk())
    return true;
  socket->queue({FrameKind::failure, origin, uint64_t(status.exitCode()), status.message()});
  return socket->sendBefore(deadlineIn(std::chrono::seconds(1)), "report of a failure").isOk();
}

void RankContext::awaitStop(Deadline deadline) const {
  while (!shared.isAbandoned() && std::chrono::steady_clock::now() < deadline)
    usleep(1000);
}

} // namespace dg
