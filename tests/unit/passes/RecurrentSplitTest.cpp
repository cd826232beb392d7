// SPDX-License-Identifier: Apache-2.0
// Proves that recurrent nets train split as they do whole, where products of all steps are taken out of scans and
// weights are packed on the local types of each rank. States are wide enough for the tape to keep products.
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/passes/SplitCases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace dg::passes::test;

namespace {

const std::vector<std::string> meshes = {"", "data=2", "tensor=2", "pipe=2", "data=2,tensor=2,pipe=2"};

/// Two layers over sequences [samples, time, in], and a prediction from the last state.
std::string model(const std::string &op, int64_t gates, const std::string &attributes, bool isBidirectional = false) {
  int64_t directions = isBidirectional ? 2 : 1, hidden = 20, width = directions * hidden;
  std::string cell = op == "lstm" ? ", %c{0}" : "";
  auto layer = [&](int number, int64_t in, const std::string &input) {
    return fmt::format(R"(
      %w{0} = dg.parameter "w{0}" tensor<{1}x{2}x{3}xf32> uniform 0.3
      %r{0} = dg.parameter "r{0}" tensor<{1}x{2}x{4}xf32> uniform 0.3
      %b{0} = dg.parameter "b{0}" tensor<{1}x{5}xf32> uniform 0.3
      %y{0}, %h{0}{6} = dg.{7} {8}, %w{0}, %r{0}, %b{0} {{extra = ["bias"]{9}}}
      %t{0} = dg.transpose %y{0} {{permutation = array<i64: 0, 2, 1, 3>}}
      %z{0} = dg.reshape %t{0} {{shape = array<i64: 0, 0, {10}>}})",
                       number, directions, gates * hidden, in, hidden, 2 * gates * hidden,
                       cell.empty() ? "" : fmt::format(", %c{}", number), op, input, attributes, width);
  };
  return fmt::format(R"(
    dg.graph @loss(%x: tensor<?x5x18xf32>, %y: tensor<?x2xf32>) {{
      %xt = dg.transpose %x {{permutation = array<i64: 1, 0, 2>}}{}{}
      %last = dg.slice %z2 {{starts = array<i64: 4, 0, 0>, sizes = array<i64: 1, -1, -1>}}
      %flat = dg.reshape %last {{shape = array<i64: -1, {}>}}
      %v = dg.parameter "v" tensor<2x{}xf32> uniform 0.3
      %p = dg.linear %flat, %v
      %loss = dg.mse %p, %y
      dg.return %loss
    }})",
                     layer(1, 18, "%xt"), layer(2, width, "%z1"), width, width);
}

TEST(RecurrentSplit, Rnn) { expectTextEqual(model("rnn", 1, ""), {8, 8, 3}, meshes, {1, 2}); }
TEST(RecurrentSplit, Lstm) { expectTextEqual(model("lstm", 4, ""), {8, 8, 3}, meshes, {1, 2}); }
TEST(RecurrentSplit, Gru) {
  expectTextEqual(model("gru", 3, ", linear_before_reset"), {8, 8, 3}, meshes, {1});
  expectTextEqual(model("gru", 3, ""), {8, 8}, {"", "data=2"}, {1});
}
TEST(RecurrentSplit, Bidirectional) {
  expectTextEqual(model("lstm", 4, ", direction = \"bidirectional\"", true), {8, 8}, {"", "data=2", "pipe=2"}, {1, 2});
}

/// A cell that nobody named: its products with the input, its weights and their sums are found all the same.
TEST(RecurrentSplit, OwnCell) {
  expectTextEqual(R"(
    dg.graph @loss(%x: tensor<?x5x18xf32>, %y: tensor<?x20xf32>) {
      %xt = dg.transpose %x {permutation = array<i64: 1, 0, 2>}
      %u = dg.parameter "u" tensor<18x20xf32> uniform 0.3
      %w = dg.parameter "w" tensor<20x20xf32> uniform 0.3
      %g = dg.parameter "g" tensor<20xf32> uniform 0.3
      %x0 = dg.slice %xt {starts = array<i64: 0, 0, 0>, sizes = array<i64: 1, -1, -1>}
      %f = dg.reshape %x0 {shape = array<i64: -1, 18>}
      %h0 = dg.matmul %f, %u
      %last, %all = dg.scan carry(%h = %h0) over(%s = %xt) with(%wu = %u, %ww = %w, %wg = %g) {
        %a = dg.matmul %s, %wu
        %gate = dg.sigmoid %wg
        %m = dg.matmul %h, %ww
        %b = dg.add %a, %m
        %t = dg.tanh %b
        %k = dg.mul %t, %gate
        %n = dg.add %k, %h
        %o = dg.matmul %n, %ww {transpose_rhs}
        dg.return %n, %o
      }
      %sum = dg.reduce_mean %all {dims = array<i64: 0>}
      %p = dg.add %sum, %last
      %loss = dg.mse %p, %y
      dg.return %loss
    })",
                  {8, 8, 3}, {"", "data=2", "pipe=2"}, {1, 2});
}

} // namespace
