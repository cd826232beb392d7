// SPDX-License-Identifier: Apache-2.0
// Proves that attention in blocks computes what its reference evaluation does, for tokens around every limit of a
// block, heads of odd width, rows that see nothing, and every float type.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

namespace {
struct Heads {
  int64_t batch, tokens, seen, heads, width;
};

std::string typeOf(std::initializer_list<int64_t> sizes, const std::string &element) {
  std::string text;
  for (int64_t size : sizes)
    text += std::to_string(size) + "x";
  return text + element;
}

void addBoth(KernelCases &cases, Heads h, const std::string &more, CaseOptions options = {},
             const std::string &element = "f32") {
  std::string query = typeOf({h.batch, h.tokens, h.heads * h.width}, element),
              key = typeOf({h.batch, h.seen, h.heads * h.width}, element),
              rows = typeOf({h.batch, h.tokens, h.heads}, element == "f64" ? element : "f32");
  std::string attributes = "head_width = " + std::to_string(h.width) + " : i64, scale = 0.125 : f64" + more;
  options.tolerance = std::max(options.tolerance, 4e-6);
  cases.add("dg.block_attention", {query, key, key}, attributes, options);
  // The logsumexp is positive and larger than any score, as in a step: weights are below 1.
  options.positive = true;
  cases.add("dg.block_attention_grad", {query, query, key, key, rows, rows}, attributes, options);
}
} // namespace

TEST(AttentionKernels, Causal) {
  KernelCases cases;
  for (Heads h : {Heads{2, 128, 128, 3, 64}, {1, 1, 1, 1, 1}, {1, 65, 65, 1, 31}, {3, 63, 63, 2, 8}})
    addBoth(cases, h, ", causal");
  cases.check();
}

TEST(AttentionKernels, AllSeen) {
  KernelCases cases;
  for (Heads h : {Heads{2, 7, 130, 2, 17}, {1, 130, 7, 1, 64}, {1, 1, 70, 2, 600}, {2, 3, 0, 1, 4}, {0, 3, 5, 1, 4}})
    addBoth(cases, h, "");
  cases.check();
}

/// Scores of some hundreds, whose rounding alone is 3e-5 of a weight.
TEST(AttentionKernels, LargeScores) {
  KernelCases cases;
  for (const char *more : {"", ", causal"})
    cases.add("dg.block_attention", {"1x100x32xf32", "1x100x32xf32", "1x100x32xf32"},
              "head_width = 16 : i64, scale = 4.0 : f64" + std::string(more), {.tolerance = 1e-4, .spread = 5});
  cases.check();
}

/// What a kind of attention needs besides its heads.
struct Sight {
  int64_t group = 1;
  std::string attributes = "", mask = ""; ///< sizes and element type
};

static void addSight(KernelCases &cases, Heads h, const Sight &sight, const std::string &element = "f32") {
  std::string query = typeOf({h.batch, h.tokens, sight.group * h.heads * h.width}, element),
              key = typeOf({h.batch, h.seen, h.heads * h.width}, element),
              rows = typeOf({h.batch, h.tokens, sight.group * h.heads}, element == "f64" ? element : "f32");
  std::vector<std::string> forward{query, key, key}, backward{query, query, key, key, rows, rows};
  if (!sight.mask.empty()) {
    forward.push_back(sight.mask);
    backward.push_back(sight.mask);
  }
  std::string attributes = "head_width = " + std::to_string(h.width) + " : i64, scale = 0.125 : f64" + sight.attributes;
  cases.add("dg.block_attention", forward, attributes, {.tolerance = 4e-6, .indexBound = 2});
  cases.add("dg.block_attention_grad", backward, attributes, {.tolerance = 4e-6, .positive = true, .indexBound = 2});
}

TEST(AttentionKernels, Groups) {
  KernelCases cases;
  addSight(cases, {2, 70, 70, 2, 16}, {3, ", causal"});
  addSight(cases, {1, 130, 65, 1, 8}, {4});
  addSight(cases, {2, 20, 20, 2, 24}, {2, ", causal"}, "bf16");
  addSight(cases, {1, 9, 9, 2, 5}, {2, ", causal"}, "f64");
  cases.check();
}

TEST(AttentionKernels, OffsetsAndWindows) {
  KernelCases cases;
  for (const char *attributes :
       {", causal, offset = 0 : i64, window = 1 : i64", ", causal, offset = 0 : i64, window = 64 : i64",
        ", causal, offset = 0 : i64, window = 65 : i64", ", causal, offset = 0 : i64, window = 1000 : i64"})
    for (int64_t tokens : {1, 63, 64, 65, 200})
      addSight(cases, {1, tokens, tokens, 1, 8}, {1, attributes});
  addSight(cases, {2, 1, 100, 2, 8}, {2, ", causal, offset = 99 : i64"});
  addSight(cases, {1, 70, 200, 1, 8}, {1, ", causal, offset = 130 : i64, window = 90 : i64"});
  addSight(cases, {1, 200, 130, 1, 8}, {1, ", causal, offset = 3 : i64, window = 150 : i64"});
  addSight(cases, {1, 130, 129, 1, 8}, {2, ", causal, offset = 7 : i64"});
  cases.check();
}

TEST(AttentionKernels, Masks) {
  KernelCases cases;
  for (const char *mask : {"2x4x70x90xf32", "4x70x90xf32", "70x90xf32", "90xf32", "70x1xf32", "2x1x1x90xf32", "1xf32"})
    addSight(cases, {2, 70, 90, 2, 8}, {2, "", mask});
  // Some rows see one token alone, or none by their mask: then all alike.
  for (const char *mask : {"2x1x66x66xi1", "66x66xi1", "2x1x1x66xi1", "2x2x66x1xi1", "i1"})
    addSight(cases, {2, 66, 66, 2, 8}, {1, "", mask});
  addSight(cases, {2, 66, 66, 1, 8}, {2, ", causal", "66x66xf32"});
  addSight(cases, {1, 20, 20, 2, 8}, {2, ", causal, offset = 0 : i64, window = 9 : i64", "20x20xbf16"}, "bf16");
  addSight(cases, {1, 20, 20, 2, 8}, {1, "", "20x20xi1"}, "f16");
  addSight(cases, {1, 9, 9, 2, 5}, {2, "", "1x4x9x9xf64"}, "f64");
  cases.check();
}

TEST(AttentionKernels, RotatedPairs) {
  for (const char *target : {"native", "x86-64-v3"}) {
    KernelCases cases(target);
    for (const char *interleaved : {"", "interleaved"}) {
      cases.add("dg.rotate_pairs", {"2x5x3x64xf32", "5x32xf32", "5x32xf32"}, interleaved);
      cases.add("dg.rotate_pairs", {"2x5x3x21xf32", "2x5x9xf32", "2x5x9xf32"}, interleaved);
      cases.add("dg.rotate_pairs", {"1x300x2x16xbf16", "300x8xbf16", "300x8xbf16"}, interleaved);
      cases.add("dg.rotate_pairs", {"1x1x1x2xf64", "1x1xf64", "1x1xf64"}, interleaved);
    }
    cases.check();
  }
}

TEST(AttentionKernels, OtherTypes) {
  KernelCases cases;
  for (const char *element : {"f64", "bf16", "f16"})
    addBoth(cases, {2, 20, 20, 2, 24}, ", causal", {}, element);
  cases.check();
}

TEST(AttentionKernels, NamedTarget) {
  KernelCases cases("x86-64-v3");
  addBoth(cases, {1, 30, 30, 2, 20}, ", causal");
  cases.check();
}
