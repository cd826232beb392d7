// SPDX-License-Identifier: Apache-2.0
// Proves that products of bf16 in the tiles of AMX are those of the reference evaluation, in every form and around
// every limit of a tile, a panel and a slice: the machine code of `--target sapphirerapids` runs on the processor where
// it has AMX, and through the emulator where it lacks nothing else.
#include "tests/unit/codegen/KernelCases.h"
#include "tests/unit/codegen/TileEmulator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <asm/prctl.h>
#include <optional>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dg::codegen;

namespace {

class TileProducts : public testing::Test {
protected:
  void SetUp() override {
    std::string error;
    auto host = Target::parse("native", error)->requiredFeatures();
    std::string lacking;
    bool hasTiles = true;
    for (const std::string &feature : Target::parse("sapphirerapids", error)->requiredFeatures())
      if (!llvm::is_contained(host, feature)) {
        if (llvm::StringRef(feature).starts_with("amx-"))
          hasTiles = false;
        else
          lacking += " " + feature;
      }
    if (!lacking.empty())
      GTEST_SKIP() << "this processor lacks" << lacking << ", which are not emulated";
    if (!hasTiles) {
      emulator.emplace();
      return;
    }
    constexpr long requestPermission = 0x1023, tileData = 18;
    if (syscall(SYS_arch_prctl, requestPermission, tileData) != 0)
      GTEST_SKIP() << "the kernel of this host does not give tiles to processes";
  }

  /// Compares all cases, and sees to it that tiles were what multiplied.
  void check(KernelCases &cases) {
    uint64_t before = dg::test::TileEmulator::numProducts();
    cases.check();
    if (emulator) {
      EXPECT_GT(dg::test::TileEmulator::numProducts(), before);
    }
  }

  std::optional<dg::test::TileEmulator> emulator;
};

std::string dims(int64_t rows, int64_t columns, const std::string &type) {
  return std::to_string(rows) + "x" + std::to_string(columns) + "x" + type;
}

struct Form {
  bool turnsLeft, turnsRight;
  bool isWide; ///< the result is f32 and shows the sums; one of bf16 may be off by a unit
  bool hasSpecials = false;
};

void addForm(KernelCases &cases, int64_t m, int64_t n, int64_t k, const std::string &lhs, const std::string &rhs,
             Form form) {
  CaseOptions options{.tolerance = form.isWide ? 3e-6 : 0x1p-8, .specials = form.hasSpecials, .stored = true};
  std::vector<std::string> attributes;
  if (form.turnsLeft)
    attributes.push_back("transpose_lhs");
  if (form.turnsRight)
    attributes.push_back("transpose_rhs");
  if (form.isWide)
    attributes.push_back("to = f32");
  cases.add("dg.matmul",
            {form.turnsLeft ? dims(k, m, lhs) : dims(m, k, lhs), form.turnsRight ? dims(n, k, rhs) : dims(k, n, rhs)},
            llvm::join(attributes, ", "), options);
}

void addAllForms(KernelCases &cases, int64_t m, int64_t n, int64_t k, const std::string &lhs, const std::string &rhs,
                 bool isWide, bool hasSpecials = false) {
  for (bool turnsLeft : {false, true})
    for (bool turnsRight : {false, true})
      addForm(cases, m, n, k, lhs, rhs, {turnsLeft, turnsRight, isWide, hasSpecials});
}

TEST_F(TileProducts, WholeTilesAndTheirEdges) {
  KernelCases cases("sapphirerapids");
  for (auto [m, n, k] : std::initializer_list<std::tuple<int, int, int>>{{16, 16, 32},
                                                                         {32, 32, 64},
                                                                         {48, 48, 96}, // one panel and a tile
                                                                         {33, 17, 34}, // one more than a tile each
                                                                         {31, 47, 62}, // one less
                                                                         {15, 15, 30},
                                                                         {9, 100, 130},
                                                                         {100, 9, 66}})
    addAllForms(cases, m, n, k, "bf16", "bf16", /*isWide=*/true);
  addAllForms(cases, 64, 37, 64, "f32", "bf16", /*isWide=*/true);
  addAllForms(cases, 29, 40, 130, "bf16", "f32", /*isWide=*/false);
  cases.add("dg.matmul", {"3x40x66xbf16", "3x66x20xbf16"}, "to = f32", {.tolerance = 3e-6, .stored = true});
  check(cases);
}

TEST_F(TileProducts, SlicesOfTheDepthAndBlocks) {
  KernelCases cases("sapphirerapids");
  for (bool isWide : {true, false}) {
    addAllForms(cases, 48, 40, 2112, "bf16", "bf16", isWide);
    addAllForms(cases, 61, 45, 2100, "bf16", "bf16", isWide);
  }
  addAllForms(cases, 40, 40, 2048, "bf16", "bf16", /*isWide=*/false);  // rows 4 KiB apart, which are packed
  addAllForms(cases, 300, 1060, 48, "bf16", "bf16", /*isWide=*/false); // many blocks
  check(cases);
}

TEST_F(TileProducts, RandomShapes) {
  constexpr unsigned seed = 20261117;
  RecordProperty("seed", int(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  KernelCases cases("sapphirerapids");
  auto coin = [&] { return random() % 2 == 0; };
  for (int i = 0; i < 24; ++i) {
    int64_t m = 1 + random() % 80, n = 1 + random() % 80, k = 1 + random() % 200;
    const char *right = coin() ? "bf16" : "f32";
    addForm(cases, m, n, k, "bf16", right, {.turnsLeft = coin(), .turnsRight = coin(), .isWide = coin()});
  }
  check(cases);
}

TEST_F(TileProducts, PaddingDoesNotMeetInfinitiesAndNan) {
  KernelCases cases("sapphirerapids");
  addAllForms(cases, 20, 19, 38, "bf16", "bf16", /*isWide=*/true, /*hasSpecials=*/true);
  addAllForms(cases, 33, 40, 66, "bf16", "bf16", /*isWide=*/false, /*hasSpecials=*/true);
  check(cases);
}

TEST(TileCode, OnlyWhereTheTargetHasTiles) {
  auto codeFor = [](const char *target, const std::vector<std::string> &types) {
    KernelCases cases(target);
    mlir::Operation *op = cases.make("dg.matmul", types, "");
    EXPECT_TRUE(mlir::succeeded(cases.kernels().addKernel(op)));
    std::string code;
    llvm::raw_string_ostream os(code);
    EXPECT_TRUE(mlir::succeeded(cases.kernels().emitAsm(os)));
    return code;
  };
  auto count = [](const std::string &code, llvm::StringRef word) { return llvm::StringRef(code).count(word); };
  std::string tiles = codeFor("sapphirerapids", {"64x64xbf16", "64x64xbf16"});
  EXPECT_GT(count(tiles, "tdpbf16ps"), 0u);
  EXPECT_EQ(count(tiles, "ldtilecfg"), 1u) << "configured once in a call, not in a loop";
  EXPECT_EQ(count(codeFor("x86-64-v4", {"64x64xbf16", "64x64xbf16"}), "tdpbf16ps"), 0u);
  EXPECT_EQ(count(codeFor("sapphirerapids", {"64x64xf16", "64x64xf16"}), "tdpbf16ps"), 0u);
  // One row would be padded to sixteen.
  std::string vectors = codeFor("sapphirerapids", {"1x64xbf16", "64x64xbf16"});
  EXPECT_EQ(count(vectors, "tdpbf16ps"), 0u);
  EXPECT_GT(count(vectors, "vdpbf16ps"), 0u);
}

} // namespace
