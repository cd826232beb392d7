// SPDX-License-Identifier: Apache-2.0
#include "tools/dgrun/Export.h"

#include "runtime/checkpoint/ExportedWeights.h"
#include "runtime/session/report/JsonLine.h"
#include "runtime/support/Printable.h"

#include <filesystem>

namespace dg::dgrun {

int exportWeights(const Flags &flags, const plan::Plan &plan, const LaunchOptions &options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(flags.exportTo, flags.job, ignored))
    return endBeforeRanks(
        options, Status::error(ErrorKind::usage, "--export {}: this is the job; name another file", flags.exportTo));
  auto from = checkpoint::Checkpoint::open(flags.resumeFrom, flags.resumeOlder ? checkpoint::Unreadable::passOver
                                                                               : checkpoint::Unreadable::refuse);
  if (!from)
    return endBeforeRanks(options, from.status());
  const std::filesystem::path target = std::filesystem::weakly_canonical(flags.exportTo, ignored);
  if (std::filesystem::equivalent(target.parent_path(), from->path(), ignored))
    return endBeforeRanks(options, Status::error(ErrorKind::usage,
                                                 "--export {}: lies in the checkpoint {}, which would be damaged; name "
                                                 "a file outside of it",
                                                 flags.exportTo, from->path()));
  if (Status fits = from->check(plan, checkpoint::Purpose::inference); !fits)
    return endBeforeRanks(options, fits);
  auto bytes = checkpoint::exportWeights(*from, plan, flags.exportTo);
  if (!bytes)
    return endBeforeRanks(options, bytes.status());
  session::JsonLine line("exported");
  line.add("path", flags.exportTo).add("from", from->path()).add("step", from->state().step);
  line.add("bytes", *bytes).add("checkpoint_bytes", from->bytes());
  if (flags.json)
    fmt::print("{}", std::move(line).finish());
  else
    fmt::print("{}: parameters of step {} without the state of the optimizer: {} bytes of the {} of {}\n",
               printable(flags.exportTo), from->state().step, *bytes, from->bytes(), printable(from->path()));
  return 0;
}

} // namespace dg::dgrun
