// SPDX-License-Identifier: Apache-2.0
// Fork, wait and read for the launch tests.
#include "tests/unit/launch/LauncherProcess.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dg::test {
namespace {

template <typename Condition> bool awaitCondition(std::chrono::milliseconds time, Condition condition) {
  Deadline limit = deadlineIn(time);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit)
      return false;
    sched_yield();
  }
  return true;
}

std::string contentsOf(int file) {
  std::string text(size_t(lseek(file, 0, SEEK_END)), '\0');
  text.resize(size_t(std::max<ssize_t>(pread(file, text.data(), text.size(), 0), 0)));
  return text;
}

} // namespace

LauncherProcess::LauncherProcess() {
  memory = new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared{};
  outputFile = memfd_create("output", 0);
  errorFile = memfd_create("errors", 0);
}

LauncherProcess::~LauncherProcess() {
  if (launcher > 0) {
    kill(launcher, SIGKILL);
    waitpid(launcher, nullptr, 0);
  }
  close(outputFile);
  close(errorFile);
  munmap(memory, sizeof(Shared));
}

void LauncherProcess::kill(pid_t pid, int signal) { ::kill(pid, signal); }

void LauncherProcess::start(LaunchOptions options, const RankMain &rankMain) {
  launcher = fork();
  if (launcher != 0)
    return;
  dup2(outputFile, STDOUT_FILENO);
  dup2(errorFile, STDERR_FILENO);
  if (prepare)
    prepare();
  int code = launchLocal(options, [&](RankContext &context) {
    memory->pids[context.rank()] = getpid();
    // A rank that fails at once must not stop another that has not said who it is.
    awaitCondition(std::chrono::seconds(30), [&] {
      return std::all_of(memory->pids, memory->pids + context.numRanks(),
                         [](const auto &pid) { return pid.load() != 0; });
    });
    return rankMain(context);
  });
  std::fflush(nullptr);
  _exit(code);
}

bool LauncherProcess::awaitReady(int count) {
  return awaitCondition(std::chrono::seconds(30), [&] { return memory->numReady.load() >= count; });
}

int LauncherProcess::finish() {
  int status = 0;
  bool isOver =
      awaitCondition(std::chrono::seconds(30), [&] { return waitpid(launcher, &status, WNOHANG) == launcher; });
  output = contentsOf(outputFile);
  errors = contentsOf(errorFile);
  if (!isOver)
    return -1;
  launcher = -1;
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool LauncherProcess::areRanksGone(int64_t numRanks) {
  return awaitCondition(std::chrono::seconds(10), [&] {
    for (int64_t rank = 0; rank < numRanks; ++rank)
      if (pid_t pid = memory->pids[rank]; pid != 0 && ::kill(pid, 0) == 0)
        return false;
    return true;
  });
}

std::set<std::string> sharedMemoryNames() {
  std::set<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator("/dev/shm"))
    names.insert(entry.path().filename());
  std::ifstream segments("/proc/sysvipc/shm");
  for (std::string key, id; segments >> key >> id; std::getline(segments, key))
    names.insert("sysv " + id);
  return names;
}

std::set<std::string> newSharedMemory(const std::set<std::string> &before) {
  std::set<std::string> added;
  awaitCondition(std::chrono::seconds(5), [&] {
    added = sharedMemoryNames();
    for (const std::string &name : before)
      added.erase(name);
    return added.empty();
  });
  return added;
}

void hang() {
  while (true)
    pause();
}

} // namespace dg::test
