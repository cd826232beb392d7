// SPDX-License-Identifier: Apache-2.0
// Traces of a run, read for the plan of another: what reads is of this plan, and dgviz can work with it.
#include "tests/fuzz/MemoryFile.h"
#include "tests/unit/plan/SamplePlan.h"
#include "tools/dgviz/time/CriticalPath.h"
#include "tools/dgviz/time/Trace.h"

#include <cmath>

using namespace dg;

/// Its ops are t0, t1, …
static plan::Plan namedPlan() {
  plan::Plan plan = plan::testing::samplePlan({.stages = 2, .data = 2, .microbatches = 2, .layers = 1});
  for (size_t i = 0; i < plan.tasks.size(); ++i)
    plan.tasks[i].name = "t" + std::to_string(i);
  return plan;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const plan::Plan sample = namedPlan();
  fuzz::OneSecond limit;
  const fuzz::MemoryFile file(fuzz::bytesOf(data, size));
  auto trace = viz::readTrace(file.path(), sample);
  if (!trace)
    return 0;
  for (auto &[kind, program] : trace->programs) {
    fuzz::check(sample.findProgram(kind) != nullptr && !program.steps.empty(), "a program of the plan, with a step");
    const viz::Timeline &timeline = program.timeline;
    fuzz::check(std::isfinite(timeline.totalUs) && timeline.totalUs >= 0, "a step has a length");
    for (const viz::TimelineEvent &event : timeline.events)
      fuzz::check(event.task < sample.tasks.size() && event.row < timeline.numRows && event.lane < timeline.numLanes &&
                      event.startUs >= 0 && event.endUs <= timeline.totalUs * (1 + 1e-9) + 1e-6,
                  "an event is of an op, a rank and a thread, within its step");
    viz::Timeline marked = timeline;
    viz::markCriticalPath(sample, marked);
    viz::rowTimes(sample, timeline);
    viz::meanTaskUs(sample, timeline);
  }
  return 0;
}
