// SPDX-License-Identifier: Apache-2.0
// Units are in the names; the JSON keys are listed in docs/reference/json.md.
#include "compiler/PlanReport.h"

#include "ir/dialect/Dialect.h"
#include "partitioner/predict/Traffic.h"
#include "runtime/plan/SavedValues.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace dg::compiler {

namespace {

using Json = nlohmann::ordered_json;
using namespace partitioner;

std::string gibibytes(double bytes) { return fmt::format("{:.2f} GiB", bytes / 0x1p30); }

/// By stage: what a rank needs beside its arena while a checkpoint is saved.
std::vector<uint64_t> saveCopies(const plan::Plan &plan) {
  std::vector<uint64_t> bytes;
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage)
    bytes.push_back(plan::saveCopyBytes(plan, stage));
  return bytes;
}

Json configurationJson(const SearchedPlan &plan) {
  const Configuration &how = plan.configuration;
  Json json;
  json["mesh"] = {{"data", how.data}, {"tensor", how.tensor}, {"pipe", how.pipe}};
  json["microbatches"] = how.microbatches;
  json["schedule"] = std::string(how.schedule->name);
  json["chunks_per_rank"] = how.chunksPerRank;
  json["zero"] = how.zero;
  json["precision"] = plan::nameOf(how.precision);
  json["recomputed_stages"] = std::count(plan.stages.isRecomputed.begin(), plan.stages.isRecomputed.end(), 1);
  return json;
}

Json searchJson(const SearchResult &search) {
  Json json;
  json["lower_bound_us"] = search.lowerBoundUs;
  json["gap"] = search.gap;
  json["seconds"] = search.seconds;
  json["stopped"] = search.stopped;
  json["configurations"] = search.numConfigurations;
  json["expanded"] = search.numExpanded;
  json["alternatives"] = Json::array();
  for (const SearchedPlan &plan : search.alternatives)
    json["alternatives"].push_back(
        {{"description", describe(plan)}, {"step_us", plan.stages.stepUs}, {"peak_bytes", plan.stages.peakBytes}});
  return json;
}

/// Figures of a step that only a report has.
struct StepFigures {
  double tflopsPerDevice = 0;      ///< products and convolutions as executed, recomputation included
  double modelTflopsPerDevice = 0; ///< the same without recomputation
  double utilisation = 0;          ///< tflopsPerDevice over the device's peak
  Traffic traffic;
};

/// Flops of products in a step of all stages, on one rank of each.
double productFlops(const JobPlan &job, const plan::Program &program) {
  mlir::MLIRContext *context = mlir::ModuleOp(*job.module).getContext();
  std::vector<double> flopsOf(job.plan.chunks.size(), 0);
  for (size_t chunk = 0; chunk < flopsOf.size(); ++chunk)
    for (plan::TaskId id : job.plan.chunks[chunk].tasks) {
      const plan::Task &task = job.plan.tasks[id];
      auto name = mlir::RegisteredOperationName::lookup(task.op, context);
      auto *facts = name ? name->getInterface<ir::PrecisionOp>() : nullptr;
      if (facts && facts->getPrecisionClass() == ir::PrecisionClass::product)
        flopsOf[chunk] += task.flops;
    }
  double flops = 0;
  for (const std::vector<plan::Action> &actions : program.actions)
    for (const plan::Action &action : actions)
      flops += flopsOf[action.chunk];
  return flops;
}

StepFigures figuresOf(const JobPlan &job) {
  const plan::Program &program = job.plan.programs.front();
  const Model &model = job.planned->model;
  const Configuration &how = job.planned->search.best.configuration;
  double modelFlops = 0;
  for (const ModelOp &op : model.ops)
    modelFlops += op.forward.matrixFlops + op.inputGradient.matrixFlops + op.weightGradient.matrixFlops;
  modelFlops *= model.isMicrobatch ? how.microbatches : 1;
  const double perStep = 1 / (job.plan.predicted.stepUs * 1e6);
  const auto &rates = job.cluster.device.flopsPerSecond;
  auto rate = rates.find(how.precision);
  StepFigures figures;
  figures.tflopsPerDevice = productFlops(job, program) / job.plan.numStages() * perStep;
  figures.modelTflopsPerDevice = modelFlops / double(job.plan.mesh.numRanks()) * perStep;
  figures.utilisation =
      figures.tflopsPerDevice * 1e12 / (rate == rates.end() ? rates.at(plan::DType::f32) : rate->second);
  figures.traffic = trafficOf(job.plan, program);
  return figures;
}

Json simulationJson(const JobPlan &job) {
  const PlannedStep &planned = *job.planned;
  const plan::Predicted &predicted = job.plan.predicted;
  const StepFigures figures = figuresOf(job);
  Json json;
  json["model"] = planned.model.name;
  json["parameters"] = planned.model.parameterElements;
  json["cluster"] = planned.cluster.name;
  if (!planned.machines.empty())
    json["machines"] = planned.machines;
  json["devices"] = planned.search.best.configuration.numRanks();
  json["plan"] = configurationJson(planned.search.best);
  json["step_us"] = predicted.stepUs;
  json["tflops_per_device"] = figures.tflopsPerDevice;
  json["model_tflops_per_device"] = figures.modelTflopsPerDevice;
  json["utilisation"] = figures.utilisation;
  json["compute_us"] = predicted.computeUs;
  json["comm_us"] = predicted.commUs;
  json["bubble"] = predicted.bubble;
  json["peak_bytes"] = predicted.peakBytes;
  json["save_copy_bytes"] = saveCopies(job.plan);
  json["traffic"] = {{"tensor_bytes", uint64_t(figures.traffic.tensorBytes)},
                     {"data_bytes", uint64_t(figures.traffic.dataBytes)},
                     {"pipe_bytes", uint64_t(figures.traffic.pipeBytes)}};
  json["search"] = searchJson(planned.search);
  return json;
}

std::string simulationText(const JobPlan &job) {
  const PlannedStep &planned = *job.planned;
  const plan::Predicted &predicted = job.plan.predicted;
  const SearchResult &search = planned.search;
  const StepFigures figures = figuresOf(job);
  const double peakBytes = double(*std::max_element(predicted.peakBytes.begin(), predicted.peakBytes.end()));
  std::string text;
  auto line = [&](const char *key, const std::string &value) { text += fmt::format("{:<24}{}\n", key, value); };
  line("plan", describe(search.best));
  line("cluster", fmt::format("{}, {} of {} devices, {}", planned.cluster.name, search.best.configuration.numRanks(),
                              planned.cluster.numDevices(), plan::nameOf(search.best.configuration.precision)));
  line("parameters", fmt::format("{:.0f}", planned.model.parameterElements));
  line("step_us", fmt::format("{:.1f}", predicted.stepUs));
  line("tflops_per_device",
       fmt::format("{:.4g} ({:.4g} without recomputation)", figures.tflopsPerDevice, figures.modelTflopsPerDevice));
  line("utilisation", fmt::format("{:.1f} %", 100 * figures.utilisation));
  line("compute_us", fmt::format("{:.1f}", predicted.computeUs));
  line("comm_us", fmt::format("{:.1f}", predicted.commUs));
  line("bubble", fmt::format("{:.2f} %", 100 * predicted.bubble));
  line("peak_bytes", fmt::format("{:.0f} ({})", peakBytes, gibibytes(peakBytes)));
  const std::vector<uint64_t> copies = saveCopies(job.plan);
  const double copy = double(*std::max_element(copies.begin(), copies.end()));
  line("save_copy_bytes", fmt::format("{:.0f} ({}) more while a checkpoint is saved", copy, gibibytes(copy)));
  line("traffic",
       fmt::format("tensor {}, data {}, pipe {} sent by a device in a step", gibibytes(figures.traffic.tensorBytes),
                   gibibytes(figures.traffic.dataBytes), gibibytes(figures.traffic.pipeBytes)));
  line("search",
       fmt::format("lower bound {:.1f} us, gap {:.2f} %, {} of {} configurations in {:.2f} s, {}", search.lowerBoundUs,
                   100 * search.gap, search.numExpanded, search.numConfigurations, search.seconds, search.stopped));
  for (const SearchedPlan &plan : search.alternatives)
    line("alternative", fmt::format("{:.1f} us (+{:.1f} %): {}", plan.stages.stepUs,
                                    100 * (plan.stages.stepUs / search.best.stages.stepUs - 1), describe(plan)));
  return text;
}

/// The ops that could be cut otherwise, or were pinned, the dearest of each block first, as many as fit a page.
std::string choicesText(const PlannedStep &planned, const Explanation &why) {
  constexpr size_t mostLines = 30;
  std::string text;
  size_t numLines = 0, numLeft = 0, numFixed = 0;
  for (const BlockExplanation &block : why.blocks) {
    std::vector<const OpExplanation *> open;
    for (const OpExplanation &op : block.ops)
      if (!op.runnerUp.empty() || planned.model.ops[op.op].pinnedChoice != notPinned)
        open.push_back(&op);
    numFixed += (block.ops.size() - open.size()) * block.count;
    std::stable_sort(open.begin(), open.end(),
                     [](const OpExplanation *a, const OpExplanation *b) { return a->costUs > b->costUs; });
    const size_t shown = std::min(open.size(), mostLines - numLines);
    numLines += shown;
    numLeft += open.size() - shown;
    if (shown > 0)
      text += fmt::format("\nblock of {} ops, {} in the model, {:.1f} us a micro-batch each:\n", block.numOps,
                          block.count, block.costUs);
    for (size_t i = 0; i < shown; ++i) {
      const OpExplanation &op = *open[i];
      const ModelOp &own = planned.model.ops[op.op];
      std::string other =
          op.runnerUp.empty() ? op.boundBy
          : std::isfinite(op.runnerUpUs)
              ? fmt::format("next: {} ({:+.1f} us); bound by {}", op.runnerUp, op.runnerUpUs, op.boundBy)
              : fmt::format("next: {} (not possible with the ops around it)", op.runnerUp);
      text += fmt::format("  {:10.1f} us  {}{}: {}; {}\n", op.costUs, own.name,
                          own.source.empty() ? "" : " at " + own.source, op.choice, other);
    }
  }
  text +=
      fmt::format("\n{} ops have no other choice{}\n", numFixed,
                  numLeft == 0 ? std::string() : fmt::format("; {} cheaper ones are only in --explain json", numLeft));
  return text;
}

std::string explanationText(const PlannedStep &planned, const Explanation &why) {
  const SearchResult &search = planned.search;
  std::string text =
      fmt::format("{}: {:.1f} us a step, no plan is faster than {:.1f} us (gap {:.2f} %)\nbound by {}\n\n",
                  describe(search.best), search.best.stages.stepUs, search.lowerBoundUs, 100 * search.gap, why.binding);
  if (!planned.machines.empty())
    text.insert(text.size() - 1, planned.machines + "\n");
  text += "largest costs of a step on the slowest stage:\n";
  for (const CostItem &item : why.largest)
    text += fmt::format("  {:12.1f} us  {}: {}\n", item.stepUs, item.what, item.advice);
  if (!search.alternatives.empty())
    text += "\nother meshes:\n";
  for (const SearchedPlan &plan : search.alternatives)
    text +=
        fmt::format("  {:12.1f} us  {} ({})\n", plan.stages.stepUs, describe(plan), gibibytes(plan.stages.peakBytes));
  text += choicesText(planned, why);
  if (!planned.precision.empty())
    text += "\nprecision:\n";
  for (const PrecisionReason &reason : planned.precision)
    text += fmt::format("  {:<5} {} ({}): {}\n", reason.type, reason.name, reason.op, reason.why);
  return text;
}

Json explanationJson(const PlannedStep &planned, const Explanation &why) {
  Json json;
  json["plan"] = configurationJson(planned.search.best);
  json["cluster"] = planned.cluster.name;
  if (!planned.machines.empty())
    json["machines"] = planned.machines;
  json["step_us"] = planned.search.best.stages.stepUs;
  json["search"] = searchJson(planned.search);
  json["binding"] = why.binding;
  json["largest_costs"] = Json::array();
  for (const CostItem &item : why.largest)
    json["largest_costs"].push_back({{"what", item.what}, {"step_us", item.stepUs}, {"advice", item.advice}});
  json["stages"] = Json::array();
  for (const StageExplanation &stage : why.stages)
    json["stages"].push_back({{"first_op", planned.model.ops[stage.firstOp].name},
                              {"ops", stage.lastOp - stage.firstOp},
                              {"forward_us", stage.forwardUs},
                              {"backward_us", stage.backwardUs},
                              {"sync_us", stage.syncUs},
                              {"peak_bytes", uint64_t(stage.peakBytes)},
                              {"recomputed", stage.isRecomputed}});
  json["blocks"] = Json::array();
  for (const BlockExplanation &block : why.blocks) {
    Json own = {{"count", block.count}, {"cost_us", block.costUs}, {"ops", Json::array()}};
    for (const OpExplanation &op : block.ops) {
      const ModelOp &of = planned.model.ops[op.op];
      Json entry = {{"name", of.name},     {"op", of.kind},        {"source", of.source},
                    {"choice", op.choice}, {"cost_us", op.costUs}, {"bound_by", op.boundBy}};
      if (!op.runnerUp.empty() && std::isfinite(op.runnerUpUs)) {
        entry["runner_up"] = op.runnerUp;
        entry["runner_up_us"] = op.runnerUpUs;
      }
      own["ops"].push_back(std::move(entry));
    }
    json["blocks"].push_back(std::move(own));
  }
  if (!planned.precision.empty())
    json["precision"] = Json::array();
  for (const PrecisionReason &reason : planned.precision)
    json["precision"].push_back({{"name", reason.name}, {"op", reason.op}, {"type", reason.type}, {"why", reason.why}});
  return json;
}

} // namespace

std::string simulationOf(const JobPlan &job, Form form) {
  return form == Form::none ? "" : form == Form::text ? simulationText(job) : simulationJson(job).dump(2) + "\n";
}

std::string explanationOf(const PlannedStep &planned, Form form) {
  if (form == Form::none)
    return "";
  Explanation why = explain(planned.model, CostModel(planned.cluster), planned.search.best);
  return form == Form::text ? explanationText(planned, why) : explanationJson(planned, why).dump(2) + "\n";
}

} // namespace dg::compiler
