// SPDX-License-Identifier: Apache-2.0
// tar archives, as they hold samples.
#include "runtime/data/format/TarFile.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  std::span<const std::byte> bytes = fuzz::bytesOf(data, size);
  (void)data::readTar("fuzz", bytes, [&](const data::TarMember &member) {
    fuzz::check(member.bytes.empty() || (member.bytes.data() >= bytes.data() &&
                                         member.bytes.data() + member.bytes.size() <= bytes.data() + bytes.size()),
                "a file lies inside its archive");
    fuzz::check(!member.name.starts_with('/'), "a name is relative");
    fuzz::touch(member.bytes);
    return Status::ok();
  });
  return 0;
}
