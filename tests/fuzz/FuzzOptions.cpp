// SPDX-License-Identifier: Apache-2.0
// How the sanitizers run under a fuzzer, so that a command line needs no environment.

/// LLVM's allocator poisons memory in its headers, and the shared library, which is not instrumented, does not unpoison
/// it.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0"; }
extern "C" const char *__ubsan_default_options() { return "print_stacktrace=1"; }
