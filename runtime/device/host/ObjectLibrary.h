// SPDX-License-Identifier: Apache-2.0
// The kernels of shared objects that dgc made, loaded from memory: nothing is left on disk, and what ObjectFile.h
// refuses is not loaded.
#pragma once

#include "runtime/device/host/KernelLibrary.h"
#include "runtime/support/Status.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace dg {

class ObjectLibrary final : public KernelLibrary {
public:
  /// Without an object: what a job without kernels has.
  ObjectLibrary() = default;
  /// Loads one object; `name` ("train.native.so") is for messages. The bytes may go away afterwards.
  static Result<std::unique_ptr<ObjectLibrary>> load(std::span<const std::byte> bytes, const std::string &name);
  ~ObjectLibrary() override;
  ObjectLibrary(const ObjectLibrary &) = delete;
  ObjectLibrary &operator=(const ObjectLibrary &) = delete;

  /// Loads a further object; find() looks into the objects in the order they came.
  Status add(std::span<const std::byte> bytes, const std::string &name);
  dg_kernel find(const std::string &symbol) const override;
  std::optional<uint32_t> tilesOf(const std::string &symbol) const override;

private:
  void *addressOf(const std::string &symbol) const;
  struct Object {
    int file = -1;
    void *handle = nullptr;
  };
  std::vector<Object> objects;
};

} // namespace dg
