// SPDX-License-Identifier: Apache-2.0
// Loaded before dgrun: a host whose clock jumps a day back or forth ten times a second (DG_TEST_CLOCK), or whose PMIx
// server never answers one of its calls (DG_TEST_PMIX=PMIx_Init or PMIx_Fence).
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

void addJump(time_t &seconds) {
  constexpr time_t day = 86400;
  constexpr long tenth = 100'000'000;
  timespec now = {};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  if (std::getenv("DG_TEST_CLOCK"))
    seconds += (now.tv_nsec / tenth % 3 - 1) * day;
}

template <typename... Args> int answer(const char *name, Args... args) {
  const char *silent = std::getenv("DG_TEST_PMIX");
  while (silent && std::strcmp(silent, name) == 0)
    pause();
  return reinterpret_cast<int (*)(Args...)>(dlsym(RTLD_NEXT, name))(args...);
}

} // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec *time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_REALTIME)
    addJump(time->tv_sec);
  return int(result);
}

time_t time(time_t *where) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (where)
    *where = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval *__restrict where, void *__restrict) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  where->tv_sec = now.tv_sec, where->tv_usec = now.tv_nsec / 1000;
  return 0;
}

int PMIx_Init(void *process, void *info, size_t number) { return answer("PMIx_Init", process, info, number); }
int PMIx_Fence(const void *processes, size_t number, const void *info, size_t numInfo) {
  return answer("PMIx_Fence", processes, number, info, numInfo);
}
}
