// SPDX-License-Identifier: Apache-2.0
// What a rank of another host, which has the key and a defect, sends to TlsTransport. The channel is a double that
// hands over the input: TLS itself is OpenSSL's. The input is a row of commands: frames, bytes of any kind, and what
// this rank does meanwhile.
#include "runtime/transport/TlsMeeting.h"
#include "runtime/transport/TlsPeer.h"
#include "runtime/transport/TlsTransport.h"
#include "tests/fuzz/FuzzTarget.h"
#include "tests/unit/transport/InProcessTransport.h"

#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace dg;

namespace {

/// What the other rank has sent and this one has not read; how much the next write takes.
struct Wire {
  std::string bytes;
  size_t taken = 0;   ///< of the bytes
  uint64_t zeros = 0; ///< behind the bytes: the payload of a large frame
  size_t room = SIZE_MAX;
  bool isBroken = false;
} wire;

} // namespace

namespace dg {

struct SecureCallbacks {
  static std::unique_ptr<SecureChannel> make() {
    static SecureContext context;
    return std::unique_ptr<SecureChannel>(new SecureChannel(context, eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC)));
  }
};

SecureContext::~SecureContext() = default;
SecureChannel::SecureChannel(SecureContext &context, int descriptor) : context(context), socket(descriptor) {}
SecureChannel::~SecureChannel() { close(socket); }
size_t SecureChannel::write(const void *bytes, size_t count) {
  count = std::min(count, wire.room);
  fuzz::touch({static_cast<const std::byte *>(bytes), count});
  wire.room -= wire.room == SIZE_MAX ? 0 : count;
  return count;
}
size_t SecureChannel::read(void *bytes, size_t count) {
  if (wire.isBroken)
    why = "the connection was cut";
  if (wire.taken == wire.bytes.size()) {
    count = std::min<uint64_t>(count, wire.zeros);
    std::memset(bytes, 0, count);
    wire.zeros -= count;
    return count;
  }
  count = std::min(count, wire.bytes.size() - wire.taken);
  std::memcpy(bytes, wire.bytes.data() + wire.taken, count);
  wire.taken += count;
  return count;
}
bool SecureChannel::hasPending() const { return wire.taken < wire.bytes.size() || wire.zeros > 0; }
void SecureChannel::sayGoodbye() {}

namespace detail {
Result<std::unique_ptr<TlsMeeting>> TlsMeeting::open(int64_t, const std::string &, std::vector<PairKey>) {
  return std::unique_ptr<TlsMeeting>(new TlsMeeting);
}
TlsMeeting::~TlsMeeting() = default;
Status TlsMeeting::connectAll(const Places &, std::chrono::milliseconds) {
  channels.resize(2);
  channels[1] = SecureCallbacks::make();
  return Status::ok();
}
} // namespace detail
} // namespace dg

namespace {

using detail::tls::Frame, detail::tls::FrameKind;

class Input {
public:
  Input(const uint8_t *data, size_t size) : at(data), left(size) {}
  bool isEmpty() const { return left == 0; }
  uint64_t number(size_t width) {
    uint64_t value = 0;
    width = std::min(width, left);
    std::memcpy(&value, at, width);
    at += width, left -= width;
    return value;
  }

private:
  const uint8_t *at;
  size_t left;
};

/// Of few values, so that requests and messages meet.
size_t sizeFrom(uint64_t byte) {
  static constexpr size_t sizes[] = {0, 1, 8, 4095, 4096, 4097, 16384, 100'000, 1 << 20, (1 << 20) + 1, 3 << 20};
  return byte < 128 ? sizes[byte % std::size(sizes)] : byte;
}

/// What the other rank says of itself before the first frame.
Result<std::vector<std::string>> exchange(const std::string &mine, uint64_t requests, uint64_t blocks) {
  std::string theirs = mine;
  if (mine.empty())
    return std::vector<std::string>{mine, theirs};
  const auto maxRequests = uint32_t(requests), numBlocks = uint32_t(blocks);
  std::memcpy(theirs.data(), &maxRequests, sizeof maxRequests);
  std::memcpy(theirs.data() + sizeof maxRequests, &numBlocks, sizeof numBlocks);
  theirs[theirs.size() - 512] = 'b'; // another host
  return std::vector<std::string>{mine, theirs};
}

struct Receive {
  Transport::Request request;
  std::unique_ptr<char[]> data; ///< as large as was said, so that AddressSanitizer sees more
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  Input input(data, size);
  wire = {};
  const uint64_t kind = input.number(1);
  const uint64_t requests = kind & 1 ? input.number(4) : 8, blocks = kind & 2 ? input.number(4) : 256;
  TlsOptions options;
  options.maxRequests = 8;
  options.hostId = "a";
  options.keys.resize(2);
  auto locals = makeInProcessTransports(2, 8);
  auto made = makeTlsTransport(
      std::move(locals[0]), [&](const std::string &mine) { return exchange(mine, requests, blocks); }, options);
  if (!made)
    return 0;
  Transport &transport = **made;
  std::vector<Receive> open;
  static const std::vector<char> sent(4 << 20);
  auto lookAt = [&](Receive &one) { return transport.look(one.request) != Progress::pending; };
  while (!input.isEmpty()) {
    const uint64_t command = input.number(1);
    switch (command % 8) {
    case 0:
    case 1:
    case 2: {
      Frame frame = {.kind = FrameKind(command / 8 % 6), .freed = uint32_t(input.number(1)), .tag = input.number(1)};
      frame.bytes = command & 64 ? input.number(8) : sizeFrom(input.number(1));
      const uint64_t name = input.number(1);
      frame.id = name % 8 | (name / 8 % 4) << 32;
      frame.receive = command & 128 ? detail::tls::noReceive : name / 8 % 8 | (name / 64) << 32;
      wire.bytes.append(reinterpret_cast<const char *>(&frame), sizeof frame);
      const bool hasPayload = frame.kind == FrameKind::message || frame.kind == FrameKind::part;
      if (hasPayload && frame.bytes <= (4 << 20)) // else it stays away: a frame that is cut off
        wire.bytes.append(frame.bytes, 'x');
      break;
    }
    case 3: {
      Receive one{0, std::make_unique<char[]>(0)};
      const uint64_t tag = input.number(1);
      const size_t bytes = sizeFrom(input.number(1));
      one.data = std::make_unique<char[]>(bytes);
      one.request = transport.startReceive(1, tag, one.data.get(), bytes);
      open.push_back(std::move(one));
      break;
    }
    case 4: {
      const uint64_t tag = input.number(1);
      open.push_back({transport.startSend(1, tag, sent.data(), sizeFrom(input.number(1))), nullptr});
      break;
    }
    case 5:
      wire.room = command & 64 ? SIZE_MAX : input.number(1);
      transport.advance();
      std::erase_if(open, lookAt);
      break;
    case 6:
      wire.bytes += char(input.number(1));
      break;
    default:
      if (command & 64)
        wire.isBroken = true;
      else if (command & 128)
        wire.zeros = input.number(2);
      else
        transport.cancelAll(), open.clear();
    }
  }
  transport.advance();
  std::erase_if(open, lookAt);
  transport.cancelAll();
  return 0;
}
