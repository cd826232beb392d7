// SPDX-License-Identifier: Apache-2.0
// Which call fails: counted over all processes of a command, as its environment says (fail_call.c).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HANGS = -1 }; // an error that is none: the call never comes back

static uint64_t *count;
static uint64_t failing;
static int error, logFile = -1;

static void beginFaults(void) {
  const char *state = getenv("DG_FAULT_STATE"), *at = getenv("DG_FAULT_AT"), *code = getenv("DG_FAULT_ERROR"),
             *log = getenv("DG_FAULT_LOG");
  int file = state ? (int)syscall(SYS_openat, AT_FDCWD, state, O_RDWR | O_CLOEXEC, 0) : -1;
  void *memory =
      file < 0 ? MAP_FAILED
               : (void *)syscall(SYS_mmap, NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)0);
  if (memory == MAP_FAILED)
    return;
  syscall(SYS_close, file);
  failing = at ? strtoull(at, NULL, 10) : 0;
  error = code ? atoi(code) : 0;
  if (log)
    logFile = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  count = memory;
}

/// Whether this call is the one; errno is then set.
static bool fails(const char *name) {
  if (!count)
    return false;
  uint64_t number = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
  if (logFile >= 0) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s\n", name);
    syscall(SYS_write, logFile, line, length);
  }
  if (number != failing)
    return false;
  while (error == HANGS)
    pause();
  errno = error;
  return true;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
