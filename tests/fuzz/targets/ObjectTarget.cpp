// SPDX-License-Identifier: Apache-2.0
// Objects of packages: what the check lets through can be loaded, and nothing of it runs by that.
#include "runtime/device/host/ObjectLibrary.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  auto library = ObjectLibrary::load(fuzz::bytesOf(data, size), "fuzz.so");
  if (library) // names are looked up by the object's own table
    (void)(*library)->find("no_such_kernel");
  return 0;
}
