// SPDX-License-Identifier: Apache-2.0
// Preloaded into a command and all of its processes: the n-th call of the C library on files below one folder fails,
// once.
//
//   DG_FAULT_FOLDER  the folder
//   DG_FAULT_STATE   a file of 8 bytes, 0 at first: how many such calls there were, over all processes
//   DG_FAULT_AT      which of them fails, from 1; 0: none
//   DG_FAULT_ERROR   the number of the error; 0: half of the bytes are read or written, nothing else fails; -1: the
//   call
//                    never comes back
//   DG_FAULT_LOG     where the name of each call is added, or none
#define _GNU_SOURCE
#include "tests/faults/FaultPoint.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

enum { mostFiles = 4096 };
static volatile bool isOurs[mostFiles]; // descriptors below the folder
static const char *folder;

__attribute__((constructor)) static void begin(void) {
  folder = getenv("DG_FAULT_FOLDER");
  if (folder)
    beginFaults();
}

static bool isBelow(int at, const char *path) {
  if (!count || !path)
    return false;
  if (path[0] != '/' && at >= 0)
    return at < mostFiles && isOurs[at];
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static bool isFile(int file) { return count && file >= 0 && file < mostFiles && isOurs[file]; }

static int keep(int file, bool isIt) {
  if (file >= 0 && file < mostFiles)
    isOurs[file] = isIt;
  return file;
}

#define MODE                                                                                                           \
  va_list list;                                                                                                        \
  va_start(list, flags);                                                                                               \
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;                                              \
  va_end(list)

static int openIt(const char *name, int at, const char *path, int flags, mode_t mode) {
  bool isIt = isBelow(at, path);
  if (isIt && fails(name) && error)
    return -1;
  return keep((int)syscall(SYS_openat, at, path, flags, mode), isIt);
}
int open(const char *path, int flags, ...) {
  MODE;
  return openIt("open", AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  MODE;
  return openIt("open", AT_FDCWD, path, flags, mode);
}
int openat(int at, const char *path, int flags, ...) {
  MODE;
  return openIt("openat", at, path, flags, mode);
}
int openat64(int at, const char *path, int flags, ...) {
  MODE;
  return openIt("openat", at, path, flags, mode);
}
int __open_2(const char *path, int flags) { return openIt("open", AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return openIt("open", AT_FDCWD, path, flags, 0); }
int __openat_2(int at, const char *path, int flags) { return openIt("openat", at, path, flags, 0); }

FILE *fopen(const char *path, const char *mode) {
  bool isIt = isBelow(AT_FDCWD, path);
  if (isIt && fails("fopen") && error)
    return NULL;
  FILE *file = REAL(fopen)(path, mode);
  if (file)
    keep(fileno(file), isIt);
  return file;
}
FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }
DIR *opendir(const char *path) {
  return isBelow(AT_FDCWD, path) && fails("opendir") && error ? NULL : REAL(opendir)(path);
}

int mkstemp(char *path) {
  bool isIt = isBelow(AT_FDCWD, path);
  return isIt && fails("mkstemp") && error ? -1 : keep(REAL(mkstemp)(path), isIt);
}

int close(int file) {
  bool fail = isFile(file) && fails("close") && error;
  keep(file, false);
  int code = (int)syscall(SYS_close, file);
  if (fail)
    errno = error;
  return fail ? -1 : code;
}
int fclose(FILE *file) {
  bool fail = isFile(fileno(file)) && fails("fclose") && error;
  keep(fileno(file), false);
  int code = REAL(fclose)(file);
  if (fail)
    errno = error;
  return fail ? EOF : code;
}

#define ON_FILE(type, name, arguments, values)                                                                         \
  type name arguments { return isFile(file) && fails(#name) && error ? (type) - 1 : REAL(name) values; }
ON_FILE(int, fsync, (int file), (file))
ON_FILE(int, fdatasync, (int file), (file))
ON_FILE(int, ftruncate, (int file, off_t size), (file, size))
ON_FILE(int, fchmod, (int file, mode_t mode), (file, mode))
ON_FILE(int, fstat, (int file, struct stat *to), (file, to))
ON_FILE(off_t, lseek, (int file, off_t to, int from), (file, to, from))

int posix_fallocate(int file, off_t from, off_t bytes) {
  return isFile(file) && fails("posix_fallocate") && error ? error : REAL(posix_fallocate)(file, from, bytes);
}
int posix_fallocate64(int file, off_t from, off_t bytes) { return posix_fallocate(file, from, bytes); }
void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t from) {
  if (isFile(file) && fails("mmap") && error)
    return MAP_FAILED;
  return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, from);
}

/// 0 bytes have no half: then, and of one byte, the call goes on as it is.
#define ON_BYTES(name, pointer, offsetArgument, ...)                                                                   \
  ssize_t name(int file, pointer bytes, size_t size offsetArgument) {                                                  \
    if (isFile(file) && fails(#name)) {                                                                                \
      if (error)                                                                                                       \
        return -1;                                                                                                     \
      size = size > 1 ? size / 2 : size;                                                                               \
    }                                                                                                                  \
    return syscall(__VA_ARGS__);                                                                                       \
  }
#define AND_OFFSET , off_t offset
ON_BYTES(write, const void *, , SYS_write, file, bytes, size)
ON_BYTES(read, void *, , SYS_read, file, bytes, size)
ON_BYTES(pwrite, const void *, AND_OFFSET, SYS_pwrite64, file, bytes, size, offset)
ON_BYTES(pread, void *, AND_OFFSET, SYS_pread64, file, bytes, size, offset)
ON_BYTES(pwrite64, const void *, AND_OFFSET, SYS_pwrite64, file, bytes, size, offset)
ON_BYTES(pread64, void *, AND_OFFSET, SYS_pread64, file, bytes, size, offset)
size_t fwrite(const void *bytes, size_t size, size_t number, FILE *file) {
  if (isFile(fileno(file)) && fails("fwrite"))
    return error ? 0 : REAL(fwrite)(bytes, size, number > 1 ? number / 2 : number, file);
  return REAL(fwrite)(bytes, size, number, file);
}
int fflush(FILE *file) { return file && isFile(fileno(file)) && fails("fflush") && error ? EOF : REAL(fflush)(file); }

#define ON_PATH(name, at, path, arguments, values)                                                                     \
  int name arguments { return isBelow(at, path) && fails(#name) && error ? -1 : REAL(name) values; }
ON_PATH(mkdir, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
ON_PATH(unlink, AT_FDCWD, path, (const char *path), (path))
ON_PATH(rmdir, AT_FDCWD, path, (const char *path), (path))
ON_PATH(remove, AT_FDCWD, path, (const char *path), (path))
ON_PATH(unlinkat, at, path, (int at, const char *path, int flags), (at, path, flags))
ON_PATH(rename, AT_FDCWD, path, (const char *path, const char *to), (path, to))
ON_PATH(renameat2, AT_FDCWD, path, (int at, const char *path, int other, const char *to, unsigned flags),
        (at, path, other, to, flags))
ON_PATH(link, AT_FDCWD, path, (const char *path, const char *to), (path, to))
ON_PATH(symlink, AT_FDCWD, path, (const char *target, const char *path), (target, path))
ON_PATH(stat, AT_FDCWD, path, (const char *path, struct stat *to), (path, to))
ON_PATH(lstat, AT_FDCWD, path, (const char *path, struct stat *to), (path, to))
ON_PATH(statvfs, AT_FDCWD, path, (const char *path, void *to), (path, to))
