// SPDX-License-Identifier: Apache-2.0
// Proves that products in bf16 and f16 are sums in f32 of rounded factors, in every form and around every blocking
// limit, on each target that the host can run; and that every cast between floats rounds as a table says.
#include "ir/dialect/ElementTypes.h"
#include "runtime/abi/KernelAbi.h"
#include "tests/unit/codegen/KernelCases.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace dg::codegen;

namespace {

std::vector<std::string> targetsOfHost() {
  std::string error;
  auto host = Target::parse("native", error)->requiredFeatures();
  std::vector<std::string> names = {"native"};
  for (const char *name : {"x86-64-v3", "x86-64-v4", "sapphirerapids"})
    if (llvm::all_of(Target::parse(name, error)->requiredFeatures(),
                     [&](const std::string &feature) { return llvm::is_contained(host, feature); }))
      names.push_back(name);
  return names;
}

std::string dims(int64_t rows, int64_t columns, const std::string &type) {
  return std::to_string(rows) + "x" + std::to_string(columns) + "x" + type;
}

void addAllForms(KernelCases &cases, int64_t m, int64_t n, int64_t k, const std::string &lhs, const std::string &rhs,
                 const std::string &to, CaseOptions options) {
  std::string attributes = to.empty() ? "" : "to = " + to;
  auto with = [&](std::string flags) {
    return attributes.empty() ? flags : flags.empty() ? attributes : flags + ", " + attributes;
  };
  cases.add("dg.matmul", {dims(m, k, lhs), dims(k, n, rhs)}, with(""), options);
  cases.add("dg.matmul", {dims(m, k, lhs), dims(n, k, rhs)}, with("transpose_rhs"), options);
  cases.add("dg.matmul", {dims(k, m, lhs), dims(k, n, rhs)}, with("transpose_lhs"), options);
  cases.add("dg.matmul", {dims(k, m, lhs), dims(n, k, rhs)}, with("transpose_lhs, transpose_rhs"), options);
}

TEST(HalfProducts, SumsInF32OfRoundedFactors) {
  for (const std::string &target : targetsOfHost()) {
    if (target == "x86-64-v4") // the loops of x86-64-v3 with longer vectors
      continue;
    SCOPED_TRACE(target);
    KernelCases cases(target.c_str());
    for (std::string type : {"bf16", "f16"}) {
      // Results in f32 show the sums; those of 16 bits may be off by one unit where a sum lies between two of them.
      CaseOptions wide{.tolerance = 3e-6, .stored = true},
          narrow{.tolerance = type == "bf16" ? 0x1p-8 : 0x1p-11, .stored = true};
      for (auto [m, n, k] : std::initializer_list<std::tuple<int, int, int>>{{3, 5, 7}, {13, 33, 32}, {29, 40, 1030}})
        addAllForms(cases, m, n, k, type, type, "f32", wide);
      addAllForms(cases, 61, 45, 2100, type, type, "", narrow);
      addAllForms(cases, 29, 40, 130, type, "f32", "f32", wide);
      addAllForms(cases, 16, 20, 34, "f32", type, "", narrow);
      cases.add("dg.matmul", {"3x40x66x" + type, "3x66x20x" + type}, "to = f32", wide);
      cases.add("dg.matmul", {"300x96x" + type, "96x4096x" + type}, "to = f32", wide);
    }
    cases.check();
  }
}

TEST(HalfProducts, AttentionNormsAndLossesAreF32Inside) {
  KernelCases cases;
  for (std::string type : {"bf16", "f16"}) {
    auto t = [&](const char *shape) { return std::string(shape) + "x" + type; };
    cases.add("dg.block_attention", {t("2x70x32"), t("2x70x32"), t("2x70x32")},
              "head_width = 16 : i64, scale = 0.25 : f64, causal");
    cases.add("dg.block_attention_grad",
              {t("2x70x32"), t("2x70x32"), t("2x70x32"), t("2x70x32"), "2x70x2xf32", "2x70x2xf32"},
              "head_width = 16 : i64, scale = 0.25 : f64, causal", {.tolerance = 2e-5});
    cases.add("dg.layer_norm", {t("7x19"), "19xf32", "19xf32"});
    cases.add("dg.layer_norm_grad", {t("7x19"), t("7x19"), "19xf32"});
    cases.add("dg.pick_log_softmax", {t("7x19"), "7xi32"}, "", {.indexBound = 19});
    cases.add("dg.pick_log_softmax_grad", {"7xf32", "7xf32", t("7x19"), "7xi32", "7xf32"}, "", {.indexBound = 19});
    cases.add("dg.conv2d_input_grad", {t("2x4x6x7"), t("4x3x3x3")}, "input_size = array<i64: 8, 9>");
    cases.add("dg.conv2d_weight_grad", {t("2x40x6x7"), t("2x30x8x9")}, "kernel_size = array<i64: 3, 3>");
  }
  cases.check();
}

/// What a number becomes in each type. Bits are written out: they are the definition, not computed by what is tested.
struct Rounding {
  float number;
  uint16_t bf16, f16;
};

const Rounding table[] = {
    {0.0f, 0x0000, 0x0000},
    {-0.0f, 0x8000, 0x8000},
    {1.0f, 0x3f80, 0x3c00},
    {-2.0f, 0xc000, 0xc000},
    {0x1.01p0f, 0x3f80, 0x3c04},    // bf16: half way, to even below
    {0x1.03p0f, 0x3f82, 0x3c0c},    // bf16: half way, to even above
    {0x1.01002p0f, 0x3f81, 0x3c04}, // just above half way
    {0x1.002p0f, 0x3f80, 0x3c00},   // f16: half way, to even below
    {0x1.006p0f, 0x3f80, 0x3c02},   // f16: half way, to even above
    {0x1.00202p0f, 0x3f80, 0x3c01}, // just above half way
    {65504.0f, 0x4780, 0x7bff},     // the largest f16
    {65519.996f, 0x4780, 0x7bff},   // still rounds down
    {65520.0f, 0x4780, 0x7c00},     // half way to the next: infinity
    {-1e30f, 0xf14a, 0xfc00},
    {0x1.fffffep127f, 0x7f80, 0x7c00}, // the largest f32 rounds to infinity in bf16
                                       // too
    {0x1.fep127f, 0x7f7f, 0x7c00},     // the largest bf16
    {0x1p-14f, 0x3880, 0x0400},        // the smallest normal f16
    {0x1p-24f, 0x3380, 0x0001},        // the smallest subnormal f16
    {0x1p-25f, 0x3300, 0x0000},        // half of it: to even, 0
    {0x1.8p-24f, 0x33c0, 0x0002},      // one and a half of it: to even, 2
    {0x1.0002p-25f, 0x3300, 0x0001},   // just above half
    {0x1.ff8p-15f, 0x3880, 0x03ff},    // the largest subnormal f16, which rounds up in bf16
    {0x1p-126f, 0x0080, 0x0000},       // the smallest normal f32 and bf16
    {0x1p-133f, 0x0001, 0x0000},       // the smallest subnormal bf16
    {0x1p-134f, 0x0000, 0x0000},       // half of it: to even, 0
    {0x1.8p-133f, 0x0002, 0x0000},     // one and a half of it: to even, 2
    {-0x1p-149f, 0x8000, 0x8000},      // the smallest subnormal f32
    {INFINITY, 0x7f80, 0x7c00},
    {-INFINITY, 0xff80, 0xfc00},
};

float bf16Number(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }
float f16Number(uint16_t bits) { return float(std::bit_cast<_Float16>(bits)); }

TEST(Casts, TheReferenceRoundsAsTheTableSays) {
  mlir::MLIRContext context;
  mlir::Type bf16 = mlir::BFloat16Type::get(&context), f16 = mlir::Float16Type::get(&context),
             f32 = mlir::Float32Type::get(&context);
  for (const Rounding &row : table) {
    SCOPED_TRACE(row.number);
    EXPECT_EQ(std::bit_cast<uint64_t>(dg::ir::storedElement(row.number, bf16)),
              std::bit_cast<uint64_t>(double(bf16Number(row.bf16))));
    EXPECT_EQ(std::bit_cast<uint64_t>(dg::ir::storedElement(row.number, f16)),
              std::bit_cast<uint64_t>(double(f16Number(row.f16))));
    EXPECT_EQ(dg::ir::storedElement(row.number, f32), double(row.number));
  }
  for (mlir::Type type : {bf16, f16, f32})
    EXPECT_TRUE(std::isnan(dg::ir::storedElement(NAN, type)));
}

/// Runs one cast kernel of `count` elements.
template <typename From, typename To>
std::vector<To> castAll(const std::string &target, const char *from, const char *to, const std::vector<From> &input) {
  KernelCases cases(target.c_str());
  std::string type = std::to_string(input.size()) + "x" + from;
  mlir::Operation *op = cases.make("dg.cast", {type}, std::string("to = ") + to);
  EXPECT_NE(op, nullptr);
  auto spec = cases.kernels().addKernel(op);
  EXPECT_TRUE(mlir::succeeded(spec));
  auto bytes = cases.kernels().emitObject();
  EXPECT_TRUE(mlir::succeeded(bytes));
  LoadedObject object(*bytes);
  auto *kernel = reinterpret_cast<dg_kernel>(object.find(spec->symbol));
  // Kernels count on buffers that begin a cache line.
  auto round = [](size_t size) { return (size + 63) / 64 * 64; };
  std::unique_ptr<void, decltype(&std::free)> in(std::aligned_alloc(64, round(input.size() * sizeof(From))), std::free),
      out(std::aligned_alloc(64, round(input.size() * sizeof(To))), std::free);
  std::memcpy(in.get(), input.data(), input.size() * sizeof(From));
  void *buffers[] = {in.get(), out.get()};
  dg_scalars scalars{};
  for (uint32_t tile = 0; tile < spec->tiles; ++tile)
    kernel(buffers, &scalars, tile);
  std::vector<To> result(input.size());
  std::memcpy(result.data(), out.get(), result.size() * sizeof(To));
  return result;
}

TEST(Casts, KernelsRoundAsTheTableSays) {
  std::vector<float> numbers;
  std::vector<double> doubles;
  std::vector<uint16_t> asBf16, asF16;
  for (const Rounding &row : table) {
    numbers.push_back(row.number);
    doubles.push_back(row.number);
    asBf16.push_back(row.bf16);
    asF16.push_back(row.f16);
  }
  auto bitsOf = [](const std::vector<float> &values) {
    std::vector<uint32_t> bits;
    for (float value : values)
      bits.push_back(std::bit_cast<uint32_t>(value));
    return bits;
  };
  std::vector<float> wideBf16, wideF16;
  for (size_t i = 0; i < numbers.size(); ++i) {
    wideBf16.push_back(bf16Number(asBf16[i]));
    wideF16.push_back(f16Number(asF16[i]));
  }
  for (const std::string &target : targetsOfHost()) {
    SCOPED_TRACE(target);
    EXPECT_EQ((castAll<float, uint16_t>(target, "f32", "bf16", numbers)), asBf16);
    EXPECT_EQ((castAll<float, uint16_t>(target, "f32", "f16", numbers)), asF16);
    EXPECT_EQ((castAll<double, uint16_t>(target, "f64", "bf16", doubles)), asBf16);
    EXPECT_EQ((castAll<double, uint16_t>(target, "f64", "f16", doubles)), asF16);
    EXPECT_EQ(bitsOf(castAll<uint16_t, float>(target, "bf16", "f32", asBf16)), bitsOf(wideBf16));
    EXPECT_EQ(bitsOf(castAll<uint16_t, float>(target, "f16", "f32", asF16)), bitsOf(wideF16));
    // One type to the other, through f32, which holds both.
    std::vector<uint16_t> fromBf16 = castAll<uint16_t, uint16_t>(target, "bf16", "f16", asBf16);
    std::vector<uint16_t> fromF16 = castAll<uint16_t, uint16_t>(target, "f16", "bf16", asF16);
    EXPECT_EQ(fromBf16, (castAll<float, uint16_t>(target, "f32", "f16", wideBf16)));
    EXPECT_EQ(fromF16, (castAll<float, uint16_t>(target, "f32", "bf16", wideF16)));
  }
}

TEST(Casts, NanStaysNan) {
  // Quiet and signalling, of both signs, with payloads in the bits that are cut off.
  std::vector<float> numbers;
  for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7f80ffffu})
    numbers.push_back(std::bit_cast<float>(bits));
  std::vector<uint16_t> halves = {0x7fc0, 0xffc1, 0x7f81, 0x7fff}, others = {0x7e00, 0xfe01, 0x7c01, 0x7fff};
  for (const std::string &target : targetsOfHost()) {
    SCOPED_TRACE(target);
    for (uint16_t bits : castAll<float, uint16_t>(target, "f32", "bf16", numbers))
      EXPECT_TRUE(std::isnan(bf16Number(bits))) << std::hex << bits;
    for (uint16_t bits : castAll<float, uint16_t>(target, "f32", "f16", numbers))
      EXPECT_TRUE(std::isnan(f16Number(bits))) << std::hex << bits;
    for (float value : castAll<uint16_t, float>(target, "bf16", "f32", halves))
      EXPECT_TRUE(std::isnan(value));
    for (float value : castAll<uint16_t, float>(target, "f16", "f32", others))
      EXPECT_TRUE(std::isnan(value));
    for (uint16_t bits : castAll<uint16_t, uint16_t>(target, "bf16", "f16", halves))
      EXPECT_TRUE(std::isnan(f16Number(bits))) << std::hex << bits;
  }
}

} // namespace
