// SPDX-License-Identifier: Apache-2.0
// Proves that the shards of any mesh put together are the whole tensor, bit for bit, and that what lies past the end is
// zero.
#include "runtime/executor/InitialValues.h"

#include "runtime/support/CounterRandom.h"

#include <cstring>
#include <gtest/gtest.h>

namespace dg {
namespace {

using plan::Coordinates;
using plan::DType;
using plan::Init;
using plan::Mesh;
using plan::Value;

constexpr uint64_t seed = 42;

Value valueOf(std::vector<int64_t> shape, DType type, Init init) {
  Value value;
  value.name = "fc1.weight";
  value.dtype = type;
  value.shape = value.globalShape = shape;
  value.sharding.resize(shape.size());
  value.init = init;
  value.bytes = uint64_t(plan::sizeOf(type));
  for (int64_t size : shape)
    value.bytes *= uint64_t(size);
  return value;
}

template <typename T> std::vector<T> fill(const Value &value, const Mesh &mesh, Coordinates at) {
  std::vector<T> out(value.bytes / sizeof(T), T(-77));
  fillInitial(value, mesh, at, seed, {}, out.data());
  return out;
}

TEST(InitialValuesTest, formulas) {
  uint64_t stream = streamOf("fc1.weight");
  auto uniform = fill<float>(valueOf({7}, DType::f32, {Init::Kind::uniform, 0.25}), Mesh{}, {});
  auto normal = fill<double>(valueOf({7}, DType::f64, {Init::Kind::normal, 0.02}), Mesh{}, {});
  for (uint64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(uniform[i], (2 * uniformAt(seed, stream, i) - 1) * 0.25f);
    EXPECT_EQ(normal[i], double(float(normalAt(seed, stream, i) * 0.02)));
  }
  EXPECT_EQ(fill<int32_t>(valueOf({2}, DType::i32, {Init::Kind::constant, 3}), Mesh{}, {})[1], 3);
  EXPECT_EQ(fill<int64_t>(valueOf({}, DType::i64, {Init::Kind::constant, -5}), Mesh{}, {})[0], -5);
}

TEST(InitialValuesTest, shardsMakeUpTheWhole) {
  Value whole = valueOf({10, 7}, DType::f32, {Init::Kind::uniform, 1});
  std::vector<float> expected = fill<float>(whole, Mesh{}, {});

  Mesh mesh;
  mesh.sizes = {1, 4, 2};
  Value shard = whole;
  shard.sharding = {plan::Axis::data, plan::Axis::tensor};
  shard.shape = {3, 4}; // ceil(10 / 4), ceil(7 / 2)
  shard.bytes = 3 * 4 * sizeof(float);
  for (int64_t data = 0; data < 4; ++data)
    for (int64_t tensor = 0; tensor < 2; ++tensor) {
      std::vector<float> part = fill<float>(shard, mesh, {0, data, tensor});
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 4; ++j) {
          int64_t row = data * 3 + i, column = tensor * 4 + j;
          float value = row < 10 && column < 7 ? expected[size_t(row * 7 + column)] : 0.0f;
          EXPECT_EQ(part[size_t(i * 4 + j)], value) << "rank " << data << ", " << tensor << " at " << i << ", " << j;
        }
    }
}

TEST(InitialValuesTest, constantsOfNarrowTypes) {
  Mesh mesh;
  Init two{Init::Kind::constant, 2.5};
  EXPECT_EQ((fill<uint16_t>(valueOf({2}, DType::bf16, two), mesh, {})), (std::vector<uint16_t>{0x4020, 0x4020}));
  EXPECT_EQ((fill<uint16_t>(valueOf({2}, DType::f16, two), mesh, {})), (std::vector<uint16_t>{0x4100, 0x4100}));
  EXPECT_EQ((fill<int8_t>(valueOf({2}, DType::i8, two), mesh, {})), (std::vector<int8_t>{2, 2}));
  EXPECT_EQ((fill<uint8_t>(valueOf({2}, DType::i1, two), mesh, {})), (std::vector<uint8_t>{1, 1}));
}

TEST(InitialValuesTest, fileIsCutToo) {
  std::vector<float> tensor = {0, 1, 2, 3, 4, 5};
  Value value = valueOf({2, 3}, DType::f32, {Init::Kind::file, 0});
  value.sharding = {std::nullopt, plan::Axis::tensor};
  value.shape = {2, 2};
  value.bytes = 16;
  Mesh mesh;
  mesh.sizes = {1, 1, 2};
  std::vector<float> out(4, -1.0f);
  fillInitial(value, mesh, {0, 0, 1}, seed, std::as_bytes(std::span(tensor)), out.data());
  EXPECT_EQ(out, (std::vector<float>{2, 0, 5, 0}));
}

TEST(InitialValuesTest, rejections) {
  Value value = valueOf({2, 3}, DType::f32, {Init::Kind::file, 0});
  EXPECT_EQ(checkInitial(value, {}).message(),
            "the initial tensor of 'fc1.weight' has 0 bytes, expected 24 for its global shape; compile the job again");
  Value byte = valueOf({2}, DType::u8, {Init::Kind::uniform, 1});
  EXPECT_EQ(checkInitial(byte, {}).message(),
            "value 'fc1.weight' of type u8 starts from random numbers, expected a float, "
            "i32 or i64: start it from a constant or a file");
  Value tight = valueOf({2, 3}, DType::f32, {Init::Kind::constant, 0});
  tight.bytes = 20;
  EXPECT_FALSE(checkInitial(tight, {}));
}

} // namespace
} // namespace dg
