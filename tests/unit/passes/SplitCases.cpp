// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/passes/SplitCases.h"

#include "ir/build/Families.h"
#include "passes/partition/Mesh.h"
#include "tests/unit/ir/OpTable.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;

namespace dg::passes::test {

static ModelCase makeCase(std::string spec, std::string optimizer, int64_t batch, int64_t indexBound, size_t numSteps) {
  return {std::move(spec),
          {.optimizer = std::move(optimizer),
           .sampleCounts = std::vector<int64_t>(numSteps, batch),
           .indexBound = indexBound}};
}

ModelCase mlpCase(size_t numSteps) { return makeCase("mlp:10-20-1", "sgd:lr=0.05", 12, 1, numSteps); }
ModelCase wideCase(size_t numSteps) { return makeCase("mlp:16-24-24-10", "adam:lr=0.003", 12, 10, numSteps); }
ModelCase lenetCase(size_t numSteps) { return makeCase("lenet", "sgd:lr=0.01,momentum=0.5", 4, 10, numSteps); }
ModelCase gptCase(size_t numSteps) {
  return makeCase("gpt:layers=2,hidden=16,heads=2,seq=8,vocab=32", "adamw:lr=0.001", 4, 32, numSteps);
}

ModelCase llamaCase(size_t numSteps) {
  return makeCase("llama:layers=2,hidden=16,heads=4,kv_heads=2,ffn=24,seq=8,vocab=32", "adamw:lr=0.001", 4, 32,
                  numSteps);
}

ModelCase wholeWideCase(size_t numSteps) { return makeCase("mlp:784-1024-1024-10", "adam:lr=0.001", 4, 10, numSteps); }
ModelCase deepGptCase(size_t numSteps) {
  return makeCase("gpt:layers=4,hidden=24,heads=6,seq=8,vocab=32", "adamw:lr=0.001", 4, 32, numSteps);
}

ModelCase resnetCase(size_t numSteps) {
  return makeCase("resnet:18,classes=4,image=32,width=2", "sgd:lr=0.02,momentum=0.9", 6, 4, numSteps);
}

std::vector<std::string> allMeshes() {
  return {"data=2", "tensor=2", "pipe=2", "pipe=3", "data=2,pipe=2", "data=2,tensor=2,pipe=2"};
}

void expectEqualOnMeshes(const ModelCase &model, const std::vector<std::string> &meshes,
                         const std::vector<int64_t> &microbatches, Split how) {
  std::unique_ptr<MLIRContext> context = ir::test::makeContext();
  FailureOr<OwningOpRef<ModuleOp>> module = ir::buildFamily(model.spec, *context);
  ASSERT_TRUE(succeeded(module));
  Attempt whole = trainWhole(**module, model.training);
  ASSERT_TRUE(whole.outcome) << whole.error;
  int64_t batch = *llvm::max_element(model.training.sampleCounts);
  for (const std::string &mesh : meshes)
    for (int64_t count : microbatches) {
      if (batch < count * parseMesh(mesh)->sizeOf("data"))
        continue;
      SCOPED_TRACE(model.spec + " on '" + mesh + "' with " + std::to_string(count) + " micro-batches");
      how.mesh = mesh;
      how.microbatches = count;
      Attempt split = splitAndTrain(**module, model.training, how);
      ASSERT_TRUE(split.outcome) << split.error;
      EXPECT_EQ(firstDifference(*whole.outcome, *split.outcome, 1e-9), "");
    }
}

void expectEqualToOneRank(const ModelCase &model, const std::vector<std::string> &meshes,
                          const std::vector<int64_t> &microbatches, Split how) {
  std::unique_ptr<MLIRContext> context = ir::test::makeContext();
  FailureOr<OwningOpRef<ModuleOp>> module = ir::buildFamily(model.spec, *context);
  ASSERT_TRUE(succeeded(module));
  for (int64_t count : microbatches) {
    Attempt one =
        count == 1 ? trainWhole(**module, model.training) : splitAndTrain(**module, model.training, {"", count});
    ASSERT_TRUE(one.outcome) << one.error;
    for (const std::string &mesh : meshes) {
      SCOPED_TRACE(model.spec + " on '" + mesh + "' with " + std::to_string(count) + " micro-batches");
      how.mesh = mesh;
      how.microbatches = count;
      Attempt split = splitAndTrain(**module, model.training, how);
      ASSERT_TRUE(split.outcome) << split.error;
      EXPECT_EQ(firstDifference(*one.outcome, *split.outcome, 1e-9), "");
    }
  }
}

void expectTextEqual(const std::string &text, const std::vector<int64_t> &sampleCounts,
                     const std::vector<std::string> &meshes, const std::vector<int64_t> &microbatches) {
  auto context = ir::test::makeContext();
  OwningOpRef<ModuleOp> model = ir::test::parse(*context, text);
  ASSERT_TRUE(model);
  Training training{.optimizer = "sgd:lr=0.05,momentum=0.5", .sampleCounts = sampleCounts, .indexBound = 4};
  training.numEvaluated = sampleCounts.back();
  Attempt whole = trainWhole(*model, training);
  ASSERT_TRUE(whole.outcome) << whole.error;
  for (double loss : whole.outcome->losses)
    ASSERT_TRUE(std::isfinite(loss));
  for (const std::string &mesh : meshes)
    for (int64_t count : microbatches) {
      SCOPED_TRACE("'" + mesh + "' with " + std::to_string(count) + " micro-batches");
      Attempt split = splitAndTrain(*model, training, {mesh, count});
      ASSERT_TRUE(split.outcome) << split.error;
      EXPECT_EQ(firstDifference(*whole.outcome, *split.outcome, 1e-9), "");
    }
}

void expectEqualTexts(const std::string &text, const std::string &other, const std::string &optimizer,
                      const std::string &otherOptimizer, const std::vector<int64_t> &sampleCounts,
                      bool comparesLosses) {
  auto context = ir::test::makeContext();
  OwningOpRef<ModuleOp> model = ir::test::parse(*context, text), otherModel = ir::test::parse(*context, other);
  ASSERT_TRUE(model && otherModel);
  Training training{.optimizer = optimizer, .sampleCounts = sampleCounts, .indexBound = 4};
  Attempt one = trainWhole(*model, training);
  training.optimizer = otherOptimizer;
  Attempt two = trainWhole(*otherModel, training);
  ASSERT_TRUE(one.outcome && two.outcome) << one.error << two.error;
  if (!comparesLosses) {
    two.outcome->losses = one.outcome->losses;
    two.outcome->evalLoss = one.outcome->evalLoss;
  }
  EXPECT_EQ(firstDifference(*one.outcome, *two.outcome, 1e-9), "");
}

void expectRejected(const std::string &text, int64_t batch, const Split &split, const std::string &says) {
  auto context = ir::test::makeContext();
  OwningOpRef<ModuleOp> model = ir::test::parse(*context, text);
  ASSERT_TRUE(model);
  auto [chunks, error] = splitModel(*model, {.optimizer = "sgd:lr=0.05", .sampleCounts = {batch}}, split);
  EXPECT_FALSE(chunks);
  EXPECT_NE(error.find(says), std::string::npos) << error;
}

} // namespace dg::passes::test
