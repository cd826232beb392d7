// SPDX-License-Identifier: Apache-2.0
// Proves which element types may feed which arguments, and the values that come out.
#include "runtime/data/Conversion.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::data;

template <typename To, typename From>
static std::vector<To> convert(DType from, DType to, const std::vector<From> &values, bool fits = true,
                               std::optional<Normalization> normalization = {}) {
  auto conversion = Conversion::make(from, to, normalization);
  EXPECT_TRUE(conversion) << conversion.status().message();
  std::vector<To> result(values.size());
  EXPECT_EQ(conversion->run(reinterpret_cast<const std::byte *>(values.data()),
                            reinterpret_cast<std::byte *>(result.data()), int64_t(values.size())),
            fits);
  return result;
}

TEST(Conversion, bytesThatFeedFloatsAreScaled) {
  auto result = convert<float, uint8_t>(DType::u8, DType::f32, {0, 1, 128, 255});
  EXPECT_EQ(result, (std::vector<float>{0.0f, 1.0f / 255.0f, 128.0f / 255.0f, 1.0f}));
}

TEST(Conversion, normalizationFollowsScaling) {
  auto result = convert<float, uint8_t>(DType::u8, DType::f32, {0, 51, 255}, true, Normalization{0.5f, 0.5f});
  EXPECT_EQ(result, (std::vector<float>{-1.0f, (51.0f / 255.0f - 0.5f) / 0.5f, 1.0f}));
}

TEST(Conversion, otherIntegersKeepTheirValueAsFloats) {
  EXPECT_EQ((convert<float, int32_t>(DType::i32, DType::f32, {-3, 300})), (std::vector<float>{-3, 300}));
}

TEST(Conversion, labelsOfBytesKeepTheirValue) {
  EXPECT_EQ((convert<int64_t, uint8_t>(DType::u8, DType::i64, {0, 9, 255})), (std::vector<int64_t>{0, 9, 255}));
  EXPECT_EQ((convert<int32_t, int64_t>(DType::i64, DType::i32, {-100, 9})), (std::vector<int32_t>{-100, 9}));
}

TEST(Conversion, valuesThatDoNotFitAreFound) {
  convert<int32_t, int64_t>(DType::i64, DType::i32, {1, int64_t(1) << 40}, false);
  convert<int32_t, uint32_t>(DType::u32, DType::i32, {0xffffffffu}, false);
  convert<uint8_t, int8_t>(DType::i8, DType::u8, {-1}, false);
}

TEST(Conversion, halfTypes) {
  EXPECT_EQ((convert<float, uint16_t>(DType::f16, DType::f32, {0x3c00, 0xc000})), (std::vector<float>{1, -2}));
  EXPECT_EQ((convert<float, uint16_t>(DType::bf16, DType::f32, {0x3f80, 0xc000})), (std::vector<float>{1, -2}));
  EXPECT_EQ((convert<uint16_t, float>(DType::f32, DType::bf16, {1.0f, 1.00390625f, 1.01171875f})),
            (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82}));
  EXPECT_EQ((convert<double, float>(DType::f32, DType::f64, {0.1f})), (std::vector<double>{double(0.1f)}));
}

TEST(Conversion, floatsDoNotFeedIntegers) {
  auto conversion = Conversion::make(DType::f32, DType::i64, {});
  ASSERT_FALSE(conversion);
  EXPECT_EQ(conversion.status().kind(), ErrorKind::badInput);
}

TEST(Conversion, integersAreNotNormalized) {
  auto conversion = Conversion::make(DType::u8, DType::i64, Normalization{0.5f, 0.5f});
  ASSERT_FALSE(conversion);
  EXPECT_EQ(conversion.status().kind(), ErrorKind::usage);
}
