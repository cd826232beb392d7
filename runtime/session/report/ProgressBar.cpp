// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/ProgressBar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace dg::session {

void RunProgress::start(const StartInfo &info, Clock::time_point now) {
  begun = info;
  started = now;
  steps = samples = 0;
}

void RunProgress::step(const StepInfo &info) {
  last = info;
  ++steps;
  samples += info.samples;
}

/// "0:34", "12:05", "3:20:00".
static std::string describeSeconds(double seconds) {
  const auto whole = int64_t(std::clamp(seconds, 0.0, 1e9) + 0.5);
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

static std::string of(int64_t number, int64_t total) {
  return total > 0 ? fmt::format("{}/{}", number, total) : fmt::format("{}", number);
}

static int64_t lastStepOf(const StartInfo &info) {
  return info.steps > 0 ? info.steps : info.epochs * info.stepsPerEpoch;
}

/// What follows the place of the step; evaluations and checkpoints count as time that steps take.
std::string RunProgress::rates(Clock::time_point now, bool isShort) const {
  const double seconds = std::chrono::duration<double>(now - started).count();
  std::string text = isShort ? fmt::format("  loss {:.4f}", last.loss) : fmt::format("  loss {:.6f}", last.loss);
  text += fmt::format("  lr {:.4g}", last.learningRate);
  if (last.gradientNorm)
    text += fmt::format("  grad {:.4g}", *last.gradientNorm);
  if (seconds <= 0 || steps == 0)
    return text;
  const double rate = double(samples) / seconds;
  text += rate < 100 ? fmt::format("  {:.3g} samples/s", rate) : fmt::format("  {:.0f} samples/s", rate);
  if (const int64_t left = lastStepOf(begun) - last.step; left >= 0 && lastStepOf(begun) > 0)
    text += fmt::format("  {} left", describeSeconds(seconds / double(steps) * double(left)));
  return text;
}

std::string RunProgress::bar(size_t columns, Clock::time_point now) const {
  const int64_t total = std::max<int64_t>(begun.stepsPerEpoch, 1);
  const std::string head = fmt::format("epoch {} ", of(last.epoch, begun.epochs)),
                    place = fmt::format(" {}/{}", last.stepInEpoch, total), tail = rates(now, true);
  auto draw = [&](int64_t width) {
    const int64_t filled = std::clamp<int64_t>(width * last.stepInEpoch / total, 0, width);
    return fmt::format("[{:=<{}}{: <{}}]", "", filled, "", width - filled);
  };
  constexpr std::array<int64_t, 3> widths = {30, 20, 10};
  for (int64_t width : widths)
    if (std::string text = head + draw(width) + place + tail; text.size() <= columns)
      return text;
  // Whole parts go, the last ones first; each begins with two spaces.
  std::string text = head + draw(widths.back()) + place + tail;
  while (text.size() > columns && text.rfind("  ") != std::string::npos &&
         text.rfind("  ") > head.size() + place.size() + 12)
    text.resize(text.rfind("  "));
  if (text.size() > columns)
    text = head.substr(0, head.size() - 1) + place;
  return text.substr(0, columns);
}

std::string RunProgress::line(Clock::time_point now) const {
  return fmt::format("  step {} (epoch {}){}", of(last.step, lastStepOf(begun)), of(last.epoch, begun.epochs),
                     rates(now, false));
}

} // namespace dg::session
