// SPDX-License-Identifier: Apache-2.0
// Proves that what dgc compiles and dgrun trains, in f32 and in processes of its own, has the losses that the reference
// executor gives in f64 from the same seed and samples, for the four kinds of model.
#include "ir/build/Families.h"
#include "runtime/data/format/TensorFiles.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/passes/SplitCases.h"
#include "tests/unit/session/CommandRun.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <sstream>

using namespace dg;
using namespace dg::passes::test;

namespace {

constexpr size_t numSteps = 10;
constexpr double tolerance = 1e-5;

/// The input of all steps, one after the other, as an .npy file.
std::string npyOf(const std::vector<ir::TensorMap> &samples, const std::string &name, bool isInteger) {
  std::vector<int64_t> shape = samples.front().at(name).shape;
  std::string bytes;
  for (size_t step = 0; step < numSteps; ++step)
    for (double element : samples[step].at(name).data) {
      const auto asFloat = float(element);
      const auto asInteger = int32_t(element);
      bytes.append(isInteger ? reinterpret_cast<const char *>(&asInteger) : reinterpret_cast<const char *>(&asFloat),
                   4);
    }
  shape[0] *= int64_t(numSteps);
  return data::makeNpyHeader(isInteger ? data::DType::i32 : data::DType::f32, shape) + bytes;
}

std::vector<double> lossesOf(const std::string &events) {
  std::vector<double> losses;
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);)
    if (auto event = nlohmann::json::parse(line); event["event"] == "step")
      losses.push_back(event["loss"]);
  return losses;
}

/// Trains on each mesh and expects the losses of the reference executor.
void expectReferenceLosses(const ModelCase &model, const std::vector<std::string> &meshes) {
  std::unique_ptr<mlir::MLIRContext> context = ir::test::makeContext();
  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> module = ir::buildFamily(model.spec, *context);
  ASSERT_TRUE(succeeded(module));
  Attempt reference = trainWhole(**module, model.training);
  ASSERT_TRUE(reference.outcome) << reference.error;

  test::TemporaryFolder folder;
  std::vector<ir::TensorMap> samples = drawSamples(**module, model.training);
  auto graph = (*module)->lookupSymbol<ir::GraphOp>("loss");
  std::vector<std::string> run = {DG_DGRUN, folder.path("job.dgx"),       "--json", "--no-shuffle", "--epochs", "1",
                                  "--seed", std::to_string(parameterSeed)};
  for (auto [index, type] : llvm::enumerate(graph.getInputTypes().getAsValueRange<mlir::TypeAttr>())) {
    const std::string name = graph.getInputName(index).str();
    const bool isInteger = mlir::cast<mlir::RankedTensorType>(type).getElementType().isInteger();
    run.insert(run.end(), {"--data", name + "=" + folder.write(name + ".npy", npyOf(samples, name, isInteger))});
  }
  for (const std::string &mesh : meshes) {
    SCOPED_TRACE(model.spec + " on " + mesh);
    test::CommandResult compiled =
        test::runCommand({DG_DGC, model.spec, "--batch", std::to_string(model.training.sampleCounts.front()),
                          "--optimizer", model.training.optimizer, "--mesh", mesh, "-o", folder.path("job.dgx")});
    ASSERT_EQ(compiled.code, 0) << compiled.error;
    test::CommandResult trained = test::runCommand(run);
    ASSERT_EQ(trained.code, 0) << trained.error;
    std::vector<double> losses = lossesOf(trained.out);
    ASSERT_EQ(losses.size(), numSteps);
    for (size_t step = 0; step < numSteps; ++step) {
      const double expected = reference.outcome->losses[step];
      EXPECT_NEAR(losses[step], expected, tolerance * std::abs(expected)) << "step " << step + 1;
    }
  }
}

TEST(ReferenceTraining, Mlp) { expectReferenceLosses(mlpCase(numSteps), {"data=1", "data=2"}); }
TEST(ReferenceTraining, WideMlpWithAdam) { expectReferenceLosses(wideCase(numSteps), {"data=1", "tensor=2"}); }
TEST(ReferenceTraining, Lenet) { expectReferenceLosses(lenetCase(numSteps), {"data=1", "pipe=2"}); }
TEST(ReferenceTraining, GptWithAdamW) { expectReferenceLosses(gptCase(numSteps), {"data=1", "tensor=2,pipe=2"}); }

} // namespace
