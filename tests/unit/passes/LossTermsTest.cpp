// SPDX-License-Identifier: Apache-2.0
// Proves that any scalar is a loss: a sum of terms trains as the formulas say that it must, and split over data, tensor
// and pipe with uneven batches as it does whole.
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/passes/SplitCases.h"

#include <gtest/gtest.h>

using namespace dg::passes::test;

namespace {

const std::vector<int64_t> uneven = {8, 8, 3, 8, 1};
const std::vector<std::string> meshes = {"", "data=4", "tensor=2", "pipe=2", "data=2,tensor=2,pipe=2"};

/// A perceptron with predictions %p, and what makes the loss of it.
std::string perceptron(const std::string &loss) {
  return R"(
    dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?x2xf32>) {
      %w1 = dg.parameter "w1" tensor<8x6xf32> uniform 0.4
      %w2 = dg.parameter "w2" tensor<2x8xf32> uniform 0.4
      %h = dg.linear %x, %w1
      %t = dg.tanh %h
      %p = dg.linear %t, %w2
)" + loss +
         R"(
      dg.return %loss
    })";
}

const char *squares = R"(
      %d = dg.sub %p, %y
      %square = dg.mul %d, %d
      %loss = dg.reduce_mean %square {dims = array<i64: 0, 1>})";

const char *regularised = R"(
      %fit = dg.mse %p, %y
      %r1 = dg.reduce_sum_square %w1 {dims = array<i64: 0, 1>}
      %r2 = dg.reduce_sum_square %w2 {dims = array<i64: 0, 1>}
      %r = dg.add %r1, %r2
      %penalty = dg.scale %r {factor = 0.05}
      %loss = dg.add %fit, %penalty)";

/// An autoencoder that samples its code: how well it restores, and how far the code is from normal numbers.
const char *variational = R"(
    dg.graph @loss(%x: tensor<?x6xf32>) {
      %we = dg.parameter "encoder" tensor<4x6xf32> uniform 0.4
      %wm = dg.parameter "mean" tensor<2x4xf32> uniform 0.4
      %wv = dg.parameter "variance" tensor<2x4xf32> uniform 0.4
      %wd = dg.parameter "decoder" tensor<6x2xf32> uniform 0.4
      %h = dg.linear %x, %we
      %t = dg.tanh %h
      %mu = dg.linear %t, %wm
      %lv = dg.linear %t, %wv
      %noise = dg.random_normal %mu
      %half = dg.scale %lv {factor = 0.5}
      %sd = dg.exp %half
      %n = dg.mul %noise, %sd
      %z = dg.add %mu, %n
      %logits = dg.linear %z, %wd
      %target = dg.sigmoid %x
      %restored = dg.bce_with_logits %logits, %target
      %mu2 = dg.mul %mu, %mu
      %var = dg.exp %lv
      %a = dg.sub %lv, %mu2
      %b = dg.sub %a, %var
      %one = dg.constant {value = 1.0, type = tensor<f32>}
      %c = dg.add %b, %one
      %each = dg.reduce_sum %c {dims = array<i64: 1>}
      %kl = dg.reduce_mean %each {dims = array<i64: 0>}
      %weight = dg.constant {value = -0.05, type = tensor<f32>}
      %kl_term = dg.mul %kl, %weight
      %loss = dg.add %restored, %kl_term
      dg.return %loss
    })";

/// A student with a head of classes, a frozen teacher whose probabilities it follows, and an auxiliary head.
const char *distilled = R"(
    dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?xi32>, %v: tensor<?x3xf32>) {
      %w1 = dg.parameter "w1" tensor<8x6xf32> uniform 0.4
      %w2 = dg.parameter "w2" tensor<5x8xf32> uniform 0.4
      %wa = dg.parameter "auxiliary" tensor<3x8xf32> uniform 0.4
      %wt = dg.parameter "teacher" tensor<5x6xf32> uniform 0.9 {frozen}
      %h = dg.linear %x, %w1
      %t = dg.tanh %h
      %logits = dg.linear %t, %w2
      %guess = dg.linear %t, %wa
      %taught = dg.linear %x, %wt
      %soft = dg.softmax %taught
      %own = dg.log_softmax %logits
      %hard = dg.cross_entropy %logits, %y {label_smoothing = 0.1, ignore_index = 3}
      %far = dg.kl_div %own, %soft
      %helps = dg.l1 %guess, %v
      %third = dg.constant {value = 3.0, type = tensor<f32>}
      %less = dg.div %helps, %third
      %both = dg.sub %hard, %less
      %neg = dg.neg %both
      %more = dg.sub %far, %neg
      dg.return %more
    })";

TEST(LossTerms, AMeanOfSquaresIsMse) {
  expectEqualTexts(perceptron(squares), perceptron("%loss = dg.mse %p, %y"), "sgd:lr=0.05", "sgd:lr=0.05", uneven);
}

TEST(LossTerms, SquaredParametersAreWeightDecay) {
  // The gradient of 0.05 · |w|² is 0.1 · w, what the optimizer adds for weight_decay=0.1 before its momentum.
  expectEqualTexts(perceptron(regularised), perceptron("%loss = dg.mse %p, %y"), "sgd:lr=0.05,momentum=0.9",
                   "sgd:lr=0.05,momentum=0.9,weight_decay=0.1", uneven, /*comparesLosses=*/false);
}

TEST(LossTerms, Regularised) { expectTextEqual(perceptron(regularised), {10, 10, 3, 10, 1}, meshes, {1, 2}); }
TEST(LossTerms, MeanOfSquares) { expectTextEqual(perceptron(squares), {10, 10, 3, 10, 1}, meshes, {1, 2}); }
TEST(LossTerms, Variational) { expectTextEqual(variational, {12, 12, 5, 12, 1}, meshes, {1, 2}); }
TEST(LossTerms, Distilled) { expectTextEqual(distilled, {12, 12, 5, 12, 1}, meshes, {1}); }

TEST(LossTerms, RootOfAMeanNeedsTheWholeBatch) {
  const std::string root = perceptron(R"(
      %mean = dg.mse %p, %y
      %loss = dg.sqrt %mean)");
  expectTextEqual(root, {8, 8, 3, 8}, meshes, {1});
  expectRejected(root, 8, {"data=2", 2}, "makes the loss something else than a mean over samples");
}

TEST(LossTerms, ASumOverSamplesIsThatOfAFullBatch) {
  const std::string sum = perceptron(R"(
      %d = dg.sub %p, %y
      %square = dg.mul %d, %d
      %all = dg.reduce_sum %square {dims = array<i64: 0, 1>}
      %loss = dg.scale %all {factor = 0.0625})"); // 8 samples of 2
  expectTextEqual(sum, {8, 8, 8}, meshes, {1});
  expectEqualTexts(sum, perceptron("%loss = dg.mse %p, %y"), "sgd:lr=0.05", "sgd:lr=0.05", {8, 8, 8});
  expectRejected(sum, 8, {"data=2", 2}, "adds up samples in the loss");
  expectRejected(sum, 7, {"data=2", 1}, "adds up samples in the loss");
}

TEST(LossTerms, TokensMayBeRows) {
  // Rows of a sample's tokens, as models in PyTorch flatten them before the loss.
  const char *text = R"(
    dg.graph @loss(%x: tensor<?x5x6xf32>, %y: tensor<?x5xi32>) {
      %w = dg.parameter "w" tensor<4x6xf32> uniform 0.4
      %p = dg.linear %x, %w
      %rows = dg.reshape %p {shape = array<i64: -1, 4>}
      %targets = dg.reshape %y {shape = array<i64: -1>}
      %loss = dg.cross_entropy %rows, %targets
      dg.return %loss
    })";
  const char *whole = R"(
    dg.graph @loss(%x: tensor<?x5x6xf32>, %y: tensor<?x5xi32>) {
      %w = dg.parameter "w" tensor<4x6xf32> uniform 0.4
      %p = dg.linear %x, %w
      %loss = dg.cross_entropy %p, %y
      dg.return %loss
    })";
  expectEqualTexts(text, whole, "sgd:lr=0.05", "sgd:lr=0.05", uneven);
  expectTextEqual(text, {8, 8, 3, 8}, {"", "data=2", "pipe=2"}, {1, 2});
}

TEST(LossTerms, WhatIsNoMeanIsRefused) {
  expectRejected(perceptron("%loss = dg.reduce_max %p {dims = array<i64: 0, 1>}"), 8, {}, "something else than a mean");
  expectRejected(perceptron("%loss = dg.reduce_sum_square %w1 {dims = array<i64: 0, 1>}"), 8, {},
                 "depends on no sample");
  expectRejected(perceptron("%loss = dg.reduce_mean %p {dims = array<i64: 1>}"), 8, {}, "a scalar of floats");
  expectRejected(perceptron("%n = dg.transpose %p {permutation = array<i64: 1, 0>}\n"
                            "%o = dg.transpose %y {permutation = array<i64: 1, 0>}\n%loss = dg.mse %n, %o"),
                 8, {}, "does not count the 8 samples");
}

} // namespace
