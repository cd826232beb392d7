// SPDX-License-Identifier: Apache-2.0
// What dgc and dgrun say about their flags: --help in lines that a terminal shows whole, and of a wrong flag one line
// with the tool's name, what was found and what was expected. CLI11's own range checks print the largest double in full
// and let "1e3", 10^30 and NaN through.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dg::tools {

/// A whole number from `least` to `most`, digits only.
inline CLI::Validator wholeNumber(int64_t least = 1, int64_t most = int64_t(1) << 53) {
  CLI::Validator check(
      [=](std::string &text) {
        int64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool isGood = error == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
        return isGood ? std::string()
                      : "found '" + text + "', expected a whole number from " + std::to_string(least) + " to " +
                            std::to_string(most);
      },
      "");
  return check;
}

/// A finite number of at least 0, or above 0.
inline CLI::Validator finiteNumber(bool isZeroGood) {
  CLI::Validator check(
      [=](std::string &text) {
        char *end = nullptr;
        double value = std::strtod(text.c_str(), &end);
        bool isGood = !text.empty() && *end == '\0' && std::isfinite(value) && (isZeroGood ? value >= 0 : value > 0);
        return isGood ? std::string()
                      : "found '" + text + "', expected a number " + (isZeroGood ? "of at least 0" : "above 0");
      },
      "");
  return check;
}

/// Breaks the descriptions of flags into lines, wherever their source has line breaks; CLI11 prints them as they are
/// written.
class HelpFormatter : public CLI::Formatter {
  std::string make_option_desc(const CLI::Option *option) const override {
    constexpr size_t mostColumns = 100; // beside the names of flags
    std::string text = option->get_description();
    std::replace(text.begin(), text.end(), '\n', ' ');
    size_t columns = 0, space = std::string::npos;
    for (size_t i = 0; i < text.size(); ++i) {
      columns += (text[i] & 0xC0) != 0x80; // what goes on with a character of UTF-8 has no column
      if (text[i] == ' ')
        space = i;
      if (columns > mostColumns && space != std::string::npos) {
        text[space] = '\n';
        columns = i - space, space = std::string::npos;
      }
    }
    return text;
  }
};

/// The arguments, with the first word said where one of the flags has none of these words after it.
inline std::vector<std::string> giveDefaults(std::vector<std::string> arguments, const std::vector<std::string> &flags,
                                             const std::vector<std::string> &words) {
  auto isIn = [](const std::vector<std::string> &all, const std::string &text) {
    return std::find(all.begin(), all.end(), text) != all.end();
  };
  for (size_t i = 0; i < arguments.size(); ++i)
    if (isIn(flags, arguments[i]) && (i + 1 == arguments.size() || !isIn(words, arguments[i + 1])))
      arguments[i] += "=" + words.front();
  return arguments;
}

/// Parses the command line. Nothing, or the exit code: 0 after --help and --version, 2 after a usage error.
inline std::optional<int> parseCommandLine(CLI::App &app, std::vector<std::string> arguments, const char *prefix) {
  app.formatter(std::make_shared<HelpFormatter>());
  try {
    std::reverse(arguments.begin(), arguments.end()); // as CLI11 takes them
    app.parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    std::fprintf(stderr, "%s%s (%s --help lists the flags)\n", prefix, error.what(), app.get_name().c_str());
    return 2;
  }
}

} // namespace dg::tools
