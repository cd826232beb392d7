// SPDX-License-Identifier: Apache-2.0
// Each kind of change is one function that returns it with its gain, or with no gain if it does not apply.
#include "tools/dgviz/Advice.h"
#include "tools/dgviz/FlowGraph.h"
#include "tools/dgviz/PlanNumbers.h"

#include "partitioner/Simulator.h"

#include <algorithm>
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
      : plan(plan), view(view), costs(costs), figures(view.figures), program(*view.program),
        numStages(double(std::max<size_t>(1, view.stages.size()))) {}

  Result<Advice> run() {
    Advice advice;
    advice.limit = limit();
    advice.facts = facts();
    Result<Change> network = fasterNetwork();
    if (!network)
      return network.status();
    for (Change change : {moreMicrobatches(), balancedStages(), *network, lessMemoryTraffic(), fewerUpdates(),
                          largerBatch(), betterAlternative(), measuredExcess()})
      if (change.gainUs > leastShare * figures.stepUs)
        advice.changes.push_back(std::move(change));
    std::sort(advice.changes.begin(), advice.changes.end(), [](const Change &a, const Change &b) {
      return std::tie(b.gainUs, a.title) < std::tie(a.gainUs, b.title);
    });
    if (advice.changes.size() > maxChanges)
      advice.changes.resize(maxChanges);
    return advice;
  }

private:
  std::string limit() const {
    if (view.predicted.events.empty())
      return "This program has no work to predict.";
    if (figures.idleShare >= figures.computeShare)
      return fmt::format(
          "Waiting limits this plan: devices stand idle for {} of the step, because pipeline stages wait "
          "for each other.",
          percent(figures.idleShare));
    if (figures.exposedShare >= figures.computeShare)
      return fmt::format("Communication limits this plan: for {} of the step devices exchange tensors and compute "
                         "nothing.",
                         percent(figures.exposedShare));
    std::string rest;
    if (figures.idleShare > leastShare || figures.exposedShare > leastShare)
      rest = fmt::format(" The rest is waiting ({}) and communication that nothing hides ({}).",
                         percent(figures.idleShare), percent(figures.exposedShare));
    if (figures.measuredStepUs > 1.5 * figures.stepUs)
      rest =
          fmt::format(" But measured it took {:.1f} times as long: ranks computed for {} of the step, and waited for "
                      "each other for most of the rest.",
                      figures.measuredStepUs / figures.stepUs, percent(measuredComputeShare()));
    return fmt::format("Arithmetic limits this plan: devices compute for {} of the step.{}",
                       percent(figures.computeShare), rest);
  }

  std::vector<std::string> facts() const {
    std::vector<std::string> facts;
    if (numStages > 1)
      facts.push_back(figures.imbalance < 0.05 ? "The pipeline stages are balanced."
                                               : fmt::format("Stage {} computes {} longer than the mean of the stages.",
                                                             figures.slowestStage, percent(figures.imbalance)));
    facts.push_back(fmt::format("Devices reach {:.1f} % of their peak arithmetic.", figures.utilisation * 100));
    if (plan.search.lowerBoundUs > 0)
      facts.push_back(fmt::format("The search proved that no plan takes less than {}; this one is within {:.1f} %.",
                                  timeText(plan.search.lowerBoundUs), plan.search.gap * 100));
    else
      facts.push_back("The mesh was given by hand: there is no search, so no bound to compare with.");
    if (view.trace) {
      double ratio = figures.measuredStepUs / std::max(figures.stepUs, 1e-9);
      facts.push_back(ratio > 1.1   ? fmt::format("Measured, a step took {}, {:.1f} times as long as predicted.",
                                                  timeText(figures.measuredStepUs), ratio)
                      : ratio < 0.9 ? fmt::format("Measured, a step took {}, {} less than predicted.",
                                                  timeText(figures.measuredStepUs), percent(1 - ratio))
                                    : fmt::format("Measured, a step took {}: the prediction came true within {}.",
                                                  timeText(figures.measuredStepUs), percent(std::abs(ratio - 1))));
    }
    return facts;
  }

  double measuredComputeShare() const {
    double share = 0;
    for (const RowTimes &rank : view.ranks)
      share += rank.computeUs / std::max(figures.measuredStepUs, 1e-9) / double(view.ranks.size());
    return share;
  }

  /// 1F1B and GPipe wait for (p-1)/(m+p-1) of the step.
  Change moreMicrobatches() const {
    double m = program.microbatches, p = numStages;
    double rows = double(program.batch) / (double(plan.mesh.sizeOf("data")) * m);
    if (p < 2 || rows < 2 || view.predictedPath.numEvents == 0)
      return {};
    double shrink = 1 - (m + p - 1) / (2 * m + p - 1);
    return {
        "Cut the batch into more micro-batches",
        fmt::format("With {} micro-batches over {} stages a device waits for {} of the step while the pipeline fills "
                    "and drains; twice as many would wait about half as long.",
                    program.microbatches, numStages, percent(figures.idleShare)),
        fmt::format("dgc --microbatches {}", 2 * program.microbatches), figures.idleShare * figures.stepUs * shrink};
  }

  /// The slowest stage sets the pace of all: what it has above the mean is lost.
  Change balancedStages() const {
    if (numStages < 2 || view.stages.empty())
      return {};
    double most = view.stages[figures.slowestStage].computeUs, mean = most / (1 + figures.imbalance);
    return {
        "Balance the pipeline stages",
        fmt::format("Stage {} computes {} while the mean is {}; the others wait for it. Fewer stages and more replicas "
                    "have no such border; at most this much is gained.",
                    figures.slowestStage, timeText(most), timeText(mean)),
        fmt::format("dgc --mesh with pipe={}", std::max<uint32_t>(1, plan.numStages() / 2)), most - mean};
  }

  /// What would be left if links had no limits.
  Result<Change> fasterNetwork() const {
    if (view.communications.empty())
      return Change{};
    partitioner::Cluster ideal = costs.cluster();
    ideal.intraNode = ideal.interNode = {1e18, 0};
    Result<Predicted> free = partitioner::simulateProgram(plan, program, partitioner::CostModel(ideal));
    if (!free)
      return free.status();
    std::map<std::string, double> byAxis;
    for (const CommunicationOp &op : view.communications)
      byAxis[op.axis] += op.predictedUs * op.calls;
    std::string axis = std::max_element(byAxis.begin(), byAxis.end(), [](const auto &a, const auto &b) {
                         return a.second < b.second;
                       })->first;
    double gainUs = figures.stepUs - free->stepUs * view.predicted.scale;
    std::string how = axis == "data"     ? "dgc --accumulate 2 (one sum of gradients for two batches)"
                      : axis == "tensor" ? fmt::format("dgc --mesh with tensor={} and more replicas",
                                                       std::max<int64_t>(1, plan.mesh.sizeOf("tensor") / 2))
                                         : fmt::format("dgc --mesh with pipe={} and more replicas",
                                                       std::max<uint32_t>(1, plan.numStages() / 2));
    return Change{"Communicate less",
                  fmt::format("Without any cost of communication the step would take {} less, at most. Most of that "
                              "traffic runs over the {} axis.",
                              timeText(gainUs), axis),
                  how, gainUs};
  }

  /// Ops whose bytes take longer than their arithmetic.
  Change lessMemoryTraffic() const {
    const partitioner::Device &device = costs.cluster().device;
    double lostUs = 0, totalUs = 0;
    std::map<std::string, double> byOp;
    for (const TimelineEvent &event : view.predicted.events) {
      const Task &task = plan.tasks[event.task];
      if (event.row != figures.slowestStage || isCommunication(task.kind) || view.work[event.task] == Work::update)
        continue;
      double lengthUs = event.endUs - event.startUs;
      double arithmeticUs = task.flops / (device.flopsPerSecond.begin()->second * device.efficiency) * 1e6;
      totalUs += lengthUs;
      if (lengthUs > 1.5 * arithmeticUs + device.launchUs) {
        lostUs += lengthUs - arithmeticUs;
        byOp[task.op.empty() ? kindName(task.kind) : task.op] += lengthUs;
      }
    }
    if (byOp.empty())
      return {};
    std::vector<std::pair<double, std::string>> worst;
    for (const auto &[op, us] : byOp)
      worst.push_back({-us, op});
    std::sort(worst.begin(), worst.end());
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(3, worst.size()); ++i)
      names += (i ? ", " : "") + worst[i].second;
    return {"Move less memory",
            fmt::format("Ops that wait for memory and not for arithmetic (most of all {}) make up {} of what stage {} "
                        "computes. Fused into their neighbours they would cost almost nothing; at most half of it can "
                        "be gained.",
                        names, percent(totalUs > 0 ? lostUs / totalUs : 0), figures.slowestStage),
            "fewer ops between the products of the model, or larger products", lostUs / 2};
  }

  /// The optimizer reads and writes every parameter and its state, whatever the batch.
  Change fewerUpdates() const {
    double updateUs = 0;
    for (const TimelineEvent &event : view.predicted.events)
      if (event.row == figures.slowestStage && view.work[event.task] == Work::update)
        updateUs += event.endUs - event.startUs;
    return {"Update less often",
            fmt::format("The optimizer takes {} of the step on stage {}, as long for a small batch as for a large one. "
                        "With two batches to an update that is shared by twice the samples.",
                        percent(updateUs / std::max(figures.stepUs, 1e-9)), figures.slowestStage),
            "dgc --accumulate 2, or a larger --batch", updateUs / 2};
  }

  /// Fixed costs of every op, whatever its size.
  Change largerBatch() const {
    double launches = 0;
    for (const TimelineEvent &event : view.predicted.events)
      if (event.row == figures.slowestStage && event.lane == 0)
        ++launches;
    double fixedUs = launches * costs.cluster().device.launchUs * view.predicted.scale;
    return {"Do more in each op",
            fmt::format(
                "The {} ops of a step cost {} to start, whatever their size: with twice the batch that is shared by "
                "twice the samples.",
                countText(launches), timeText(fixedUs)),
            program.batch > 0 ? fmt::format("dgc --batch {}", 2 * program.batch) : "a larger batch", fixedUs / 2};
  }

  Change betterAlternative() const {
    Change best;
    // Alternatives were judged by the closed forms of the search, so this plan must be too.
    double ownUs = plan.search.lowerBoundUs * (1 + plan.search.gap);
    for (const Alternative &alternative : plan.search.alternatives)
      if (ownUs - alternative.stepUs > best.gainUs)
        best = {"Take another plan of the search",
                fmt::format("{} is predicted at {} with {} on a device, if that much memory is there.",
                            alternative.description, timeText(alternative.stepUs),
                            bytesText(double(alternative.peakBytes))),
                "dgc --memory with more", ownUs - alternative.stepUs};
    return best;
  }

  /// With a trace: the op that most lags behind its prediction.
  Change measuredExcess() const {
    if (!view.trace)
      return {};
    std::map<TaskId, double> excess;
    std::map<uint32_t, uint32_t> calls;
    for (const TimelineEvent &event : view.predicted.events)
      ++calls[event.task];
    TaskId worst = noId;
    double worstUs = 0;
    for (const auto &[task, count] : calls)
      if (view.measuredUs[task] > 0 && !isCommunication(plan.tasks[task].kind))
        if (double us = (view.measuredUs[task] - view.predictedUs[task]) * count; us > worstUs)
          worst = task, worstUs = us;
    if (worst == noId)
      return {};
    return {
        "Look at " + plan.tasks[worst].name,
        fmt::format("It ran {:.1f} times as long as predicted ({} against {} a call): the largest excess of all ops. "
                    "Either its kernel is slow, or the ranks share cores.",
                    view.measuredUs[worst] / std::max(view.predictedUs[worst], 1e-9), timeText(view.measuredUs[worst]),
                    timeText(view.predictedUs[worst])),
        "fewer ranks or threads on this host, or a better kernel", worstUs};
  }

  const Plan &plan;
  const ProgramView &view;
  const partitioner::CostModel &costs;
  const Figures &figures;
  const Program &program;
  const double numStages;
};

} // namespace

Result<Advice> adviseOn(const Plan &plan, const ProgramView &view, const partitioner::CostModel &costs) {
  return Adviser(plan, view, costs).run();
}

} // namespace dg::viz
