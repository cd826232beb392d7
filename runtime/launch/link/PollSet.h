// SPDX-License-Identifier: Apache-2.0
// What a launcher waits for, gathered anew in each turn of its loop: descriptors, and what to do when they are ready.
#pragma once

#include <chrono>
#include <functional>
#include <poll.h>
#include <vector>

namespace dg {

class PollSet {
public:
  /// The handler runs in wait(); it may close other descriptors of the set, whose handlers then have to cope.
  void add(int descriptor, short events, std::function<void()> handler) {
    entries.push_back({descriptor, events, 0});
    handlers.push_back(std::move(handler));
  }
  /// Waits until something is ready, or for that long, and runs the handlers of what is.
  void wait(std::chrono::milliseconds time) {
    if (poll(entries.data(), entries.size(), int(time.count())) <= 0)
      return;
    for (size_t i = 0; i < entries.size(); ++i)
      if (entries[i].revents != 0)
        handlers[i]();
  }

private:
  std::vector<pollfd> entries;
  std::vector<std::function<void()>> handlers;
};

} // namespace dg
