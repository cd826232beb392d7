// SPDX-License-Identifier: Apache-2.0
// Runs a command as a user would and keeps what it printed; a command that does not end is killed with its whole group.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace dg::test {

struct CommandResult {
  int code = -1; ///< exit code, or 128 + signal
  std::string out, error;
};

/// `watch` (may be empty) sees the process id and stdout so far, whenever more came.
inline CommandResult runCommand(const std::vector<std::string> &arguments,
                                const std::function<void(pid_t, const std::string &)> &watch = {},
                                std::chrono::seconds limit = std::chrono::seconds(60)) {
  int outPipe[2], errorPipe[2];
  CommandResult result;
  if (pipe(outPipe) != 0 || pipe(errorPipe) != 0)
    return result;
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    dup2(outPipe[1], 1);
    dup2(errorPipe[1], 2);
    for (int descriptor : {outPipe[0], outPipe[1], errorPipe[0], errorPipe[1]})
      close(descriptor);
    std::vector<char *> argv;
    for (const std::string &argument : arguments)
      argv.push_back(const_cast<char *>(argument.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(outPipe[1]);
  close(errorPipe[1]);
  pollfd streams[2] = {{outPipe[0], POLLIN, 0}, {errorPipe[0], POLLIN, 0}};
  auto deadline = std::chrono::steady_clock::now() + limit;
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (std::chrono::steady_clock::now() > deadline)
      kill(-child, SIGKILL);
    poll(streams, 2, 100);
    for (int i = 0; i < 2; ++i) {
      if (streams[i].fd < 0 || !(streams[i].revents & (POLLIN | POLLHUP)))
        continue;
      char buffer[65536];
      ssize_t count = read(streams[i].fd, buffer, sizeof buffer);
      if (count <= 0) {
        close(streams[i].fd);
        streams[i].fd = -1;
        continue;
      }
      (i == 0 ? result.out : result.error).append(buffer, size_t(count));
      if (i == 0 && watch)
        watch(child, result.out);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

} // namespace dg::test
