// SPDX-License-Identifier: Apache-2.0
// The little languages of dgrun's flags, and of dgc's that need no compiler. No file is opened.
#include "partitioner/model/Cluster.h"
#include "partitioner/schedule/ScheduleDescriptor.h"
#include "runtime/data/ChannelNormalization.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/source/FileList.h"
#include "runtime/session/report/LogPace.h"
#include "runtime/session/rules/Improvement.h"
#include "runtime/session/rules/Interval.h"
#include "runtime/session/rules/LearningRate.h"
#include "tests/fuzz/FuzzTarget.h"

#include <cmath>

using namespace dg;

namespace {

void trySchedule(const std::string &text) {
  auto schedule = session::LearningRateSchedule::parse(text);
  if (!schedule)
    return;
  auto again = session::LearningRateSchedule::parse(schedule->describe());
  fuzz::check(bool(again), "what a schedule says of itself can be read");
  checkpoint::Plateau plateau;
  for (int64_t step : {int64_t(0), int64_t(1), int64_t(7), int64_t(1000), int64_t(1) << 40})
    for (int64_t stepsPerEpoch : {int64_t(1), int64_t(10)}) {
      const session::TrainingPoint at{step, step / stepsPerEpoch, stepsPerEpoch};
      const double factor = schedule->factorAt(at);
      fuzz::check(factor == again->factorAt(at) || std::isnan(factor), "a factor is the same again");
      fuzz::check(schedule->stepOfLastPart(stepsPerEpoch) >= 0, "a part begins after a number of steps");
      schedule->observe(1.0, at, plateau);
    }
}

void tryFiles(const std::string &text) {
  for (const std::string &part : data::splitList(text))
    if (auto names = data::expandBraces(part))
      fuzz::check(!names->empty() && names->size() <= 1'000'000, "a pattern stands for at most a million names");
}

void tryIntervals(const std::string &text) {
  if (auto interval = session::Interval::parse("--flag", text)) {
    fuzz::check(interval->steps >= 0 && interval->epochs >= 0 && interval->steps + interval->epochs > 0,
                "an interval has a length");
    (void)interval->isDueAfterEpoch(10, 100);
  }
  if (auto pace = session::LogPace::parse("--flag", text))
    (void)pace->isDue(10);
}

void tryNormalizations(const std::string &text) {
  auto isUsable = [](const data::Normalization &one) {
    return std::isfinite(one.mean) && std::isfinite(one.deviation) && one.deviation > 0;
  };
  if (auto one = data::parseNormalization(text))
    fuzz::check(isUsable(*one), "a normalization has finite numbers and divides by no zero");
  if (auto channels = data::parseChannelNormalization(text))
    for (const data::Normalization &one : *channels)
      fuzz::check(isUsable(one), "a normalization has finite numbers and divides by no zero");
  (void)data::splitAssignment("--flag", text);
}

void tryRules(const std::string &text) {
  (void)session::WatchedMetric::parse("--flag", text);
  if (auto rule = session::StopRule::parse(text))
    fuzz::check(rule->patience >= 1 && rule->least >= 0, "a rule can come true");
}

void tryPlanTexts(const std::string &text) {
  (void)partitioner::parseSchedule(text);
  for (const char *preset : {"cpu:", "a100x8:"})
    if (auto cluster = partitioner::findCluster(preset + text))
      fuzz::check(cluster->numDevices() >= 1 && cluster->numDevices() <= 1 << 20, "a cluster has devices");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  if (size == 0)
    return 0;
  static constexpr void (*tries[])(const std::string &) = {trySchedule,       tryFiles, tryIntervals,
                                                           tryNormalizations, tryRules, tryPlanTexts};
  tries[data[0] % std::size(tries)](std::string(reinterpret_cast<const char *>(data) + 1, size - 1));
  return 0;
}
