// SPDX-License-Identifier: Apache-2.0
// The only file that knows UCX. A message's UCX tag is (sender << 48 | tag). Requests live in one block made at set-up
// and handed to UCX with every operation, so that neither side allocates in a step; UCX's log goes to stderr, never to
// stdout.
#include "runtime/transport/UcxTransport.h"

#include "runtime/transport/HostMemory.h"

#include <ucm/api/ucm.h>
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>

namespace dg {
namespace {

constexpr uint32_t none = UINT32_MAX;
constexpr unsigned tagBits = 48;

enum class SlotState : uint8_t { free, open, done };

struct Slot {
  SlotState state = SlotState::free;
  bool isSend = false;
  ucs_status_t status = UCS_OK;
  int64_t peer = 0;
  uint64_t tag = 0;
  size_t bytes = 0, received = 0;
  uint32_t nextFree = none;
  uint64_t *activity = nullptr; ///< of its peer
};

/// Whether this thread is inside UCX, whose fatal errors are then the end of a connection and no defect of the rank.
thread_local volatile bool isInsideUcx = false;
struct InsideUcx {
  const bool before = isInsideUcx;
  InsideUcx() { isInsideUcx = true; }
  ~InsideUcx() { isInsideUcx = before; }
};

/// What a signal handler can reach. One per process: a process is one rank.
constexpr int crashSignals[] = {SIGABRT, SIGSEGV, SIGBUS};
void (*crashHandler)(int signal) = nullptr;
struct sigaction actionsBefore[std::size(crashSignals)];

void onCrashSignal(int signal, siginfo_t *info, void *) {
  const bool isFromOutside = info->si_code == SI_USER;
  if (isInsideUcx && !isFromOutside)
    crashHandler(signal);
  for (size_t i = 0; i < std::size(crashSignals); ++i)
    if (crashSignals[i] == signal)
      sigaction(signal, &actionsBefore[i], nullptr);
  raise(signal); // comes once this returns
}

void handleCrashes(void (*handler)(int signal)) {
  if (!handler || crashHandler)
    return;
  crashHandler = handler;
  struct sigaction action = {};
  action.sa_sigaction = onCrashSignal;
  action.sa_flags = SA_SIGINFO;
  for (size_t i = 0; i < std::size(crashSignals); ++i)
    sigaction(crashSignals[i], &action, &actionsBefore[i]);
}

/// UCX writes its log to stdout, where the tool's own output stands. Its errors come back as a status too, and after
/// the death of a peer, which it calls fatal, they would stand beside the one message of the run; who wants them sets
/// UCX_LOG_LEVEL.
ucs_log_func_rc_t logToStderr(const char *, unsigned, const char *, ucs_log_level_t level,
                              const ucs_log_component_config_t *config, const char *format, va_list arguments) {
  if (level > config->log_level || !std::getenv("UCX_LOG_LEVEL"))
    return UCS_LOG_FUNC_RC_STOP;
  char text[1024];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::fprintf(stderr, "ucx: %s\n", text);
  return UCS_LOG_FUNC_RC_STOP;
}

/// What a socket may hold of what has arrived and was not read yet, where the system lets us say so: its own choice
/// begins with 128 KiB and grows slowly, and a sender whose message does not fit waits for the receiver's next poll.
void widenReceiveBuffers() {
  constexpr long least = 1 << 20, most = 4 << 20;
  long allowed = 0;
  if (std::FILE *file = std::fopen("/proc/sys/net/core/rmem_max", "r")) {
    if (std::fscanf(file, "%ld", &allowed) != 1)
      allowed = 0;
    std::fclose(file);
  }
  if (allowed >= least)
    setenv("UCX_TCP_RCVBUF", std::to_string(std::min(allowed, most)).c_str(), 0);
}

/// Settings that UCX keeps per process, or reads from the environment only.
void prepareProcess() {
  static std::once_flag once;
  std::call_once(once, [] {
    ucs_log_push_handler(logToStderr);
    (void)ucs_global_opts_set_value("MODULES", "cma"); // spares the search for network hardware: 7 ms of 15
    for (int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE})
      ucs_debug_disable_signal(signal); // a backtrace would stand between the user and the launcher's message
    // Hooks on mmap and the like serve devices and network cards, and UCX tries them out on SysV segments, which stay
    // when the rank is killed right then.
    ucm_global_config_t memory = ucm_global_opts;
    memory.enable_events = 0;
    ucm_set_global_opts(&memory);
    setenv("UCX_POSIX_USE_PROC_LINK", "y", 1); // unlinks a segment's file as soon as it is made
    setenv("UCX_TCP_CONN_NB", "y", 1);         // else a host that a firewall hides blocks the rank for two minutes
    setenv("UCX_TCP_KEEPIDLE", "3600s", 0);    // a link may be down for 15 s; who is dead the launcher finds out
    setenv("UCX_TCP_TX_SEG_SIZE", "64k", 0);   // fewer system calls for the same bytes
    setenv("UCX_TCP_RX_SEG_SIZE", "264k", 0); // 256 KiB and a header: messages of 512 KiB leave in two parts, not three
    widenReceiveBuffers();
    setenv("UCX_POSIX_RX_BUFS_GROW", "64", 0); // 0.5 MB a segment: filled, and without a name, in 0.3 ms instead of 2
  });
}

/// What a rank tells the others: where it is, its address for ranks of its host, and the one for ranks of other hosts.
/// UCX alone would take two hosts for one where they share a kernel (containers).
struct PeerAddress {
  std::string hostId, whole, network;

  std::string pack() const {
    std::string bytes;
    for (const std::string *part : {&hostId, &whole, &network}) {
      uint32_t size = uint32_t(part->size());
      bytes.append(reinterpret_cast<const char *>(&size), sizeof size).append(*part);
    }
    return bytes;
  }

  bool unpack(const std::string &bytes) {
    size_t at = 0;
    for (std::string *part : {&hostId, &whole, &network}) {
      uint32_t size;
      if (bytes.size() - at < sizeof size)
        return false;
      std::memcpy(&size, bytes.data() + at, sizeof size);
      at += sizeof size;
      if (bytes.size() - at < size)
        return false;
      *part = bytes.substr(at, size);
      at += size;
    }
    return true;
  }
};

Status ucxError(int64_t rank, const char *what, ucs_status_t status) {
  return Status::error(
      ErrorKind::runFailed,
      "rank {}: UCX could not {}: {}; check that /dev/shm has space, or set UCX_LOG_LEVEL=error to see UCX's own "
      "messages",
      rank, what, ucs_status_string(status));
}

class UcxTransport final : public Transport {
public:
  UcxTransport(int64_t rank, int64_t numRanks, const UcxOptions &options)
      : self(rank), peers(numRanks), options(options), activities(size_t(numRanks)), slots(options.maxRequests) {
    for (uint32_t i = options.maxRequests; i-- > 0;) {
      slots[i].nextFree = freeHead;
      freeHead = i;
    }
  }

  ~UcxTransport() override {
    InsideUcx inside;
    if (worker) {
      cancelAll();
      closeEndpoints();
      ucp_worker_destroy(worker);
    }
    if (context)
      ucp_cleanup(context);
    std::free(requestMemory);
  }

  Status open();
  void adopt(std::unique_ptr<HostMemory> shared) { memory = std::move(shared); }
  /// What the others need to reach this rank: a PeerAddress.
  Result<std::string> address();
  Status connect(const std::vector<std::string> &addresses);

  int64_t rank() const override { return self; }
  int64_t numRanks() const override { return peers; }

  Request startSend(int64_t peer, uint64_t tag, const void *data, size_t bytes) override {
    uint32_t index = take(true, peer, tag, bytes);
    if (index == none)
      return none;
    ucp_request_param_t parameters = parametersOf(index);
    parameters.cb.send = [](void *, ucs_status_t status, void *slot) { finish(slot, status, 0); };
    InsideUcx inside;
    settle(index, ucp_tag_send_nbx(endpoints[size_t(peer)], data, bytes, uint64_t(self) << tagBits | tag, &parameters));
    return index;
  }

  Request startReceive(int64_t peer, uint64_t tag, void *data, size_t bytes) override {
    uint32_t index = take(false, peer, tag, bytes);
    if (index == none)
      return none;
    ucp_request_param_t parameters = parametersOf(index);
    // UCX 1.13 does not tell the length of a message that was there already, except to the callback.
    parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    parameters.cb.recv = [](void *, ucs_status_t status, const ucp_tag_recv_info_t *info, void *slot) {
      finish(slot, status, info->length);
    };
    InsideUcx inside;
    ucs_status_ptr_t started =
        ucp_tag_recv_nbx(worker, data, bytes, uint64_t(peer) << tagBits | tag, UINT64_MAX, &parameters);
    settle(index, started);
    return index;
  }

  void advance() override {
    InsideUcx inside;
    ucp_worker_progress(worker);
  }

  Progress look(Request request) override {
    if (request == none)
      return Progress::failed; // lastFailure was written when it was refused
    Slot &slot = slots[request];
    assert(slot.state != SlotState::free && "a request is looked at again after its end");
    if (slot.state == SlotState::open)
      return Progress::pending;
    bool isWhole = slot.isSend || slot.received == slot.bytes;
    bool isDone = slot.status == UCS_OK && isWhole;
    if (!isDone)
      lastFailure = describe(slot);
    release(request);
    return isDone ? Progress::done : Progress::failed;
  }

  bool hasRoom() const override { return numTaken * 2 <= slots.size(); }
  Status failure() const override { return lastFailure; }
  /// UCX tells of whole messages only.
  uint64_t activity(int64_t peer) const override { return activities[size_t(peer)]; }
  HostMemory *hostMemory() override { return memory.get(); }

  /// Receives are cancelled. UCX cannot take a send back: its slot stays taken until the worker is destroyed, and a
  /// peer that still asks for the data reads whatever the buffer then holds.
  void cancelAll() override {
    InsideUcx inside;
    for (uint32_t i = 0; i < slots.size(); ++i)
      if (slots[i].state == SlotState::open)
        ucp_request_cancel(worker, memoryOf(i));
    for (int i = 0; i < 100; ++i)
      ucp_worker_progress(worker);
    for (uint32_t i = 0; i < slots.size(); ++i)
      if (slots[i].state == SlotState::done)
        release(i);
  }

private:
  static const char *verb(const Slot &slot) { return slot.isSend ? "send to" : "receive from"; }
  void *memoryOf(uint32_t index) const { return requestMemory + requestStride * (index + 1); }

  /// A free slot, or none with the reason in lastFailure.
  uint32_t take(bool isSend, int64_t peer, uint64_t tag, size_t bytes) {
    Slot wanted = {.state = SlotState::open, .isSend = isSend, .peer = peer, .tag = tag, .bytes = bytes};
    if (peer < 0 || peer >= peers || tag > maxTag || !endpoints[size_t(peer)]) {
      lastFailure = Status::error(ErrorKind::runFailed,
                                  "rank {}: {} rank {}, tag {:#x}: expected a rank below {} and a tag up to {:#x}",
                                  self, verb(wanted), peer, tag, peers, maxTag);
      return none;
    }
    if (freeHead == none) {
      lastFailure =
          Status::error(ErrorKind::runFailed,
                        "rank {}: {} rank {} (tag {:#x}): all {} requests are open; make the transport with more", self,
                        verb(wanted), peer, tag, slots.size());
      return none;
    }
    uint32_t index = freeHead;
    freeHead = slots[index].nextFree;
    slots[index] = wanted;
    slots[index].activity = &activities[size_t(peer)];
    ++numTaken;
    return index;
  }

  void release(uint32_t index) {
    --numTaken;
    slots[index].state = SlotState::free;
    slots[index].nextFree = freeHead;
    freeHead = index;
  }

  ucp_request_param_t parametersOf(uint32_t index) {
    ucp_request_param_t parameters = {};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                              UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    parameters.request = memoryOf(index);
    parameters.user_data = &slots[index];
    parameters.memory_type = UCS_MEMORY_TYPE_HOST;
    return parameters;
  }

  /// What UCX calls when an operation ends later than it began.
  static void finish(void *slotPointer, ucs_status_t status, size_t received) {
    Slot &slot = *static_cast<Slot *>(slotPointer);
    slot.status = status;
    slot.received = received;
    slot.state = SlotState::done;
    ++*slot.activity;
  }

  /// An operation that ended at once has no callback.
  void settle(uint32_t index, ucs_status_ptr_t started) {
    if (UCS_PTR_IS_PTR(started))
      return;
    slots[index].status = UCS_PTR_STATUS(started);
    slots[index].state = SlotState::done;
    ++*slots[index].activity;
  }

  Status describe(const Slot &slot) const {
    if (slot.status == UCS_OK)
      return Status::error(ErrorKind::runFailed,
                           "rank {}: {} rank {} (tag {:#x}): found a message of {} bytes, expected {}", self,
                           verb(slot), slot.peer, slot.tag, slot.received, slot.bytes);
    if (slot.status == UCS_ERR_MESSAGE_TRUNCATED)
      return Status::error(ErrorKind::runFailed,
                           "rank {}: {} rank {} (tag {:#x}): found a message of more bytes than the {} expected", self,
                           verb(slot), slot.peer, slot.tag, slot.bytes);
    return Status::error(ErrorKind::runFailed,
                         "rank {}: {} rank {} (tag {:#x}, {} bytes): UCX says: {}; the peer may be gone", self,
                         verb(slot), slot.peer, slot.tag, slot.bytes, ucs_status_string(slot.status));
  }

  /// Orderly while the peers live; gives up after a second when they do not.
  void closeEndpoints() {
    auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (ucp_ep_h endpoint : endpoints) {
      if (!endpoint)
        continue;
      ucp_request_param_t parameters = {};
      ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint, &parameters);
      if (!UCS_PTR_IS_PTR(closing))
        continue;
      while (ucp_request_check_status(closing) == UCS_INPROGRESS && std::chrono::steady_clock::now() < limit)
        ucp_worker_progress(worker);
      ucp_request_free(closing);
    }
    endpoints.clear();
  }

  Result<std::string> addressWith(uint32_t flags);

  int64_t self, peers;
  const UcxOptions options;
  std::unique_ptr<HostMemory> memory;
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  std::vector<ucp_ep_h> endpoints;  ///< null: on another host, and not this transport's business
  std::vector<uint64_t> activities; ///< by peer
  std::vector<Slot> slots;
  uint32_t freeHead = none;
  size_t numTaken = 0;
  char *requestMemory = nullptr; ///< UCX keeps its part of a request in the bytes *before* the pointer it is given
  size_t requestStride = 0;
  Status lastFailure = Status::ok();
};

Status UcxTransport::open() {
  prepareProcess();
  handleCrashes(options.onCrash);
  ucp_config_t *config = nullptr;
  if (ucs_status_t status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return ucxError(self, "read its configuration", status);
  // posix: mapped memory for small messages. cma: one copy for large ones. No tcp: on one host no port is opened. No
  // sysv: its segments would need a second kind of care when a rank is killed.
  ucs_status_t taken = ucp_config_modify(config, "TLS", options.spansHosts ? "tcp,posix,cma,self" : "posix,cma,self");
  // Over TCP asking first costs 100 µs: only large messages wait for their receiver.
  if (taken == UCS_OK && options.spansHosts && !std::getenv("UCX_RNDV_THRESH"))
    taken = ucp_config_modify(config, "RNDV_THRESH", "1m");
  if (taken == UCS_OK && options.spansHosts && !options.networkDevice.empty())
    taken = ucp_config_modify(config, "NET_DEVICES", options.networkDevice.c_str());
  if (taken != UCS_OK) {
    ucp_config_release(config);
    return ucxError(self, "take the setting of its transports", taken);
  }
  ucp_params_t parameters = {};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  parameters.features = UCP_FEATURE_TAG;
  parameters.estimated_num_eps = size_t(peers);
  ucs_status_t status = ucp_init(&parameters, config, &context);
  ucp_config_release(config);
  if (status != UCS_OK)
    return ucxError(self, "start", status);

  ucp_context_attr_t attributes = {};
  attributes.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
  if (status = ucp_context_query(context, &attributes); status != UCS_OK)
    return ucxError(self, "tell the size of a request", status);
  requestStride = (attributes.request_size + 63) / 64 * 64;
  requestMemory = static_cast<char *>(std::aligned_alloc(64, requestStride * (slots.size() + 1)));
  if (!requestMemory)
    return Status::error(ErrorKind::runFailed, "rank {}: no memory for {} requests", self, slots.size());

  ucp_worker_params_t workerParameters = {};
  workerParameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  workerParameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (status = ucp_worker_create(context, &workerParameters, &worker); status != UCS_OK) {
    worker = nullptr;
    return ucxError(self, "open a worker", status);
  }
  return Status::ok();
}

Result<std::string> UcxTransport::addressWith(uint32_t flags) {
  ucp_worker_attr_t attributes = {};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
  attributes.address_flags = flags;
  if (ucs_status_t status = ucp_worker_query(worker, &attributes); status != UCS_OK)
    return ucxError(self, "tell its address", status);
  std::string copy(reinterpret_cast<const char *>(attributes.address), attributes.address_length);
  ucp_worker_release_address(worker, attributes.address);
  return copy;
}

Result<std::string> UcxTransport::address() {
  Result<std::string> whole = addressWith(0);
  if (!whole)
    return whole;
  Result<std::string> network = options.spansHosts ? addressWith(UCP_WORKER_ADDRESS_FLAG_NET_ONLY) : std::string();
  if (!network)
    return network;
  return PeerAddress{options.hostId, std::move(*whole), std::move(*network)}.pack();
}

Status UcxTransport::connect(const std::vector<std::string> &addresses) {
  if (addresses.size() != size_t(peers))
    return Status::error(ErrorKind::runFailed, "rank {}: the exchange gave {} addresses, expected {}", self,
                         addresses.size(), peers);
  InsideUcx inside;
  for (size_t peer = 0; peer < addresses.size(); ++peer) {
    PeerAddress address;
    bool isOnThisHost = address.unpack(addresses[peer]) && address.hostId == options.hostId;
    if (!isOnThisHost && !options.spansHosts) {
      endpoints.push_back(nullptr);
      continue;
    }
    const std::string &bytes = isOnThisHost ? address.whole : address.network;
    if (bytes.empty())
      return Status::error(ErrorKind::runFailed, "rank {}: the address of rank {} is empty", self, peer);
    ucp_ep_params_t parameters = {};
    parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    parameters.address = reinterpret_cast<const ucp_address_t *>(bytes.data());
    ucp_ep_h endpoint = nullptr;
    if (ucs_status_t status = ucp_ep_create(worker, &parameters, &endpoint); status != UCS_OK)
      return Status::error(ErrorKind::runFailed, "rank {}: UCX could not connect to rank {}: {}; {}", self, peer,
                           ucs_status_string(status),
                           isOnThisHost ? "are both in one pid namespace?" : "can the two hosts reach each other?");
    endpoints.push_back(endpoint);
  }
  return Status::ok();
}

} // namespace

Result<std::unique_ptr<Transport>> makeUcxTransport(int64_t rank, int64_t numRanks, const AddressExchange &exchange,
                                                    const UcxOptions &options) {
  if (rank < 0 || rank >= numRanks || numRanks > maxRanks)
    return Status::error(ErrorKind::usage, "rank {} of {}: expected 0 <= rank < number of ranks <= {}", rank, numRanks,
                         maxRanks);
  auto transport = std::make_unique<UcxTransport>(rank, numRanks, options);
  if (options.sharedBytes > 0) {
    auto memory = HostMemory::join(rank, options.hostId, options.sharedBytes, exchange);
    if (!memory)
      return memory.status();
    transport->adopt(std::move(*memory));
  }
  DG_RETURN_IF_ERROR(transport->open());
  Result<std::string> mine = transport->address();
  if (!mine)
    return mine.status();
  Result<std::vector<std::string>> all = exchange(*mine);
  if (!all)
    return all.status();
  DG_RETURN_IF_ERROR(transport->connect(*all));
  // No one leaves before everyone has mapped everyone's memory.
  if (Result<std::vector<std::string>> met = exchange(""); !met)
    return met.status();
  return std::unique_ptr<Transport>(std::move(transport));
}

} // namespace dg
