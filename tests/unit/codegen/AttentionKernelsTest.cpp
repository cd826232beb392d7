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
