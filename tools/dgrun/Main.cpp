// SPDX-License-Identifier: Apache-2.0
// dgrun: flags, then the libraries. It never compiles and never interprets ops.
#include "runtime/session/MemoryUse.h"
#include "tools/dgrun/Flags.h"
#include "tools/dgrun/Prepare.h"
#include "tools/dgrun/Probe.h"
#include "tools/dgrun/Where.h"

#include <cstdio>

using namespace dg;

static void printFailureEvent(int64_t rank, uint64_t step, const std::string &message) {
  std::string line = session::failureEvent(rank, step, message);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

static int fail(const dgrun::Flags &flags, const Status &status) {
  fmt::print(stderr, "dgrun: {}\n", status.message());
  if (flags.json)
    printFailureEvent(-1, 0, status.message());
  return status.exitCode();
}

int main(int argc, char **argv) {
  uint64_t residentBytes = session::residentBytes();
  dgrun::Flags flags;
  if (auto code = dgrun::parseFlags(argc, argv, flags))
    return *code;
  if (flags.probe) {
    auto cluster = dgrun::probeHost();
    if (!cluster)
      return fail(flags, cluster.status());
    std::fputs(cluster->c_str(), stdout);
    return 0;
  }
  auto job = session::Job::open(flags.job, flags.target);
  if (!job)
    return fail(flags, job.status());
  auto where = dgrun::findWhere(flags, (*job)->plan());
  if (!where)
    return fail(flags, where.status());
  auto assignment = dgrun::prepare(flags, **job, where->ranksOnHost);
  if (!assignment)
    return fail(flags, assignment.status());
  assignment->residentBytes = residentBytes;
  if (std::string idle = dgrun::findIdleEpoch(*assignment); !idle.empty() && where->node == 0)
    fmt::print(stderr, "dgrun: note: {}\n", idle);
  const plan::Plan &plan = (*job)->plan();
  LaunchOptions options;
  options.numRanks = plan.mesh.numRanks();
  options.describeTask = [&](uint32_t task) {
    return task < plan.tasks.size() ? fmt::format("'{}' ({})", plan.tasks[task].name, plan.tasks[task].source) : "";
  };
  if (flags.json)
    options.onFailure = [](const RankFailure &failure) { printFailureEvent(failure.rank, failure.step, failure.text); };
  return dgrun::launch(std::move(*where), flags, std::move(options), dgrun::describeRun(*assignment),
                       [&](RankContext &context) { return session::runRank(context, *assignment); });
}
