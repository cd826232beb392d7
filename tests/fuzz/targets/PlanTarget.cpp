// SPDX-License-Identifier: Apache-2.0
// Plans: one that reads is verified, whatever it says; one that is right writes itself as what reads again.
#include "runtime/plan/Plan.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  Result<plan::Plan> read = plan::fromJson(std::string(reinterpret_cast<const char *>(data), size));
  if (!read)
    return 0;
  if (!plan::verify(*read))
    return 0;
  std::string written = plan::toJson(*read);
  Result<plan::Plan> reread = plan::fromJson(written);
  fuzz::check(bool(reread), "what was written can be read");
  fuzz::check(plan::toJson(*reread) == written, "what was read is written as it was");
  fuzz::check(bool(plan::verify(*reread)), "the verdict does not depend on the way through a file");
  return 0;
}
