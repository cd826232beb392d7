// SPDX-License-Identifier: Apache-2.0
// One line of --json: numbers print as short as they read back, what JSON cannot say (NaN, infinity) is null.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

namespace dg::session {

class JsonLine {
public:
  explicit JsonLine(std::string_view event) { add("event", event); }

  JsonLine &add(std::string_view key, std::string_view text) {
    begin(key);
    line += quoted(text);
    return *this;
  }
  JsonLine &add(std::string_view key, std::floating_point auto value) {
    begin(key);
    line += std::isfinite(value) ? fmt::format("{}", value) : "null";
    return *this;
  }
  JsonLine &add(std::string_view key, std::integral auto value) {
    begin(key);
    line += fmt::format("{}", value);
    return *this;
  }
  /// `json` is JSON already.
  JsonLine &addRaw(std::string_view key, std::string_view json) {
    begin(key);
    line += json;
    return *this;
  }
  /// With its newline. `origin`: what originOf gives, after which the line has the time too.
  std::string finish(std::string_view origin = "") && {
    if (!origin.empty())
      line += fmt::format(",\"time\":{:.3f}{}", secondsNow(), origin);
    return std::move(line) + "}\n";
  }
  /// The part of a line that says where it is from: `,"host":"a","job":"4711"`.
  static std::string originOf(std::string_view host, std::string_view job) {
    return fmt::format(",\"host\":{},\"job\":{}", quoted(host), quoted(job));
  }

  static std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : text) {
      if (c == '"' || c == '\\')
        (out += '\\') += c;
      else if (static_cast<unsigned char>(c) < 0x20)
        out += fmt::format("\\u{:04x}", int(c));
      else
        out += c;
    }
    return out + "\"";
  }

private:
  /// Since 1970.
  static double secondsNow() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  void begin(std::string_view key) {
    line += line.empty() ? '{' : ',';
    line += quoted(key) + ":";
  }
  std::string line;
};

} // namespace dg::session
