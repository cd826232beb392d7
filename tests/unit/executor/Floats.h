// SPDX-License-Identifier: Apache-2.0
// The floats of a value, as tests write and expect them, on any device.
#pragma once

#include "runtime/executor/Executor.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace dg::test {

/// The floats of one slot of a value, read and written one by one through the executor.
class Floats {
public:
  Floats(Executor &executor, plan::ValueId value, uint32_t slot) : executor(executor), value(value), slot(slot) {}

  class Element;
  Element operator[](int64_t index) const;
  Element operator*() const;

  std::vector<float> all() const {
    std::vector<float> floats;
    Status status = executor.inspect(value, slot, [&](std::span<const std::byte> bytes) {
      floats.resize(bytes.size() / sizeof(float));
      std::memcpy(floats.data(), bytes.data(), bytes.size());
      return Status::ok();
    });
    EXPECT_TRUE(status) << status.message();
    return floats;
  }
  void write(const std::vector<float> &floats) const {
    Status status = executor.fill(
        value, slot, [&](std::span<std::byte> bytes) { std::memcpy(bytes.data(), floats.data(), bytes.size()); });
    EXPECT_TRUE(status) << status.message();
  }

private:
  Executor &executor;
  plan::ValueId value;
  uint32_t slot;
};

class Floats::Element {
public:
  Element(const Floats &of, size_t index) : of(of), index(index) {}
  operator float() const { return of.all()[index]; }
  void operator=(float number) const {
    std::vector<float> floats = of.all();
    floats[index] = number;
    of.write(floats);
  }

private:
  const Floats of;
  const size_t index;
};

inline Floats::Element Floats::operator[](int64_t index) const { return {*this, size_t(index)}; }
inline Floats::Element Floats::operator*() const { return {*this, 0}; }

inline Floats floatsOf(Executor &executor, plan::ValueId value, uint32_t slot = 0) { return {executor, value, slot}; }

} // namespace dg::test
