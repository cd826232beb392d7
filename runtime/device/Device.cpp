// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Device.h"

namespace dg {

Status Device::inspect(const plan::Value &value, uint32_t slot, const ValueAccess::Use &use) const {
  if (isHostMemory(value))
    return use({addressOf(value, slot), value.bytes});
  std::vector<std::byte> copy(value.bytes);
  DG_RETURN_IF_ERROR(copyToHost(copy.data(), addressOf(value, slot), copy.size()));
  return use(copy);
}

Status Device::fill(const plan::Value &value, uint32_t slot, const ValueAccess::Write &write) {
  if (isHostMemory(value)) {
    write({addressOf(value, slot), value.bytes});
    return Status::ok();
  }
  std::vector<std::byte> copy(value.bytes);
  write(copy);
  return copyFromHost(addressOf(value, slot), copy.data(), copy.size());
}

Status Device::read(const plan::Value &value, uint32_t slot, std::span<std::byte> to) const {
  if (to.size() > value.bytes)
    return Status::error(ErrorKind::usage, "value '{}' has {} bytes, {} were asked for", value.name, value.bytes,
                         to.size());
  return copyToHost(to.data(), addressOf(value, slot), to.size());
}

} // namespace dg
