// SPDX-License-Identifier: Apache-2.0
// Plain lines with units; nothing depends on a terminal.
#include "tools/dgviz/TextSummary.h"
#include "tools/dgviz/PlanNumbers.h"

namespace dg::viz {

using namespace dg::plan;

namespace {

std::string printable(const std::string &text) {
  std::string result = text;
  for (char &c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return result;
}

} // namespace

std::string textSummary(const Plan &plan) {
  std::string out;
  auto line = [&]<typename... Args>(fmt::format_string<Args...> format, Args &&...args) {
    out += fmt::format(format, std::forward<Args>(args)...) + "\n";
  };
  line("model      {} ({}), {} parameters, {}", printable(plan.model.name), printable(plan.model.source),
       countText(double(plan.model.parameters)),
       plan.model.optimizer.empty() ? "no optimizer" : printable(plan.model.optimizer));
  line("mesh       pipe={} data={} tensor={}: {} ranks", plan.mesh.sizeOf("pipe"), plan.mesh.sizeOf("data"),
       plan.mesh.sizeOf("tensor"), plan.mesh.numRanks());
  line("predicted  step {}, compute {}, communication {}, bubble {:.1f} %", timeText(plan.predicted.stepUs),
       timeText(plan.predicted.computeUs), timeText(plan.predicted.commUs), plan.predicted.bubble * 100);
  line("search     {}, lower bound {}, gap {:.1f} %, {:.1f} s", printable(plan.search.stopped),
       timeText(plan.search.lowerBoundUs), plan.search.gap * 100, plan.search.seconds);
  for (const Alternative &alternative : plan.search.alternatives)
    line("           instead of {}: step {}, peak {}", printable(alternative.description), timeText(alternative.stepUs),
         bytesText(double(alternative.peakBytes)));
  std::vector<std::vector<KindMemory>> memory = memoryByKind(plan);
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
    std::string kinds;
    for (const KindMemory &kind : memory[stage])
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind.kind, bytesText(double(kind.bytes)));
    line("stage {:<4} arena {} ({} kept): {}", stage, bytesText(double(plan.memory[stage].arenaBytes)),
         bytesText(double(plan.memory[stage].persistentBytes)), kinds);
  }
  for (const Program &program : plan.programs) {
    line("program    {}: batch {}, {} micro-batches, schedule {}", printable(program.name), program.batch,
         program.microbatches, program.schedule.empty() ? "none" : printable(program.schedule));
    for (const Traffic &traffic : trafficOf(plan, program))
      line("           stage {}: {} over {}: {} calls, {} a step", traffic.stage, traffic.op, printable(traffic.axis),
           traffic.calls, bytesText(double(traffic.bytes)));
  }
  return out;
}

} // namespace dg::viz
