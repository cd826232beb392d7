// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/HttpAnswer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <strings.h>

namespace dg::viz {

/// Empty if there is none before the body.
static std::string headerOf(const std::string &request, std::string_view name) {
  const std::string_view head = std::string_view(request).substr(0, request.find("\r\n\r\n"));
  for (size_t line = head.find("\r\n"); line != head.npos; line = head.find("\r\n", line + 2)) {
    std::string_view rest = head.substr(line + 2);
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the size is given
    if (rest.size() <= name.size() || strncasecmp(rest.data(), name.data(), name.size()) != 0 ||
        rest[name.size()] != ':')
      continue;
    rest = rest.substr(name.size() + 1);
    rest = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return std::string(rest);
  }
  return "";
}

std::string answerTo(const std::string &request, const std::string &page, uint16_t port, const std::string &path) {
  auto answer = [](const char *status, std::string_view body, const char *type) {
    return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n"
                       "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
                       "Cross-Origin-Resource-Policy: same-origin\r\n\r\n{}",
                       status, type, body.size(), body);
  };
  std::string host = headerOf(request, "Host");
  if (host != fmt::format("127.0.0.1:{}", port) && host != fmt::format("localhost:{}", port))
    return answer("403 Forbidden", "This page is for 127.0.0.1 only.\n", "text/plain");
  if (request.rfind("GET " + path + " ", 0) == 0)
    return answer("200 OK", page, "text/html");
  if (request.rfind("GET ", 0) == 0)
    return answer("404 Not Found", "There is only the page at the address that dgviz printed.\n", "text/plain");
  return answer("405 Method Not Allowed", "Only GET is answered.\n", "text/plain");
}

} // namespace dg::viz
