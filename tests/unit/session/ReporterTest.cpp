// SPDX-License-Identifier: Apache-2.0
// Proves that every line of --json is a JSON object with the fields that scripts rely on, whatever the numbers and
// names.
#include "runtime/session/report/Reporter.h"

#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/session/report/EventFile.h"
#include "runtime/session/report/ProgressBar.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <functional>
#include <memory>
#include <sstream>

using namespace dg;
using namespace dg::session;

namespace {

/// What a reporter writes while `tell` runs.
std::string written(const std::function<std::unique_ptr<Reporter>(FILE *)> &make,
                    const std::function<void(Reporter &)> &tell) {
  char *text = nullptr;
  size_t size = 0;
  FILE *file = open_memstream(&text, &size);
  auto reporter = make(file);
  tell(*reporter);
  reporter->flush();
  std::fclose(file);
  std::string result(text, size);
  std::free(text);
  return result;
}

std::unique_ptr<Reporter> makeJson(FILE *out) { return makeJsonReporter(out); }
std::unique_ptr<Reporter> makePlainText(FILE *out) { return makeTextReporter(out, nullptr); }

void tellAll(Reporter &reporter) {
  static plan::Plan plan;
  plan.model.name = "odd \"name\"\n";
  StartInfo start;
  start.plan = &plan;
  start.program = plan::ProgramKind::train;
  start.stepsPerEpoch = 2;
  reporter.start(start);
  reporter.step({1, 1, 1, 64, 0.1f, 12.5, 0, 0.75f});
  reporter.step({2, 1, 2, 64, std::nanf(""), 12.5});
  reporter.epoch({1, 0.25, 2.0, 0.01, 128});
  EvaluationInfo evaluation;
  evaluation.loss = 0.5, evaluation.accuracy = 0.875, evaluation.hasLoss = evaluation.hasAccuracy = true;
  reporter.evaluation(evaluation);
  reporter.checkpoint({"dir/step-000002", 2, 0.1});
  reporter.end({2, 1, 3.0, false});
}

} // namespace

TEST(Reporter, jsonLinesHoldTheirFields) {
  std::istringstream lines(written(makeJson, tellAll));
  std::vector<nlohmann::json> events;
  for (std::string line; std::getline(lines, line);)
    events.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(events.size(), 7u);
  const char *names[] = {"start", "step", "step", "epoch", "eval", "checkpoint", "end"};
  for (size_t i = 0; i < 7; ++i)
    EXPECT_EQ(events[i]["event"], names[i]);
  EXPECT_EQ(events[0]["model"], "odd \"name\"\n");
  EXPECT_EQ(events[1]["loss"].get<float>(), 0.1f);
  EXPECT_EQ(events[1]["step_us"], 12.5);
  EXPECT_EQ(events[1]["grad_norm"], 0.75);
  EXPECT_TRUE(events[2]["loss"].is_null());
  EXPECT_FALSE(events[2].contains("grad_norm"));
  EXPECT_EQ(events[3]["loss"], 0.25);
  EXPECT_EQ(events[3]["samples"], 128);
  EXPECT_EQ(events[4]["accuracy"], 0.875);
  EXPECT_EQ(events[5]["path"], "dir/step-000002");
  EXPECT_EQ(events[6]["steps"], 2);
}

TEST(Reporter, withoutATerminalThereAreOnlyWholeLines) {
  std::string text = written(makePlainText, tellAll);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("epoch 1  loss 0.250000"), std::string::npos) << text;
  EXPECT_NE(text.find("accuracy 87.50 %"), std::string::npos) << text;
}

TEST(Reporter, onlyStepsThatAreDueAreTold) {
  auto tellSteps = [](Reporter &reporter) {
    static plan::Plan plan;
    StartInfo start;
    start.plan = &plan;
    start.stepsPerEpoch = 10, start.epochs = 2;
    reporter.start(start);
    for (int64_t step = 1; step <= 20; ++step)
      reporter.step({step, (step + 9) / 10, (step - 1) % 10 + 1, 64, 0.5f, 12.5, 0.01});
  };
  std::string json =
      written([](FILE *out) { return makeJsonReporter(out, *LogPace::parse("--json-every", "8steps")); }, tellSteps);
  std::vector<int64_t> told;
  std::istringstream lines(json);
  for (std::string line; std::getline(lines, line);)
    if (auto event = nlohmann::json::parse(line); event["event"] == "step")
      told.push_back(event["step"].get<int64_t>());
  EXPECT_EQ(told, (std::vector<int64_t>{8, 16}));
  std::string text = written(
      [](FILE *out) { return makeTextReporter(out, nullptr, *LogPace::parse("--log-every", "15steps")); }, tellSteps);
  EXPECT_NE(text.find("  step 15/20 (epoch 2/2)  loss 0.500000  lr 0.01  "), std::string::npos) << text;
  EXPECT_EQ(text.find("step 16"), std::string::npos) << text;
  std::string seldom =
      written([](FILE *out) { return makeTextReporter(out, nullptr, LogPace::everySeconds(3600)); }, tellSteps);
  EXPECT_EQ(seldom.find("step"), std::string::npos) << seldom;
}

TEST(Reporter, paces) {
  using namespace std::chrono_literals;
  auto pace = *LogPace::parse("--log-every", "10s");
  auto start = LogPace::Clock::now();
  EXPECT_FALSE(pace.isDue(1, start + 5s));
  EXPECT_TRUE(pace.isDue(2, start + 11s));
  EXPECT_FALSE(pace.isDue(3, start + 20s));
  EXPECT_TRUE(pace.isDue(4, start + 22s));
  for (const char *text : {"", "10", "s", "0s", "-1s", "nans", "infs", "1.5steps", "10minutes", "1e30s", "10 s"})
    EXPECT_FALSE(LogPace::parse("--log-every", text)) << text;
}

TEST(Reporter, aBarFitsAnyWidth) {
  using namespace std::chrono_literals;
  StartInfo start;
  start.stepsPerEpoch = 938, start.epochs = 10;
  auto begin = RunProgress::Clock::now();
  RunProgress progress;
  progress.start(start, begin);
  for (int64_t step = 1; step <= 1876 / 2; ++step)
    progress.step({step, 1, step, 64, 0.25f, 1000, 0.001});
  progress.step({938 + 469, 2, 469, 64, 0.25f, 1000, 0.001});
  // 939 steps in 93.9 s, and 7973 to go.
  EXPECT_EQ(progress.bar(200, begin + 93900ms),
            "epoch 2/10 [===============               ] 469/938  loss 0.2500  lr 0.001  640 samples/s  13:17 left");
  for (size_t columns = 0; columns <= 200; ++columns) {
    std::string bar = progress.bar(columns, begin + 93900ms);
    EXPECT_LE(bar.size(), columns);
    if (columns >= 19)
      EXPECT_NE(bar.find(" 469/938"), std::string::npos) << bar;
    if (columns >= 60)
      EXPECT_NE(bar.find("loss 0.2500"), std::string::npos) << bar;
  }
  EXPECT_EQ(progress.line(begin + 93900ms),
            "  step 1407/9380 (epoch 2/10)  loss 0.250000  lr 0.001  640 samples/s  13:17 left");
  progress.start(start, begin);
  progress.step({1, 1, 1, 64, 0.25f, 1000, 0.001, 12.5f});
  EXPECT_EQ(progress.line(begin), "  step 1/9380 (epoch 1/10)  loss 0.250000  lr 0.001  grad 12.5");
}

TEST(Reporter, theChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u); // RFC 3720, B.4, and the usual check value
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
}

TEST(Reporter, aWriteThatFailsIsRemembered) {
  for (auto make : {makeJson, makePlainText}) {
    std::unique_ptr<FILE, int (*)(FILE *)> full(std::fopen("/dev/full", "w"), std::fclose);
    ASSERT_TRUE(full);
    auto reporter = make(full.get());
    tellAll(*reporter);
    reporter->flush();
    EXPECT_NE(reporter->failure().message().find("No space left"), std::string::npos);
  }
  EXPECT_TRUE(makeSilentReporter()->failure());
}

TEST(Reporter, aFailureIsAnEventToo) {
  auto event = nlohmann::json::parse(launchEventLine(
      {.kind = "failure", .rank = 3, .step = 17, .text = "rank 3 \"died\"", .host = "a", .job = "4711"}));
  EXPECT_EQ(event["event"], "failure");
  EXPECT_EQ(event["rank"], 3);
  EXPECT_EQ(event["message"], "rank 3 \"died\"");
  EXPECT_EQ(event["host"], "a");
  EXPECT_EQ(event["job"], "4711");
  EXPECT_GT(event["time"].get<double>(), 1.7e9);
}
