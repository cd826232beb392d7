// SPDX-License-Identifier: Apache-2.0
// How long the stages of a pipeline wait, when a pass takes exactly as long as it is told:
//
//   bubble_bench PLAN.json PASS_MS [STEPS]
//
// Runs the program `train` of a plan as `dgc --emit plan` prints it, one process for each rank, with every message and
// dependency of the plan; but one kernel of each chunk sleeps and all others do nothing. A forward pass of a stage
// takes PASS_MS, a backward pass as long for the gradients of inputs and as long again for those of weights; where a
// stage has several chunks they share that. Prints a JSON object: step_ms, the slowest rank's, the median of STEPS.
#include "runtime/device/host/HostDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/transport/UcxTransport.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

namespace dg {
namespace {

using Clock = std::chrono::steady_clock;

int64_t passNs = 0; ///< of one chunk; set before ranks are forked

void sleepFor(int64_t ns) {
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  ns += until.tv_nsec;
  until.tv_sec += ns / 1'000'000'000;
  until.tv_nsec = ns % 1'000'000'000;
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

class Waits final : public KernelLibrary {
public:
  dg_kernel find(const std::string &symbol) const override {
    if (symbol == "one")
      return [](void *const *, const dg_scalars *, uint32_t) { sleepFor(passNs); };
    if (symbol == "two")
      return [](void *const *, const dg_scalars *, uint32_t) { sleepFor(2 * passNs); };
    return [](void *const *, const dg_scalars *, uint32_t) {};
  }
  std::optional<uint32_t> tilesOf(const std::string &) const override { return 1; }
};

/// Makes the last kernel before a chunk sends, or else its last, the one that takes all its time.
Status replaceKernels(plan::Plan &plan, const plan::Program &program) {
  bool isCutInTwo = program.schedule.starts_with("zb");
  for (size_t index = 0; index < plan.chunks.size(); ++index) {
    const plan::Chunk &chunk = plan.chunks[index];
    plan::Kernel *last = nullptr;
    bool hasSent = false;
    for (plan::TaskId id : chunk.tasks) {
      plan::Task &task = plan.tasks[id];
      hasSent = hasSent || task.as<plan::Send>();
      plan::Kernel *kernel = task.as<plan::Kernel>();
      if (!kernel)
        continue;
      kernel->symbol = "none";
      last = hasSent && last ? last : kernel;
    }
    bool isPass = chunk.phase == plan::Phase::forward || chunk.phase == plan::Phase::backward;
    if (!isPass || &plan.programs[chunk.program] != &program)
      continue;
    if (!last)
      return Status::error(ErrorKind::badInput, "chunk {} of stage {} has no kernel that could take its time", index,
                           chunk.stage);
    last->symbol = chunk.phase == plan::Phase::backward && !isCutInTwo ? "two" : "one";
  }
  return Status::ok();
}

/// How often a stage goes through a part of the model forward in one step, for each micro-batch.
size_t chunksPerStage(const plan::Program &program, const plan::Plan &plan) {
  size_t count = 0;
  for (const plan::Action &action : program.actions[0])
    count += action.microbatch == 0 && plan.chunks[action.chunk].phase == plan::Phase::forward ? 1 : 0;
  return std::max<size_t>(count, 1);
}

Status runRank(RankContext &context, const plan::Plan &plan, size_t program, int steps) {
  prctl(PR_SET_TIMERSLACK, 1);
  auto deadline = [] { return deadlineIn(std::chrono::minutes(2)); };
  UcxOptions options;
  plan::Coordinates at = plan.mesh.coordinatesOf(context.rank());
  options.sharedBytes = std::max<size_t>(plan.memory[size_t(at.pipe)].arenaBytes, 1);
  auto exchange = [&](const std::string &mine) { return context.allGather(mine, deadline()); };
  auto transport = makeUcxTransport(context.rank(), context.numRanks(), exchange, options);
  if (!transport)
    return transport.status();
  Waits waits;
  auto executor = Executor::create(plan, at, makeHostDevice(waits), transport->get(), {});
  if (!executor)
    return executor.status();
  std::vector<double> times;
  for (int step = 0; step <= steps; ++step) {
    DG_RETURN_IF_ERROR(context.barrier(deadline()));
    dg_scalars scalars{};
    scalars.step = uint64_t(step) + 1;
    auto begin = Clock::now();
    DG_RETURN_IF_ERROR((*executor)->runStep(program, scalars));
    double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    Result<std::vector<std::string>> all = context.allGather(std::to_string(ms), deadline());
    if (!all)
      return all.status();
    double slowest = 0;
    for (const std::string &text : *all)
      slowest = std::max(slowest, std::atof(text.c_str()));
    if (step > 0) // the first one connects
      times.push_back(slowest);
  }
  std::sort(times.begin(), times.end());
  const plan::Program &own = plan.programs[program];
  if (context.rank() == 0)
    std::printf("{\"schedule\": \"%s\", \"stages\": %u, \"microbatches\": %u, \"chunks\": %zu, \"step_ms\": %.3f}\n",
                own.schedule.c_str(), plan.numStages(), own.microbatches, chunksPerStage(own, plan),
                times[times.size() / 2]);
  return context.barrier(deadline());
}

Result<plan::Plan> readPlan(const char *path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file)
    return Status::error(ErrorKind::badInput, "{}: cannot be read", path);
  return plan::fromJson(text.str());
}

} // namespace
} // namespace dg

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bubble_bench PLAN.json PASS_MS [STEPS]\n");
    return 2;
  }
  auto plan = dg::readPlan(argv[1]);
  size_t program = 0;
  dg::Status status = plan.status();
  if (plan) {
    while (program < plan->programs.size() && plan->programs[program].kind != dg::plan::ProgramKind::train)
      ++program;
    status = program < plan->programs.size()
                 ? dg::replaceKernels(*plan, plan->programs[program])
                 : dg::Status::error(dg::ErrorKind::badInput, "{}: has no program train", argv[1]);
  }
  if (!status) {
    std::fprintf(stderr, "bubble_bench: %s\n", status.message().c_str());
    return status.exitCode();
  }
  dg::passNs = int64_t(std::atof(argv[2]) * 1e6 / double(dg::chunksPerStage(plan->programs[program], *plan)));
  int steps = argc > 3 ? std::max(1, std::atoi(argv[3])) : 3;
  dg::LaunchOptions options;
  options.tool = "bubble_bench";
  options.numRanks = int(plan->mesh.numRanks());
  return dg::launchLocal(options, [&](dg::RankContext &context) {
    dg::Status outcome = dg::runRank(context, *plan, program, steps);
    context.reportFailure(outcome);
    return outcome.exitCode();
  });
}
