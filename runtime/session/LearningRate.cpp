// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/LearningRate.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <numbers>
#include <optional>

namespace dg::session {

/// "a=1,b=2" → numbers by name; nothing if malformed.
static std::optional<std::map<std::string, double>> parseSettings(const std::string &text) {
  std::map<std::string, double> settings;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, end - begin);
    size_t equals = item.find('=');
    if (equals == std::string::npos || equals + 1 == item.size())
      return std::nullopt;
    char *stop = nullptr;
    double value = std::strtod(item.c_str() + equals + 1, &stop);
    if (*stop != '\0' || !std::isfinite(value) || !settings.emplace(item.substr(0, equals), value).second)
      return std::nullopt;
    begin = end + 1;
  }
  return settings;
}

Result<LearningRateSchedule> LearningRateSchedule::parse(const std::string &text) {
  size_t colon = text.find(':');
  std::string name = text.substr(0, colon);
  auto settings = parseSettings(colon == std::string::npos ? "" : text.substr(colon + 1));
  LearningRateSchedule schedule;
  auto takeEpochs = [&](const char *key) {
    auto found = settings->find(key);
    if (found == settings->end() || found->second < 1 || found->second != std::floor(found->second) ||
        found->second > 1e9)
      return false;
    schedule.epochs = int64_t(found->second);
    settings->erase(found);
    return true;
  };
  bool good = settings.has_value();
  if (good && name == "step") {
    schedule.kind = Kind::step;
    good = takeEpochs("every");
    auto gamma = settings->find("gamma");
    schedule.gamma = gamma == settings->end() ? 0.1 : gamma->second;
    settings->erase("gamma");
  } else if (good && name == "cosine") {
    schedule.kind = Kind::cosine;
    good = takeEpochs("epochs");
  } else {
    good = good && name == "constant";
  }
  if (!good || !settings->empty())
    return Status::error(
        ErrorKind::usage,
        "--lr-schedule '{}': expected constant, step:every=EPOCHS,gamma=FACTOR or cosine:epochs=EPOCHS", text);
  return schedule;
}

double LearningRateSchedule::factorOf(int64_t epoch) const {
  switch (kind) {
  case Kind::constant:
    return 1;
  case Kind::step:
    return std::pow(gamma, std::floor(double(epoch) / double(epochs)));
  case Kind::cosine:
    return (1 + std::cos(std::numbers::pi * double(epoch) / double(epochs))) / 2;
  }
  return 1;
}

std::string LearningRateSchedule::describe() const {
  switch (kind) {
  case Kind::constant:
    break;
  case Kind::step:
    return fmt::format("step:every={},gamma={}", epochs, gamma);
  case Kind::cosine:
    return fmt::format("cosine:epochs={}", epochs);
  }
  return "constant";
}

} // namespace dg::session
