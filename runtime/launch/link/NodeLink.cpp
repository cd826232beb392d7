// SPDX-License-Identifier: Apache-2.0
// On the wire: length of the body (8 bytes), body (kind, rank, number, text), proof (32 bytes). The proof is over the
// digest of the text: the addresses of all ranks go to every launcher, and only the digest is the same for each.
#include "runtime/launch/link/NodeLink.h"

#include <cstring>

namespace dg {
namespace {

struct BodyHead {
  uint64_t kind;
  int64_t rank, number;
};

constexpr uint64_t longestBody = uint64_t(1) << 28;

} // namespace

NodeLink::NodeLink(int descriptor, const Digest &sessionKey, bool isServer)
    : socket(descriptor), key(Secret(asText(sessionKey))), sending(isServer ? 's' : 'c'),
      receiving(isServer ? 'c' : 's') {}

Digest NodeLink::prove(char direction, uint64_t number, std::string_view head, const Digest &digestOfText) const {
  std::string text(1, direction);
  text.append(reinterpret_cast<const char *>(&number), sizeof number);
  return hmacSha256(key.view(), text.append(head).append(asText(digestOfText)));
}

void NodeLink::queue(const LaunchMessage &message, const Digest &digestOfText) {
  BodyHead head = {uint64_t(message.kind), message.rank, message.number};
  uint64_t bytes = sizeof head + message.text.size();
  std::string &outgoing = socket.outgoing;
  outgoing.append(reinterpret_cast<const char *>(&bytes), sizeof bytes);
  std::string_view headBytes(reinterpret_cast<const char *>(&head), sizeof head);
  outgoing.append(headBytes).append(message.text);
  outgoing.append(asText(prove(sending, numQueued++, headBytes, digestOfText)));
}

std::optional<LaunchMessage> NodeLink::take() {
  std::string &incoming = socket.incoming;
  uint64_t bytes;
  if (isDamaged || incoming.size() < sizeof bytes)
    return std::nullopt;
  std::memcpy(&bytes, incoming.data(), sizeof bytes);
  if (bytes < sizeof(BodyHead) || bytes > longestBody) {
    isDamaged = true;
    return std::nullopt;
  }
  size_t whole = sizeof bytes + bytes + sizeof(Digest);
  if (incoming.size() < whole)
    return std::nullopt;
  const char *body = incoming.data() + sizeof bytes;
  Digest proof;
  std::memcpy(proof.data(), body + bytes, proof.size());
  std::string_view text(body + sizeof(BodyHead), bytes - sizeof(BodyHead));
  if (!isEqual(proof, prove(receiving, numTaken++, {body, sizeof(BodyHead)}, sha256(text)))) {
    isDamaged = true;
    return std::nullopt;
  }
  BodyHead head;
  std::memcpy(&head, body, sizeof head);
  LaunchMessage message = {LaunchMessage::Kind(head.kind), head.rank, head.number, std::string(text)};
  incoming.erase(0, whole);
  return message;
}

} // namespace dg
