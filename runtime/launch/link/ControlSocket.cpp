// SPDX-License-Identifier: Apache-2.0
// Framing: a fixed header, then the payload.
#include "runtime/launch/link/ControlSocket.h"

#include <algorithm>
#include <cstring>
#include <poll.h>

namespace dg {
namespace {

struct Header {
  uint32_t kind, origin;
  uint64_t number, bytes;
};

/// As between launchers (NodeLink): what everyone says to everyone.
constexpr uint64_t longestPayload = uint64_t(1) << 28;

} // namespace

void ControlSocket::queue(const Frame &frame) {
  Header header = {uint32_t(frame.kind), uint32_t(frame.origin), frame.number, frame.payload.size()};
  socket.outgoing.append(reinterpret_cast<const char *>(&header), sizeof header);
  socket.outgoing.append(frame.payload);
}

std::optional<Frame> ControlSocket::take() {
  std::string &incoming = socket.incoming;
  Header header;
  if (isDamaged || incoming.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, incoming.data(), sizeof header);
  if (header.bytes > longestPayload) {
    isDamaged = true;
    return std::nullopt;
  }
  if (incoming.size() - sizeof header < header.bytes)
    return std::nullopt;
  Frame frame = {FrameKind(header.kind), FailureOrigin(header.origin), header.number,
                 incoming.substr(sizeof header, header.bytes)};
  incoming.erase(0, sizeof header + header.bytes);
  return frame;
}

Status ControlSocket::waitUntilReady(short events, Deadline deadline, const char *what) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return Status::error(ErrorKind::runFailed, "the other ranks did not come to the {} before its deadline", what);
    pollfd entry = {socket.descriptor(), events, 0};
    if (::poll(&entry, 1, int(std::min<int64_t>(left.count(), 60000))) > 0)
      return Status::ok();
  }
}

Status ControlSocket::sendBefore(Deadline deadline, const char *what) {
  while (true) {
    if (!flush())
      return Status::error(ErrorKind::runFailed, "the launcher is gone (during the {})", what);
    if (!hasOutput())
      return Status::ok();
    DG_RETURN_IF_ERROR(waitUntilReady(POLLOUT, deadline, what));
  }
}

Result<Frame> ControlSocket::takeBefore(Deadline deadline, const char *what) {
  while (true) {
    bool isConnected = fill();
    if (std::optional<Frame> frame = take())
      return std::move(*frame);
    if (!isConnected)
      return Status::error(ErrorKind::runFailed, "the launcher is gone (during the {})", what);
    DG_RETURN_IF_ERROR(waitUntilReady(POLLIN, deadline, what));
  }
}

std::string packParts(const std::vector<std::string> &parts) {
  std::string payload;
  for (const std::string &part : parts) {
    uint64_t bytes = part.size();
    payload.append(reinterpret_cast<const char *>(&bytes), sizeof bytes);
    payload.append(part);
  }
  return payload;
}

std::optional<std::vector<std::string>> unpackParts(const std::string &payload) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < payload.size();) {
    uint64_t bytes;
    if (payload.size() - at < sizeof bytes)
      return std::nullopt;
    std::memcpy(&bytes, payload.data() + at, sizeof bytes);
    at += sizeof bytes;
    if (payload.size() - at < bytes)
      return std::nullopt;
    parts.push_back(payload.substr(at, bytes));
    at += bytes;
  }
  return parts;
}

} // namespace dg
