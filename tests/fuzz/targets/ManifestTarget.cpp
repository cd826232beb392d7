// SPDX-License-Identifier: Apache-2.0
// Manifests of checkpoints: one that reads, written again, reads as itself.
#include "runtime/checkpoint/Manifest.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  constexpr int64_t mostCount = int64_t(1) << 53;
  auto read = checkpoint::manifestFromJson(std::string(reinterpret_cast<const char *>(data), size), "fuzz");
  if (!read)
    return 0;
  const checkpoint::TrainingState &state = read->state;
  for (int64_t count : {state.step, state.epoch, state.position, state.numSamples})
    fuzz::check(count >= 0 && count <= mostCount, "a run can count on from here without an overflow");
  fuzz::check(state.position <= state.numSamples, "an epoch has as many samples as were done of it");
  const std::string written = checkpoint::toJson(*read);
  auto again = checkpoint::manifestFromJson(written, "fuzz");
  fuzz::check(bool(again), "what was written can be read");
  fuzz::check(checkpoint::toJson(*again) == written, "what was read is written as it was");
  return 0;
}
