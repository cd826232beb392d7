// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how the runtime and the partitioner report failure. No exception crosses a folder. The first
// function that knows the cause writes the message; callers pass it up silently.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

namespace dg {

/// What went wrong, coarse enough to choose an exit code from.
enum class ErrorKind {
  usage,     ///< flags that contradict each other or the job: exit 2
  badInput,  ///< a file that is missing, damaged or not what it should be: exit 65
  runFailed, ///< the run itself failed, for another reason than those below: exit 1
  lost,      ///< a rank, a node or a link was lost, or never came: exit 69
  defect,    ///< the job itself is wrong, and would fail again (a loss that is not finite, a crash): exit 70
  unwritten, ///< what the run makes cannot be written (disk full, quota, I/O error): exit 74
};

/// The number of Status::exitCode, and back; runFailed for any other number.
int exitCodeOf(ErrorKind kind);
ErrorKind kindOfExitCode(int code);

/// Success, or a kind and one message (found, expected, where, what to do). Empty on success; cheap to move.
class [[nodiscard]] Status {
public:
  static Status ok() { return Status(); }
  template <typename... Args> static Status error(ErrorKind kind, fmt::format_string<Args...> format, Args &&...args) {
    return Status(kind, fmt::format(format, std::forward<Args>(args)...));
  }

  bool isOk() const { return !failure.has_value(); }
  explicit operator bool() const { return isOk(); }
  /// Only on failure.
  ErrorKind kind() const { return failure->first; }
  /// Empty on success.
  const std::string &message() const;
  /// 0 on success. The numbers of sysexits.h; a rule that starts jobs again relies on them.
  int exitCode() const;

private:
  Status() = default;
  Status(ErrorKind kind, std::string text) : failure(std::in_place, kind, std::move(text)) {}
  std::optional<std::pair<ErrorKind, std::string>> failure;
};

/// A value, or the Status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : stored(std::move(value)), state(Status::ok()) {}
  Result(Status status) : state(std::move(status)) {}

  bool isOk() const { return state.isOk(); }
  explicit operator bool() const { return isOk(); }
  const Status &status() const { return state; }
  T &operator*() { return *stored; }
  const T &operator*() const { return *stored; }
  T *operator->() { return &*stored; }
  const T *operator->() const { return &*stored; }

private:
  std::optional<T> stored;
  Status state;
};

/// Returns from the calling function when the expression is a failed Status.
#define DG_RETURN_IF_ERROR(expression)                                                                                 \
  do {                                                                                                                 \
    if (::dg::Status dgStatus = (expression); !dgStatus.isOk())                                                        \
      return dgStatus;                                                                                                 \
  } while (false)

} // namespace dg
