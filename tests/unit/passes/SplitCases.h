// SPDX-License-Identifier: Apache-2.0
// The models and meshes of the equivalence suites, and the comparison over all of them.
#pragma once

#include "tests/unit/passes/SplitComparison.h"

namespace dg::passes::test {

struct ModelCase {
  std::string spec; ///< of a family
  Training training;
};

/// Regression 10-20-1, batch 12, SGD.
ModelCase mlpCase(size_t numSteps);
/// 16-24-24-10, batch 12, Adam.
ModelCase wideCase(size_t numSteps);
/// The convolution net, batch 4, momentum.
ModelCase lenetCase(size_t numSteps);
/// Two layers of width 16, batch 4, AdamW.
ModelCase gptCase(size_t numSteps);
/// Two layers of width 16 with groups of heads and rotary positions, batch 4, AdamW.
ModelCase llamaCase(size_t numSteps);
/// 784-1024-1024-10, batch 4, Adam: examples/wide_mlp.mlir.
ModelCase wholeWideCase(size_t numSteps);
/// Four layers with six heads, as examples/gpt.mlir, of width 24.
ModelCase deepGptCase(size_t numSteps);
/// Batch norm: statistics over the samples of a micro-batch, so the number of micro-batches is part of the model.
ModelCase resnetCase(size_t numSteps);

/// Each axis alone and together.
std::vector<std::string> allMeshes();

/// Expects that the split program trains as the whole one does, within 1e-9, on each mesh with each number of
/// micro-batches for which each data rank has a sample; `how` says the rest.
void expectEqualOnMeshes(const ModelCase &model, const std::vector<std::string> &meshes,
                         const std::vector<int64_t> &microbatches = {1, 2, 4}, Split how = {});

/// The same against one rank with as many micro-batches, for models in which they matter.
void expectEqualToOneRank(const ModelCase &model, const std::vector<std::string> &meshes,
                          const std::vector<int64_t> &microbatches, Split how = {});

/// Expects that a model in text trains finitely with SGD, and split as it does whole.
void expectTextEqual(const std::string &text, const std::vector<int64_t> &sampleCounts,
                     const std::vector<std::string> &meshes, const std::vector<int64_t> &microbatches);

/// Expects that two models with the same parameters train alike, on batches of so many samples.
void expectEqualTexts(const std::string &text, const std::string &other, const std::string &optimizer,
                      const std::string &otherOptimizer, const std::vector<int64_t> &sampleCounts,
                      bool comparesLosses = true);

/// Expects that the model is refused for batches of so many samples, with a message that holds `says`.
void expectRejected(const std::string &text, int64_t batch, const Split &split, const std::string &says);

} // namespace dg::passes::test
