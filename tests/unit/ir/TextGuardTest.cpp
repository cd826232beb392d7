// SPDX-License-Identifier: Apache-2.0
// Proves that the guard lets every model pass and names the place of what MLIR's parser or a verifier must not see.
#include "ir/dialect/TextGuard.h"

#include <gtest/gtest.h>

using namespace dg::ir;

namespace {

/// "line:column: message", or "" where the text may be parsed.
std::string faultOf(const std::string &text) {
  auto fault = findTextFault(text);
  return fault ? std::to_string(fault->line) + ":" + std::to_string(fault->column) + ": " + fault->message : "";
}

std::string graphOf(const std::string &type) { return "dg.graph @f(%x: " + type + ") {\n  dg.return %x\n}\n"; }

void expectFault(const std::string &text, const std::string &begin) {
  EXPECT_EQ(faultOf(text).substr(0, begin.size()), begin) << "of " << text.substr(0, 100);
}

} // namespace

TEST(TextGuard, ModelsPass) {
  for (const char *type : {"tensor<f32>", "tensor<?x10xf32>", "tensor< 2 x 3 x bf16 >", "tensor<0x4xui8>",
                           "tensor<2xi1>", "tensor<281474976710656xf64>", "tensor<*xf32>"})
    EXPECT_EQ(faultOf(graphOf(type)), "") << type;
  EXPECT_EQ(faultOf("// affine_map ((((\n%affine_map2 = dg.literal {name = \"affine_map<\\\" tensor<2xq>\"}"), "");
  EXPECT_EQ(faultOf(std::string(256, '(') + std::string(256, ')') + std::string(256, '[')), "");
  EXPECT_EQ(faultOf("-> -> -> \xc3\xa4"), "");
  EXPECT_EQ(faultOf("#p = 1 // %x ({\nmodule attributes {name = \"%x ({\"} {\n" + graphOf("tensor<f32>") + "}"), "");
  EXPECT_EQ(faultOf("dg.graph @affine_map(%affine_set: tensor<f32>) {\n  %module = dg.relu %affine_set\n}"), "");
}

TEST(TextGuard, NoText) {
  expectFault(std::string("ab\n\0c", 5), "2:1: found byte 0x0, expected a model in the dg dialect");
  expectFault("a\xff", "1:2: found byte 0xff,");
  expectFault(std::string(maxTextBytes + 1, ' '), "1:1: found 268435457 bytes of text, expected at most 268435456");
}

TEST(TextGuard, WhatTheParserRecursesOn) {
  expectFault("\n" + std::string(257, '<'), "2:257: found brackets nested more than 256 deep");
  expectFault("#m = affine_map<(d0) -> (d0)>", "1:6: found affine_map, expected a model in the dg dialect");
  expectFault("#m = affine_set<(d0) : (d0 == 0)>", "1:6: found affine_set,");
}

TEST(TextGuard, RegionsWithNamesThatTheParserConfuses) {
  expectFault("\"dg.graph\"() ({\n})",
              "1:14: found a region in MLIR's generic form, expected a model in the dg dialect");
  expectFault("\"dg.graph\"() ( // comment\n {", "1:14: found a region in MLIR's generic form");
  expectFault("%y = dg.relu %x\nmodule {", "2:1: found a module behind a value, expected a model in the dg dialect");
  expectFault("%y = dg.relu %x\nbuiltin.module {", "2:1: found a module behind a value");
}

TEST(TextGuard, TensorsThatNoKernelHolds) {
  expectFault(graphOf("tensor<281474976710657xf32>"),
              "1:17: found tensor<281474976710657xf32>, expected a tensor of at most 32 dimensions and 2^48 elements");
  expectFault(graphOf("tensor<9223372036854775807x2xf32>"), "1:17: found tensor<9223372036854775807x2xf32>, expected");
  expectFault(graphOf("tensor<99999999999999999999xf32>"), "1:17: found tensor<99999999999999999999xf32>, expected");
  expectFault(graphOf("tensor // comment\n  <9223372036854775807x2xf32>"), "1:17: found tensor // comment");
  expectFault(graphOf("tensor<2 // comment\n x 9223372036854775807xf32>"), "1:17: found tensor<2");
  std::string deep;
  for (int i = 0; i < 33; ++i)
    deep += "1x";
  expectFault(graphOf("tensor<" + deep + "f32>"), "1:17: found tensor<1x1x1x");
  expectFault(graphOf("tensor<2xcomplex<f32>>"), "1:17: found a tensor of 'complex', expected numbers or booleans");
  expectFault(graphOf("tensor<2xindex>"), "1:17: found a tensor of 'index',");
  expectFault(graphOf("tensor<2xi7>"), "1:17: found a tensor of 'i7',");
  expectFault(graphOf("tensor<2x!dg.any>"), "1:17: found a tensor of '',");
  expectFault(graphOf("tensor<2xf32, \"encoding\">"), "1:17: found a tensor with an encoding");
}
