// SPDX-License-Identifier: Apache-2.0
// Proves that a split program trains as the whole one does: each loss, each parameter at the end and the evaluation, in
// f64 on simulated ranks, for the four kinds of model, over data, tensor and pipe, with and without micro-batches.
#include "tests/unit/passes/SplitCases.h"

#include <gtest/gtest.h>

using namespace dg::passes::test;

namespace {

TEST(SplitEquivalence, Mlp) { expectEqualOnMeshes(mlpCase(100), allMeshes()); }
TEST(SplitEquivalence, WideMlpWithAdam) { expectEqualOnMeshes(wideCase(100), allMeshes()); }
TEST(SplitEquivalence, GptWithAdamW) { expectEqualOnMeshes(gptCase(100), allMeshes()); }
TEST(SplitEquivalence, Lenet) { expectEqualOnMeshes(lenetCase(6), allMeshes()); }

TEST(SplitEquivalence, UnevenShards) {
  // Ten samples over four ranks are 3/3/2/2; in two micro-batches of five 2/1/1/1.
  ModelCase model = wideCase(20);
  model.training.sampleCounts.assign(20, 10);
  expectEqualOnMeshes(model, {"data=4", "data=4,pipe=2", "data=4,tensor=2"}, {1, 2});
}

TEST(SplitEquivalence, LastBatchIsSmaller) {
  // Each epoch ends with fewer samples than rows: some ranks and some micro-batches get none.
  ModelCase model = wideCase(20);
  model.training.sampleCounts = {12, 12, 5, 12, 12, 1, 12, 7};
  model.training.numEvaluated = 3;
  expectEqualOnMeshes(model, {"", "data=4", "pipe=2", "data=2,tensor=2,pipe=2"}, {1, 2, 4});
}

} // namespace
