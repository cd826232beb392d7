// SPDX-License-Identifier: Apache-2.0
#include "compiler/Planning.h"

#include "compiler/Report.h"
#include "partitioner/schedule/Schedule.h"
#include "partitioner/search/Conflict.h"
#include "passes/partition/ExtractModel.h"
#include "passes/partition/Mesh.h"
#include "passes/partition/Pins.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace dg::compiler {

using partitioner::PipelineKind;
using partitioner::Recompute;
using partitioner::SearchOptions;

bool wantsPlanning(const CompileOptions &options) {
  return options.ranks > 0 || !options.cluster.empty() || !options.simulate.empty() || !options.explain.empty() ||
         !options.pins.empty() || !options.forbidden.empty();
}

void describeStep(const CompileOptions &options, const std::string &optimizer, bool isTraining,
                  const partitioner::Cluster &cluster, passes::PipelineOptions &pipeline) {
  pipeline.optimizer = optimizer;
  pipeline.frozen = options.frozen;
  pipeline.loss = isTraining ? options.loss : "";
  pipeline.isTraining = isTraining;
  pipeline.storesScores = cluster.device.storesScores;
  if (!options.simulate.empty())
    return; // a simulation counts every float with the bytes of its precision; a job has the casts that it will run
  if (!options.precision.empty() && options.precision != "auto")
    pipeline.precision = options.precision;
  pipeline.precisionOverrides = options.precisionOverrides;
  pipeline.reducesWide = options.reducePrecision == "f32";
  auto isHalf = [](const std::string &text) { return llvm::StringRef(text).ends_with("=f16"); };
  if (options.precision == "f16" || llvm::any_of(options.precisionOverrides, isHalf)) {
    pipeline.lossScale = options.lossScale;
    pipeline.growthInterval = options.lossScaleInterval;
  }
}

Result<partitioner::Cluster> chooseCluster(const CompileOptions &options, int64_t numRanks) {
  if (options.cluster.empty())
    return partitioner::hostCluster(uint32_t(std::max<int64_t>(numRanks, 1)));
  Result<partitioner::Cluster> cluster = partitioner::findCluster(options.cluster);
  if (!cluster)
    return cluster;
  return cluster->forRanks(numRanks > 0 ? uint64_t(numRanks) : cluster->numDevices());
}

namespace {

/// Plans that only the simulator understands are asked for with --simulate; a job must be compiled.
Status checkCompilable(const CompileOptions &options) {
  if (!options.simulate.empty())
    return Status::ok();
  if (!options.recompute.empty())
    return Status::error(ErrorKind::usage,
                         "--recompute can be simulated, but no job can be compiled for it in this version: give "
                         "--simulate too, or leave it out");
  return Status::ok();
}

/// "1f1b" or "interleaved:3"; "interleaved" alone leaves the number of chunks to the search.
Status readSchedule(const std::string &text, SearchOptions &search) {
  Result<partitioner::ScheduleForm> form = partitioner::parseSchedule(text);
  if (!form)
    return form.status();
  for (PipelineKind kind : {PipelineKind::gpipe, PipelineKind::oneForwardOneBackward, PipelineKind::interleaved,
                            PipelineKind::zeroBubbleH1, PipelineKind::zeroBubbleV})
    if (form->name == partitioner::nameOf(kind))
      search.schedules = {kind};
  search.chunksPerRank = text.find(':') == std::string::npos ? 0 : form->chunksPerStage;
  return Status::ok();
}

Result<plan::DType> choosePrecision(const std::string &name, const partitioner::Device &device, bool isJob) {
  // A device with a 16-bit rate trains with it; a job is compiled for f32 unless the user says otherwise.
  if (name.empty() || name == "auto")
    return !isJob && device.flopsPerSecond.count(plan::DType::bf16) ? plan::DType::bf16 : plan::DType::f32;
  for (plan::DType type : {plan::DType::f32, plan::DType::bf16, plan::DType::f16})
    if (name == plan::nameOf(type))
      return type;
  return Status::error(ErrorKind::usage, "--precision {}: expected auto, f32, bf16 or f16", name);
}

Result<SearchOptions> readOptions(const CompileOptions &options, const plan::Mesh &mesh,
                                  const partitioner::Cluster &cluster, bool isTraining) {
  DG_RETURN_IF_ERROR(checkCompilable(options));
  SearchOptions search;
  const bool isJob = options.simulate.empty(), hasMesh = !options.mesh.empty();
  search.numRanks = uint32_t(hasMesh ? mesh.numRanks() : options.ranks > 0 ? options.ranks : cluster.numDevices());
  if (hasMesh && options.ranks > 0 && options.ranks != mesh.numRanks())
    return Status::error(ErrorKind::usage,
                         "--ranks {} and --mesh {}, which has {} ranks: make them agree, or leave one out",
                         options.ranks, options.mesh, mesh.numRanks());
  if (hasMesh) {
    search.data = uint32_t(mesh.sizeOf("data"));
    search.tensor = uint32_t(mesh.sizeOf("tensor"));
    search.pipe = uint32_t(mesh.sizeOf("pipe"));
  }
  search.microbatches = uint32_t(options.microbatches * options.accumulate);
  if (!options.schedule.empty())
    DG_RETURN_IF_ERROR(readSchedule(options.schedule, search));
  else if (isTraining && !hasMesh) // without backward passes they are all the same
    search.schedules = {PipelineKind::oneForwardOneBackward, PipelineKind::interleaved, PipelineKind::zeroBubbleH1,
                        PipelineKind::zeroBubbleV};
  if (options.zero >= 0)
    search.zero = {uint32_t(options.zero)};
  else if (isTraining && !hasMesh)
    search.zero = {0, 1, 2, 3};
  search.recompute = options.recompute == "full"   ? Recompute::full
                     : options.recompute == "none" ? Recompute::none
                     : isJob                       ? Recompute::none
                                                   : Recompute::automatic;
  Result<plan::DType> precision = choosePrecision(options.precision, cluster.device, isJob);
  if (!precision)
    return precision.status();
  search.precision = *precision;
  search.memoryBytes = double(options.memoryBytes);
  search.seconds = options.planSeconds;
  search.forbiddenAxes = options.forbidden;
  return search;
}

} // namespace

int planStep(mlir::ModuleOp module, const CompileOptions &options, const std::string &optimizer, bool isTraining,
             PlannedStep &planned) {
  Result<plan::Mesh> mesh = passes::parseMesh(options.mesh);
  if (!mesh)
    return report(mesh.status());
  Result<partitioner::Cluster> cluster = chooseCluster(options, options.ranks > 0       ? options.ranks
                                                                : !options.mesh.empty() ? mesh->numRanks()
                                                                                        : 0);
  if (!cluster)
    return report(cluster.status());
  planned.cluster = *cluster;
  Result<SearchOptions> search = readOptions(options, *mesh, *cluster, isTraining);
  if (!search)
    return report(search.status());

  mlir::OwningOpRef<mlir::ModuleOp> whole = module.clone();
  passes::PipelineOptions pipeline;
  describeStep(options, optimizer, isTraining, planned.cluster, pipeline);
  pipeline.batch = options.batch * options.accumulate;
  mlir::PassManager manager(module.getContext());
  passes::buildWholePipeline(manager, pipeline);
  if (failed(manager.run(*whole)))
    return exitBadInput;
  if (auto reasons = (*whole)->getAttrOfType<mlir::ArrayAttr>("dg.precision"))
    for (auto reason : reasons.getAsRange<mlir::ArrayAttr>()) {
      auto text = [&](unsigned index) { return mlir::cast<mlir::StringAttr>(reason[index]).str(); };
      planned.precision.push_back({text(0), text(1), text(2), text(3)});
    }
  mlir::FailureOr<partitioner::Model> model = passes::extractModel(*whole);
  if (failed(model))
    return exitBadInput;
  planned.model = std::move(*model);
  planned.model.name = options.model;
  for (const std::string &text : options.pins) {
    Result<partitioner::Pin> pin = passes::resolvePin(text, planned.model);
    if (!pin)
      return report(pin.status());
    search->pins.push_back(std::move(*pin));
  }

  partitioner::CostModel costs(planned.cluster);
  Result<partitioner::SearchResult> found = partitioner::searchPlan(planned.model, costs, *search);
  if (!found)
    return report(found.status());
  planned.search = std::move(*found);
  planned.model =
      partitioner::inOrderOf(*partitioner::applyPins(std::move(planned.model), search->pins), planned.search.best);
  planned.prediction = partitioner::predict(planned.model, costs, planned.search.best);
  return 0;
}

} // namespace dg::compiler
