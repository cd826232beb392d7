// SPDX-License-Identifier: Apache-2.0
// --on-failure: a command of the operator's that is told of every failure, beside the job and never in its way.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace dg {

/// One command at a time, in a process group of its own. One thread.
class FailureCommand {
public:
  /// `say` tells what becomes of the command where that is not good. An empty command is never run.
  FailureCommand(std::string command, std::function<void(const std::string &)> say)
      : command(std::move(command)), say(std::move(say)) {}
  /// Kills what still runs.
  ~FailureCommand();
  FailureCommand(const FailureCommand &) = delete;

  /// Starts it with these variables in its environment, which has no secret of the job. What it prints goes to stderr.
  /// While it runs for an earlier failure this one is left out, and that is told.
  void start(const std::vector<std::pair<std::string, std::string>> &variables);
  /// To be called now and then: tells that it failed.
  void look();
  /// Waits for its end; then kills it.
  void finish(std::chrono::milliseconds time);

private:
  const std::string command;
  const std::function<void(const std::string &)> say;
  pid_t pid = 0; ///< 0: none runs
};

} // namespace dg
