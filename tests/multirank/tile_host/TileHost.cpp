// SPDX-License-Identifier: Apache-2.0
// Loaded before a command (LD_PRELOAD) this makes the host one with AMX: /proc/cpuinfo has its flags, the kernel gives
// tiles to who asks, and their instructions are emulated. With DG_TEST_REFUSE_TILES the kernel refuses them.
#include "tests/unit/codegen/TileEmulator.h"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

template <typename Function> Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

bool isAsked = false; ///< before, an instruction of tiles ends the process as it would on hardware

FILE *openCpuInfo() {
  auto *open = next<FILE *(const char *, const char *)>("fopen64");
  FILE *real = open("/proc/cpuinfo", "r"), *changed = fdopen(memfd_create("cpuinfo", 0), "w+");
  if (!real || !changed)
    std::abort();
  char *line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, real) > 0) {
    std::string text = line;
    if (text.starts_with("flags"))
      text.insert(text.size() - 1, " amx_tile amx_bf16");
    std::fputs(text.c_str(), changed);
  }
  std::free(line);
  std::fclose(real);
  std::fflush(changed);
  if (std::fseek(changed, 0, SEEK_SET) != 0)
    std::abort();
  return changed;
}

} // namespace

extern "C" {

FILE *fopen64(const char *path, const char *mode) {
  if (std::strcmp(path, "/proc/cpuinfo") == 0)
    return openCpuInfo();
  return next<FILE *(const char *, const char *)>("fopen64")(path, mode);
}

/// UCX resets what it finds for SIGILL.
int sigaction(int signal, const struct sigaction *action, struct sigaction *previous) noexcept {
  if (isAsked && signal == SIGILL && action)
    return 0;
  return next<int(int, const struct sigaction *, struct sigaction *)>("sigaction")(signal, action, previous);
}

FILE *fopen(const char *path, const char *mode) { return fopen64(path, mode); }

long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long &argument : arguments)
    argument = va_arg(list, long);
  va_end(list);
  constexpr long requestPermission = 0x1023;
  if (number == SYS_arch_prctl && arguments[0] == requestPermission) {
    if (std::getenv("DG_TEST_REFUSE_TILES")) {
      errno = EPERM;
      return -1;
    }
    // Never given back: threads may still compute while the process ends.
    alignas(dg::test::TileEmulator) static std::byte emulator[sizeof(dg::test::TileEmulator)];
    if (!isAsked)
      new (emulator) dg::test::TileEmulator();
    isAsked = true;
    return 0;
  }
  return next<long(long, ...)>("syscall")(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                                          arguments[5]);
}

} // extern "C"
