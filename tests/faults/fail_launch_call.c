// SPDX-License-Identifier: Apache-2.0
// Preloaded into a command and all of its processes: the n-th call of the C library by which processes are made and
// meet (sockets, shared memory, pipes, forks, threads) fails, once. Calls of libraries, as UCX and OpenSSL, count too.
// Environment: as fail_call.c has it, without a folder.
#define _GNU_SOURCE
#include "tests/faults/FaultPoint.h"

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

__attribute__((constructor)) static void begin(void) { beginFaults(); }

#define ON_CALL(type, name, arguments, values)                                                                         \
  type name arguments { return fails(#name) && error ? (type) - 1 : REAL(name) values; }
ON_CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
ON_CALL(int, socketpair, (int domain, int type, int protocol, int files[2]), (domain, type, protocol, files))
ON_CALL(int, bind, (int file, const struct sockaddr *to, socklen_t size), (file, to, size))
ON_CALL(int, listen, (int file, int most), (file, most))
ON_CALL(int, connect, (int file, const struct sockaddr *to, socklen_t size), (file, to, size))
ON_CALL(int, accept4, (int file, struct sockaddr *from, socklen_t *size, int flags), (file, from, size, flags))
ON_CALL(int, accept, (int file, struct sockaddr *from, socklen_t *size), (file, from, size))
ON_CALL(int, getsockname, (int file, struct sockaddr *name, socklen_t *size), (file, name, size))
ON_CALL(int, getpeername, (int file, struct sockaddr *name, socklen_t *size), (file, name, size))
ON_CALL(int, getsockopt, (int file, int level, int name, void *value, socklen_t *size),
        (file, level, name, value, size))
ON_CALL(int, setsockopt, (int file, int level, int name, const void *value, socklen_t size),
        (file, level, name, value, size))
ON_CALL(int, pipe2, (int files[2], int flags), (files, flags))
ON_CALL(int, pipe, (int files[2]), (files))
ON_CALL(pid_t, fork, (void), ())
ON_CALL(int, memfd_create, (const char *name, unsigned flags), (name, flags))
ON_CALL(int, shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))
ON_CALL(int, shmget, (key_t key, size_t size, int flags), (key, size, flags))
ON_CALL(void *, shmat, (int id, const void *at, int flags), (id, at, flags))
ON_CALL(int, ftruncate, (int file, off_t size), (file, size))
ON_CALL(int, epoll_create1, (int flags), (flags))
ON_CALL(int, epoll_create, (int size), (size))
ON_CALL(int, epoll_ctl, (int file, int what, int of, struct epoll_event *event), (file, what, of, event))
ON_CALL(int, eventfd, (unsigned value, int flags), (value, flags))
ON_CALL(int, signalfd, (int file, const sigset_t *set, int flags), (file, set, flags))
ON_CALL(int, timerfd_create, (clockid_t clock, int flags), (clock, flags))
ON_CALL(int, sched_setaffinity, (pid_t pid, size_t size, const cpu_set_t *set), (pid, size, set))
ON_CALL(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t *set), (pid, size, set))
ON_CALL(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  return fails("getaddrinfo") && error ? EAI_AGAIN : REAL(getaddrinfo)(node, service, hints, found);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
  return fails("pthread_create") && error ? error : REAL(pthread_create)(thread, how, run, with);
}
int posix_fallocate(int file, off_t from, off_t bytes) {
  return fails("posix_fallocate") && error ? error : REAL(posix_fallocate)(file, from, bytes);
}

/// What ranks share: anonymous, or of a file. Allocators and the loader map private memory all the time.
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from) {
  if ((flags & MAP_SHARED) && fails("mmap") && error)
    return MAP_FAILED;
  return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, from);
}

/// Of what a process does as long as it runs, its first calls.
static bool failsAtFirst(const char *name, uint64_t *made) {
  enum { most = 12 };
  return __atomic_fetch_add(made, 1, __ATOMIC_RELAXED) < most && fails(name);
}

/// One byte of a message that has more: what came short is no failure.
static size_t cut(size_t size) { return size > 1 ? 1 : size; }

ssize_t send(int file, const void *bytes, size_t size, int flags) {
  static uint64_t made;
  if (failsAtFirst("send", &made)) {
    if (error)
      return -1;
    size = cut(size);
  }
  return REAL(send)(file, bytes, size, flags);
}
ssize_t recv(int file, void *bytes, size_t size, int flags) {
  static uint64_t made;
  if (failsAtFirst("recv", &made)) {
    if (error)
      return -1;
    size = cut(size);
  }
  return REAL(recv)(file, bytes, size, flags);
}
ON_CALL(ssize_t, sendmsg, (int file, const struct msghdr *message, int flags), (file, message, flags))
ON_CALL(ssize_t, recvmsg, (int file, struct msghdr *message, int flags), (file, message, flags))
int poll(struct pollfd *files, nfds_t number, int milliseconds) {
  static uint64_t made;
  return failsAtFirst("poll", &made) && error ? -1 : REAL(poll)(files, number, milliseconds);
}
