// SPDX-License-Identifier: Apache-2.0
// Requests to `dgviz --serve`.
#include "tests/fuzz/FuzzTarget.h"
#include "tools/dgviz/HttpAnswer.h"

#include <algorithm>

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  const std::string page = "<!doctype html>the plan", path = "/0123456789abcdef/";
  const std::string request(reinterpret_cast<const char *>(data), size);
  const std::string answer = viz::answerTo(request, page, 8080, path);
  size_t end = answer.find("\r\n\r\n");
  fuzz::check(answer.starts_with("HTTP/1.1 ") && end != std::string::npos, "an answer has a status and a header");
  const std::string body = answer.substr(end + 4), header = answer.substr(0, end);
  fuzz::check(header.find("\r\nContent-Length: " + std::to_string(body.size()) + "\r\n") != std::string::npos,
              "an answer has the length that it says");
  const bool hasPage = body.find("the plan") != std::string::npos;
  fuzz::check(hasPage == header.starts_with("HTTP/1.1 200 "), "the page comes with 200, and nothing else does");
  std::string head = request.substr(0, request.find("\r\n\r\n"));
  std::transform(head.begin(), head.end(), head.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  const bool namesHost =
      head.find("\r\nhost:") != std::string::npos &&
      (head.find("127.0.0.1:8080") != std::string::npos || head.find("localhost:8080") != std::string::npos);
  fuzz::check(!hasPage || (request.starts_with("GET " + path + " ") && namesHost),
              "who does not know path and host in the header does not get the page");
  return 0;
}
