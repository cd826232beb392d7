// SPDX-License-Identifier: Apache-2.0
// Proves that UCX ranks on one host open no network port and leave no shared memory behind.
#include "tests/conformance/Ranks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

using namespace dg;
using namespace dg::test;

namespace {

/// The inodes of this process's sockets that the kernel lists as TCP or UDP.
std::set<std::string> networkSockets() {
  std::set<std::string> mine, found;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    std::string target = std::filesystem::read_symlink(entry.path(), error);
    if (target.starts_with("socket:["))
      mine.insert(target.substr(8, target.size() - 9));
  }
  for (const char *table : {"tcp", "tcp6", "udp", "udp6", "raw", "raw6"}) {
    std::ifstream file(std::string("/proc/self/net/") + table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string word;
      for (int column = 0; column < 10; ++column)
        words >> word;
      if (mine.count(word))
        found.insert(std::string(table) + " " + line);
    }
  }
  return found;
}

std::set<std::string> sharedMemoryNames() {
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator("/dev/shm"))
    names.insert(entry.path().filename());
  std::ifstream segments("/proc/sysvipc/shm");
  for (std::string line; std::getline(segments, line);)
    names.insert("sysv " + line);
  return names;
}

TEST(Footprint, noPortAndNoNamedSegmentWhileRunning) {
  EXPECT_EQ("", runRanks(Kind::ucxProcesses, 3, [](Transport &transport) -> std::string {
              std::vector<char> data(1 << 20);
              for (size_t bytes : {size_t(8), data.size()})
                for (int64_t peer = 0; peer < 3; ++peer) {
                  auto receive = transport.startReceive(peer, bytes, data.data(), bytes);
                  auto send = transport.startSend(peer, bytes, data.data(), bytes);
                  if (auto text = await(transport, receive) + await(transport, send); !text.empty())
                    return text;
                }
              auto sockets = networkSockets();
              return sockets.empty() ? "" : "a network socket is open: " + *sockets.begin();
            }));
}

TEST(Footprint, nothingIsLeft) {
  auto before = sharedMemoryNames();
  ASSERT_EQ("", runRanks(Kind::ucxProcesses, 2, [](Transport &) { return std::string(); }));
  for (const std::string &name : sharedMemoryNames())
    if (name.starts_with("ucx_"))
      EXPECT_TRUE(before.count(name)) << name;
}

} // namespace
