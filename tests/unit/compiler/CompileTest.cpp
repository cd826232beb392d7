// SPDX-License-Identifier: Apache-2.0
// The compiler as a library: compilations in one process, also at once, neither disturb each other nor leave anything
// behind, and what they say reaches whoever asked and nobody else.
#include "compiler/Compile.h"
#include "compiler/ListOps.h"
#include "tests/unit/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <thread>

using namespace dg;
using namespace dg::compiler;

namespace {

constexpr int numRounds = 3;

/// A request for training a family on one rank.
Request trainingOf(const std::string &model) {
  Request request;
  request.model = model;
  request.batch = 8;
  request.optimizer = "sgd:lr=0.1";
  request.targets = {"x86-64-v3"};
  return request;
}

/// Names and bytes of a package.
std::string bytesOf(const Result<Output> &output) {
  EXPECT_TRUE(output) << output.status().message();
  std::string all;
  if (output)
    for (const PackageFile &file : output->package)
      all += file.name + ":" + std::to_string(file.bytes.size()) + ":" + file.bytes + "\n";
  return all;
}

/// Compiles both again and again, begun together. Results in turns.
std::vector<std::pair<Result<Output>, Result<Output>>> compileAtOnce(const Request &first, const Request &second) {
  std::vector<std::pair<Result<Output>, Result<Output>>> results;
  for (int round = 0; round < numRounds; ++round) {
    std::latch begin(2);
    std::optional<Result<Output>> other;
    std::thread thread([&] {
      begin.arrive_and_wait();
      other = compile(second);
    });
    begin.arrive_and_wait();
    Result<Output> own = compile(first);
    thread.join();
    results.emplace_back(std::move(own), std::move(*other));
  }
  return results;
}

/// A model whose op at line 3 does not fit; the input's name tells two apart.
std::string wrongModel(const std::string &input) {
  return "dg.graph @loss(%" + input + ": tensor<4x3xf32>) {\n" +
         "  %w = dg.parameter \"w\" tensor<5x2xf32> uniform 0.1\n" + "  %y = dg.matmul %" + input + ", %w\n" +
         "  dg.return %y\n}\n";
}

/// Everything is quiet: files of a link go to a folder of the test's own, which must be empty afterwards.
class CompileTest : public testing::Test {
protected:
  CompileTest() {
    setenv("TMPDIR", scratch.path("").c_str(), 1);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
  }
  ~CompileTest() override {
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    unsetenv("TMPDIR");
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path("")));
  }
  test::TemporaryFolder scratch, models;
};

TEST_F(CompileTest, TwiceInOneProcessGivesTheSameBytes) {
  std::string first = bytesOf(compile(trainingOf("mlp:16-8-4")));
  EXPECT_NE(first.find("plan.json"), std::string::npos);
  EXPECT_EQ(first, bytesOf(compile(trainingOf("mlp:16-8-4"))));
}

TEST_F(CompileTest, TwoModelsAtOnceGiveTheBytesOfEachAlone) {
  Request mlp = trainingOf("mlp:16-8-4"), lenet = trainingOf("lenet");
  lenet.mesh = "data=2";
  std::string mlpAlone = bytesOf(compile(mlp)), lenetAlone = bytesOf(compile(lenet));
  ASSERT_NE(mlpAlone, lenetAlone);
  for (const auto &[first, second] : compileAtOnce(mlp, lenet)) {
    EXPECT_TRUE(bytesOf(first) == mlpAlone);
    EXPECT_TRUE(bytesOf(second) == lenetAlone);
  }
}

/// Bytecode is read in a child of a process that has other threads at work.
TEST_F(CompileTest, BytecodeIsReadWhileAnotherThreadCompiles) {
  Request mlp = trainingOf("mlp:16-8-4");
  Result<Output> alone = compile(mlp);
  ASSERT_TRUE(alone) << alone.status().message();
  auto model = std::find_if(alone->package.begin(), alone->package.end(),
                            [](const PackageFile &file) { return file.name == "model.mlirbc"; });
  ASSERT_NE(model, alone->package.end());
  Request bytecode = trainingOf(models.write("mlp.mlirbc", model->bytes));
  bytecode.emit = Emit::dg;
  Result<Output> expected = compile(bytecode);
  ASSERT_TRUE(expected) << expected.status().message();
  std::string mlpAlone = bytesOf(alone);
  for (const auto &[first, second] : compileAtOnce(bytecode, mlp)) {
    ASSERT_TRUE(first) << first.status().message();
    EXPECT_EQ(first->text, expected->text);
    EXPECT_TRUE(bytesOf(second) == mlpAlone);
  }
}

TEST_F(CompileTest, ErrorsReachTheirOwnCaller) {
  Request left = trainingOf(models.write("left.mlir", wrongModel("left"))),
          right = trainingOf(models.write("right.mlir", wrongModel("right")));
  Status alone = compile(left).status();
  EXPECT_EQ(alone.kind(), ErrorKind::badInput);
  // The place, the severity and the line that it points to.
  EXPECT_EQ(alone.message().find(left.model + ":3:8: error: "), 0u) << alone.message();
  EXPECT_NE(alone.message().find("%y = dg.matmul %left, %w"), std::string::npos) << alone.message();
  for (const auto &[first, second] : compileAtOnce(left, right)) {
    EXPECT_EQ(first.status().message(), alone.message());
    EXPECT_EQ(second.status().message().find(right.model + ":3:8: error: "), 0u) << second.status().message();
    EXPECT_EQ(second.status().message().find("left"), std::string::npos) << second.status().message();
  }
}

TEST_F(CompileTest, AFailureLeavesTheOtherCompilationAlone) {
  Request good = trainingOf("mlp:16-8-4"), bad = trainingOf(models.write("bad.mlir", wrongModel("x")));
  std::string alone = bytesOf(compile(good));
  for (const auto &[first, second] : compileAtOnce(good, bad)) {
    EXPECT_TRUE(bytesOf(first) == alone);
    EXPECT_EQ(second.status().kind(), ErrorKind::badInput);
  }
}

TEST_F(CompileTest, ABadRequestSaysSoAndLeavesNothingBehind) {
  Request request = trainingOf(models.path("missing.mlir"));
  std::vector<Message> said;
  Status status = compile(request, [&](const Message &message) { said.push_back(message); }).status();
  EXPECT_EQ(status.kind(), ErrorKind::badInput);
  EXPECT_EQ(status.message().find(request.model + ": error: cannot be read"), 0u) << status.message();
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].kind, Message::Kind::diagnostic);
  EXPECT_EQ(said[0].text, status.message());

  request = trainingOf("mlp:16-8-4");
  request.mesh = "sideways=2";
  said.clear();
  status = compile(request, [&](const Message &message) { said.push_back(message); }).status();
  EXPECT_EQ(status.kind(), ErrorKind::usage);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].kind, Message::Kind::error);
  EXPECT_EQ(said[0].text, status.message());
  EXPECT_TRUE(std::filesystem::is_empty(models.path("")));
}

TEST_F(CompileTest, ReportsAreValues) {
  Request request = trainingOf("mlp:16-8-4");
  request.emit = Emit::nothing;
  request.simulate = Form::json;
  Result<Output> simulated = compile(request);
  ASSERT_TRUE(simulated) << simulated.status().message();
  EXPECT_TRUE(simulated->package.empty());
  EXPECT_NE(simulated->text.find("\"step_us\""), std::string::npos);
  Result<std::string> table = listOps("");
  ASSERT_TRUE(table) << table.status().message();
  EXPECT_NE(table->find("dg.matmul"), std::string::npos);
}

} // namespace
