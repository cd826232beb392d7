// SPDX-License-Identifier: Apache-2.0
// Proves that the shy device is what tests rely on: an address of it cannot be dereferenced, its work is done late, and
// who reads a value without waiting for it is told.
#include "tests/unit/device/ShyDevice.h"

#include <cstring>
#include <gtest/gtest.h>

namespace dg {
namespace {

void setSeven(void *const *buffers, const dg_scalars *, uint32_t) { *static_cast<float *>(buffers[0]) = 7; }

class OneKernel final : public KernelLibrary {
public:
  dg_kernel find(const std::string &symbol) const override { return symbol == "seven" ? setSeven : nullptr; }
  std::optional<uint32_t> tilesOf(const std::string &) const override { return 1; }
};

/// Communications of a step that has none.
class Nobody final : public Companion {
public:
  Progress advance(const Node &, uint32_t, uint32_t, Operation *&) override { return Progress::done; }
  bool idle(const Operation &, Patience &) override { return false; }
  void endWait() override {}
  void pollOpen() override {}
};

class ShyDeviceTest : public testing::Test {
protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    value.bytes = sizeof(float);
    ASSERT_TRUE(device->reserve(64, {}));
    ASSERT_TRUE(device->setUp({}, context));
    segment.nodes.resize(1);
    segment.nodes[0].numBuffers = 1;
    segment.bufferTables = {device->addressOf(value)};
    segment.nodes[0].buffers = segment.bufferTables.data();
    ASSERT_TRUE(device->findKernel("seven", segment.nodes[0]));
    ASSERT_FALSE(device->findKernel("eight", segment.nodes[0]) && segment.nodes[0].kernel);
    ASSERT_TRUE(device->findKernel("seven", segment.nodes[0]));
    ASSERT_TRUE(device->prepare(segment));
  }
  float number() const {
    float found = -1;
    EXPECT_TRUE(device->read(value, 0, std::as_writable_bytes(std::span(&found, 1))));
    return found;
  }

  OneKernel library;
  Nobody nobody;
  std::atomic<uint32_t> task{0};
  StepContext context{nobody, task};
  plan::Value value;
  Segment segment;
  std::unique_ptr<Device> device = test::makeShyDevice(library);
};

TEST_F(ShyDeviceTest, workIsThereAfterTheWait) {
  EXPECT_EQ(number(), 0);
  for (float before : {1.0f, 2.0f}) {
    ASSERT_TRUE(
        device->fill(value, 0, [&](std::span<std::byte> bytes) { std::memcpy(bytes.data(), &before, sizeof before); }));
    EXPECT_EQ(number(), before);
    ASSERT_TRUE(device->run(segment, 0));
    ASSERT_TRUE(device->finish());
    EXPECT_EQ(number(), 7);
  }
}

TEST_F(ShyDeviceTest, nobodyDereferencesItsAddresses) {
  EXPECT_FALSE(device->isHostMemory(value));
  plan::Value pinned = value;
  pinned.space = plan::MemorySpace::pinned;
  EXPECT_TRUE(device->isHostMemory(pinned));
  // By the signal, or by a sanitizer that reports it.
  EXPECT_DEATH((void)*reinterpret_cast<volatile float *>(device->addressOf(value)), "");
}

TEST_F(ShyDeviceTest, whoDoesNotWaitIsTold) {
  EXPECT_DEATH(
      {
        for (int i = 0; i < 100; ++i)
          (void)device->run(segment, 0);
        (void)number();
      },
      "a value is copied while work is under way");
}

} // namespace
} // namespace dg
