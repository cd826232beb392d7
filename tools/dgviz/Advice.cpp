// SPDX-License-Identifier: Apache-2.0
// Each kind of change is one function that returns it with its gain, or with no gain if it does not apply.
#include "tools/dgviz/Advice.h"
#include "tools/dgviz/FlowGraph.h"
#include "tools/dgviz/facts/PlanNumbers.h"
#include "tools/dgviz/time/WhatIf.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

namespace {

constexpr size_t maxChanges = 3;
constexpr double leastShare = 0.01;

std::string percent(double share) { return fmt::format("{:.0f}\u00a0%", share * 100); }

class Adviser {
public:
  Adviser(const Plan &plan, const ProgramView &view, const partitioner::CostModel &costs)
      : plan(plan), view(view), costs(costs), figures(view.figures), program(*view.program), whatIf(plan, view, costs) {
  }

  Result<Advice> run() {
    Advice advice;
    advice.limit = limit();
    advice.facts = facts();
    if (view.predicted.events.empty())
      return advice;
    for (auto find : {&Adviser::moreMicrobatches, &Adviser::zeroBubble, &Adviser::fewerUpdates, &Adviser::largerBatch,
                      &Adviser::fasterLinks, &Adviser::betterAlternative, &Adviser::measuredExcess}) {
      Result<Change> change = (this->*find)();
      if (!change)
        return change.status();
      if (change->gainUs > leastShare * change->ofUs)
        advice.changes.push_back(std::move(*change));
    }
    auto shareOf = [](const Change &change) { return change.gainUs / change.ofUs; };
    std::sort(advice.changes.begin(), advice.changes.end(), [&](const Change &a, const Change &b) {
      return std::pair(shareOf(b), a.title) < std::pair(shareOf(a), b.title);
    });
    if (advice.changes.size() > maxChanges)
      advice.changes.resize(maxChanges);
    return advice;
  }

private:
  struct Part {
    double share;
    const char *limits, *rest; ///< the sentence when it is the largest; a few words when it is not
  };

  std::string limit() const {
    if (view.predicted.events.empty())
      return "This program has no work to predict.";
    std::vector<Part> parts = {
        {figures.arithmeticShare, "Arithmetic limits this plan: for {} of the step devices are busy with it.",
         "arithmetic"},
        {figures.memoryShare,
         "Memory bandwidth limits this plan: for {} of the step devices wait for memory, in ops that move more bytes "
         "than they compute with.",
         "ops that wait for memory"},
        {figures.launchShare,
         "The number of ops limits this plan: {} of the step goes into starting them, because each does little work.",
         "starting ops"},
        {figures.exposedShare,
         "Communication limits this plan: for {} of the step devices exchange tensors and compute nothing.",
         "communication that nothing hides"},
        {figures.idleShare,
         "Waiting limits this plan: devices are idle for {} of the step, because pipeline stages wait for each "
         "other.",
         "waiting"}};
    std::sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) { return a.share > b.share; });
    std::string text = fmt::format(fmt::runtime(parts[0].limits), percent(parts[0].share)), rest;
    for (size_t i = 1; i < parts.size(); ++i)
      if (parts[i].share > leastShare)
        rest += fmt::format("{}{} ({})", rest.empty() ? "" : ", ", parts[i].rest, percent(parts[i].share));
    return rest.empty() ? text : text + " The rest: " + rest + ".";
  }

  std::vector<std::string> facts() const {
    std::vector<std::string> facts;
    if (view.trace)
      facts.push_back(measuredFact());
    if (plan.numStages() > 1)
      facts.push_back(figures.imbalance < 0.05 ? "The pipeline stages are balanced."
                                               : fmt::format("Stage {} computes {} longer than the mean of the stages.",
                                                             figures.slowestStage, percent(figures.imbalance)));
    facts.push_back(fmt::format("Devices reach {:.1f} % of their peak arithmetic.", figures.utilisation * 100));
    if (uint64_t room = costs.cluster().device.memoryBytes; room > 0 && figures.peakBytes > room)
      facts.push_back(fmt::format("It does not fit: a device of {} has {}, and one of the plan needs {}.",
                                  costs.cluster().name, bytesText(double(room)), bytesText(double(figures.peakBytes))));
    if (!isPredictedProgram(plan, program))
      return facts;
    if (plan.search.lowerBoundUs > 0)
      facts.push_back(fmt::format(
          "By its own estimate, in which this plan takes {}, the search proved that none takes less than {}: a gap of "
          "{:.1f} %.",
          timeText(searchedUs()), timeText(plan.search.lowerBoundUs), plan.search.gap * 100));
    else
      facts.push_back("The mesh was given by hand: there is no search, so no bound to compare with.");
    return facts;
  }

  /// What the search estimated for this plan, as it did for the alternatives.
  double searchedUs() const { return plan.search.lowerBoundUs * (1 + plan.search.gap); }

  std::string measuredFact() const {
    double computeUs = 0, exposedUs = 0, idleUs = 0;
    for (const RowTimes &rank : view.ranks) {
      computeUs += rank.computeUs;
      exposedUs += rank.exposedUs;
      idleUs += rank.idleUs;
    }
    double all = std::max(computeUs + exposedUs + idleUs, 1e-9);
    double ratio = figures.measuredStepUs / std::max(figures.stepUs, 1e-9);
    std::string against = ratio > 1.1   ? fmt::format("{:.1f} times as long as predicted", ratio)
                          : ratio < 0.9 ? fmt::format("{} less than predicted", percent(1 - ratio))
                                        : fmt::format("within {} of the prediction", percent(std::abs(ratio - 1)));
    return fmt::format("Measured, a step took {}, {}: ranks computed for {} of it, communicated for {}, and waited for "
                       "{}.",
                       timeText(figures.measuredStepUs), against, percent(computeUs / all), percent(exposedUs / all),
                       percent(idleUs / all));
  }

  /// What a change saves of `batches` steps of now; nothing where it does not apply.
  double gainOf(const std::optional<double> &changedUs, double batches = 1) const {
    if (!changedUs)
      return 0;
    return (view.predicted.simulated.stepUs - *changedUs / batches) * view.predicted.scale;
  }

  Result<Change> moreMicrobatches() const {
    Change best;
    for (uint32_t factor : {2u, 4u}) {
      uint32_t count = factor * program.microbatches;
      WhatIf::Answer answer = whatIf.withMicrobatches(count);
      if (!answer)
        return answer.status();
      if (double gainUs = gainOf(*answer); gainUs > best.gainUs)
        best = {"Cut the batch into more micro-batches",
                fmt::format("Of {} stages each waits for {} of the step while the pipeline fills and drains. Simulated "
                            "with {} micro-batches in place of {}, the step takes {}.",
                            plan.numStages(), percent(figures.idleShare), count, program.microbatches,
                            timeText(figures.stepUs - gainUs)),
                fmt::format("dgc … with {} times the --microbatches ({} in a step)", factor, count), gainUs,
                figures.stepUs};
    }
    return best;
  }

  Result<Change> zeroBubble() const {
    Change best;
    for (const partitioner::ScheduleDescriptor *schedule : partitioner::allSchedules()) {
      WhatIf::Answer answer = whatIf.withSchedule(*schedule);
      if (!answer)
        return answer.status();
      double gainUs = gainOf(*answer);
      if (gainUs <= best.gainUs)
        continue;
      best = {"Fill the gaps of the pipeline with weight gradients",
              fmt::format("Gradients of weights can wait until a stage has nothing else to do. Simulated in that "
                          "order, the step takes {}.",
                          timeText(figures.stepUs - gainUs)),
              fmt::format("dgc … --schedule {}", schedule->name), gainUs, figures.stepUs};
    }
    return best;
  }

  Result<Change> fewerUpdates() const {
    WhatIf::Answer answer = whatIf.withAccumulation(2);
    if (!answer)
      return answer.status();
    double gainUs = gainOf(*answer, 2);
    return Change{"Update less often",
                  fmt::format("Gradients are reduced and applied once for two batches. Simulated so, two batches take "
                              "{}, where two steps take {}; training then has half as many, larger steps.",
                              timeText(2 * (figures.stepUs - gainUs)), timeText(2 * figures.stepUs)),
                  "dgc … with twice the --accumulate (2 where none was given)", gainUs, figures.stepUs};
  }

  Result<Change> largerBatch() const {
    WhatIf::Answer answer = whatIf.withBatch(2);
    if (!answer)
      return answer.status();
    double gainUs = gainOf(*answer, 2);
    return Change{
        "Do more in each op",
        fmt::format("Starting an op and reading the parameters cost the same for any batch. Simulated with "
                    "twice the samples, a step takes {}, where two steps take {}.",
                    timeText(2 * (figures.stepUs - gainUs)), timeText(2 * figures.stepUs)),
        fmt::format("dgc … with twice the --batch ({} samples in a step), --microbatches as now", 2 * program.batch),
        gainUs, figures.stepUs};
  }

  Result<Change> fasterLinks() const {
    WhatIf::Answer answer = whatIf.withFasterLinks(2);
    if (!answer)
      return answer.status();
    std::map<plan::Axis, double> byAxis;
    for (const CommunicationOp &op : view.communications)
      byAxis[op.axis] += op.predictedUs * op.calls;
    double gainUs = gainOf(*answer);
    if (byAxis.empty() || gainUs <= 0)
      return Change{};
    plan::Axis axis = std::max_element(byAxis.begin(), byAxis.end(), [](const auto &a, const auto &b) {
                        return a.second < b.second;
                      })->first;
    return Change{
        "Join the devices by faster links",
        fmt::format("Simulated with links twice as fast, the step takes {}. Most of the time of communication "
                    "goes over the {} axis.",
                    timeText(figures.stepUs - gainUs), nameOf(axis)),
        "dgviz --cluster FILE shows this plan on other machines", gainUs, figures.stepUs};
  }

  Result<Change> betterAlternative() const {
    Change best;
    if (!isPredictedProgram(plan, program))
      return best;
    for (const Alternative &alternative : plan.search.alternatives)
      if (double gainUs = searchedUs() - alternative.stepUs; gainUs > best.gainUs)
        best = {"Take another plan of the search",
                fmt::format("The search estimated {} at {} with {} on a device, where this plan takes {}.",
                            alternative.description, timeText(alternative.stepUs),
                            bytesText(double(alternative.peakBytes)), timeText(searchedUs())),
                "dgc --memory with more", gainUs, searchedUs()};
    return best;
  }

  /// With a trace: the op that takes most of the measured critical path beyond what was predicted for it.
  Result<Change> measuredExcess() const {
    if (!view.trace)
      return Change{};
    std::vector<uint32_t> runs(plan.tasks.size(), 0);
    for (const TimelineEvent &event : view.measured.events)
      runs[event.task] += event.isCritical;
    TaskId worst = noId;
    double worstUs = 0;
    for (TaskId id = 0; id < plan.tasks.size(); ++id) {
      if (isCommunication(plan.tasks[id].kind()) || view.predictedUs[id] < 0)
        continue;
      if (double us = view.measuredPath.taskUs[id] - view.predictedUs[id] * runs[id]; us > worstUs)
        worst = id, worstUs = us;
    }
    if (worst == noId)
      return Change{};
    return Change{"Look at " + plan.tasks[worst].name,
                  fmt::format("On the measured critical path it took {} in {} runs, where {} were predicted: the "
                              "largest excess of all ops, and the most that can be gained there.",
                              timeText(view.measuredPath.taskUs[worst]), runs[worst],
                              timeText(view.predictedUs[worst] * runs[worst])),
                  "its kernel, or whatever else used that rank's core meanwhile", worstUs, figures.measuredStepUs};
  }

  const Plan &plan;
  const ProgramView &view;
  const partitioner::CostModel &costs;
  const Figures &figures;
  const Program &program;
  WhatIf whatIf;
};

} // namespace

Result<Advice> adviseOn(const Plan &plan, const ProgramView &view, const partitioner::CostModel &costs) {
  return Adviser(plan, view, costs).run();
}

} // namespace dg::viz
