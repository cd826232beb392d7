// SPDX-License-Identifier: Apache-2.0
// Proves that every line of --json is a JSON object with the fields that scripts rely on, whatever the numbers and
// names.
#include "runtime/session/report/Reporter.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <memory>
#include <sstream>

using namespace dg;
using namespace dg::session;

namespace {

/// What a reporter writes while `tell` runs.
std::string written(std::unique_ptr<Reporter> (*make)(FILE *), const std::function<void(Reporter &)> &tell) {
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

std::unique_ptr<Reporter> makePlainText(FILE *out) { return makeTextReporter(out, nullptr); }

void tellAll(Reporter &reporter) {
  static plan::Plan plan;
  plan.model.name = "odd \"name\"\n";
  StartInfo start;
  start.plan = &plan;
  start.program = "train";
  start.stepsPerEpoch = 2;
  reporter.start(start);
  reporter.step({1, 1, 1, 64, 0.1f, 12.5});
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
  std::istringstream lines(written(makeJsonReporter, tellAll));
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
  EXPECT_TRUE(events[2]["loss"].is_null());
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

TEST(Reporter, aWriteThatFailsIsRemembered) {
  for (auto make : {makeJsonReporter, makePlainText}) {
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
  auto event = nlohmann::json::parse(failureEvent(3, 17, "rank 3 \"died\""));
  EXPECT_EQ(event["event"], "failure");
  EXPECT_EQ(event["rank"], 3);
  EXPECT_EQ(event["message"], "rank 3 \"died\"");
}
