// SPDX-License-Identifier: Apache-2.0
// One answer of a server, by libcurl: what it said, and its bytes into a file.
#pragma once

#include "runtime/data/remote/Request.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace dg::data {

struct TransferLimits {
  std::chrono::milliseconds silence{30'000}; ///< without a byte
  std::function<bool()> isStopped;           ///< asked now and then; may be empty
};

/// How a transfer ended.
struct Answer {
  int64_t code = 0;             ///< of HTTP; 0: none came
  std::string identity;         ///< ETag, else Last-Modified, else empty
  std::optional<uint64_t> from; ///< of a part of a file, where it begins
  uint64_t received = 0;        ///< bytes that were written
  std::optional<uint64_t> size; ///< of the whole file, where the server said
  std::string failure;          ///< why it ended too early; empty: it did not
  bool isHopeless = false;      ///< another try would fail as this one: a certificate, a disk
};

/// Asks for a file from byte `from` on, if it is still `identity` (which may be empty), and writes what comes at that
/// place of `file`; of an answer that is the whole file, at its beginning. Follows at most 5 redirects, none from https
/// to http. With `unless`, a file that is still the same is answered 304 without its bytes. Any thread.
Answer transfer(const Request &request, uint64_t from, const std::string &identity, const std::string &unless, int file,
                const TransferLimits &limits);

/// To be called before there are several threads. Fails (usage) where libcurl was left out of the build, or is not on
/// this machine.
Status prepareTransfers();

} // namespace dg::data
