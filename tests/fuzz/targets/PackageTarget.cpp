// SPDX-License-Identifier: Apache-2.0
// Packages: archive, manifest, hashes and seal.
#include "runtime/package/Package.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  Result<package::Package> read = package::Package::read("fuzz.dgx", fuzz::bytesOf(data, size));
  if (!read)
    return 0;
  fuzz::check(read->has("plan.json") && read->text("plan.json"), "a package that reads has a plan");
  for (const std::string &name : read->entries()) {
    Result<std::span<const std::byte>> entry = read->entry(name);
    fuzz::check(bool(entry), "every entry that is listed is there");
    fuzz::touch(*entry);
  }
  return 0;
}
