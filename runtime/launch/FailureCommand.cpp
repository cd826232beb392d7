// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/FailureCommand.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace dg {

FailureCommand::~FailureCommand() {
  if (pid == 0)
    return;
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

void FailureCommand::start(const std::vector<std::pair<std::string, std::string>> &variables) {
  if (command.empty())
    return;
  look();
  if (pid != 0)
    return say("--on-failure: the command still runs for the failure before; it is not told of this one");
  std::vector<std::string> texts;
  for (char **entry = environ; *entry; ++entry)
    if (!std::string_view(*entry).starts_with("DG_SECRET"))
      texts.emplace_back(*entry);
  for (const auto &[name, value] : variables)
    texts.push_back(name + "=" + value);
  std::vector<char *> environment;
  for (std::string &text : texts)
    environment.push_back(text.data());
  environment.push_back(nullptr);
  std::string shell = "sh", flag = "-c", text = command;
  char *const arguments[] = {shell.data(), flag.data(), text.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO); // stdout is for --json
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int code = posix_spawn(&pid, "/bin/sh", &files, &attributes, arguments, environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (code != 0) {
    pid = 0;
    say(fmt::format("--on-failure: the command cannot be started: {}", std::strerror(code)));
  }
}

void FailureCommand::look() {
  int status = 0;
  if (pid == 0 || ::waitpid(pid, &status, WNOHANG) != pid)
    return;
  pid = 0;
  if (WIFSIGNALED(status))
    say(fmt::format("--on-failure: the command was killed by signal {}", WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    say(fmt::format("--on-failure: the command ended with exit code {}", WEXITSTATUS(status)));
}

void FailureCommand::finish(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (look(); pid != 0 && std::chrono::steady_clock::now() < end; look())
    ::usleep(5000);
  if (pid == 0)
    return;
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  pid = 0;
  say(fmt::format("--on-failure: the command was killed, as it had not ended {} s after the job", time.count() / 1000));
}

} // namespace dg
