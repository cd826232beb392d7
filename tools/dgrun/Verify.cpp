// SPDX-License-Identifier: Apache-2.0
#include "tools/dgrun/Verify.h"

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/session/report/JsonLine.h"
#include "runtime/support/Printable.h"

namespace dg::dgrun {

static void print(const checkpoint::Verified &one, bool asJson) {
  if (asJson) {
    session::JsonLine line("verified");
    line.add("path", one.folder).addRaw("whole", one.status ? "true" : "false");
    if (one.status)
      line.add("step", one.step).add("bytes", one.bytes).add("tensors", one.numTensors);
    else
      line.add("message", one.status.message());
    fmt::print("{}", std::move(line).finish());
  } else if (one.status) {
    fmt::print("{}: whole: step {}, {} tensors, {} bytes\n", printable(one.folder), one.step, one.numTensors,
               one.bytes);
  } else {
    fmt::print("{}\n", printable(one.status.message()));
  }
}

int verifyCheckpoints(const Flags &flags, const plan::Plan *plan, const LaunchOptions &options) {
  const bool trains = plan && plan->findProgram(plan::ProgramKind::train);
  auto all =
      checkpoint::verify(flags.verify, plan, trains ? checkpoint::Purpose::training : checkpoint::Purpose::inference);
  if (!all)
    return endBeforeRanks(options, all.status());
  size_t numBad = 0;
  std::string bad;
  for (const checkpoint::Verified &one : *all) {
    print(one, flags.json);
    if (!one.status && numBad++ == 0)
      bad = one.status.message();
  }
  if (numBad == 0)
    return 0;
  std::fflush(stdout);
  return endBeforeRanks(options,
                        Status::error(ErrorKind::badInput, "--verify {}: {} of {} checkpoint{} cannot be used: {}",
                                      flags.verify, numBad, all->size(), all->size() == 1 ? "" : "s", bad));
}

} // namespace dg::dgrun
