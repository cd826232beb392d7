// SPDX-License-Identifier: Apache-2.0
#include "compiler/Planning.h"

#include "compiler/Messages.h"
#include "ir/dialect/Dialect.h"
#include "partitioner/schedule/ScheduleDescriptor.h"
#include "partitioner/search/Conflict.h"
#include "passes/partition/ExtractModel.h"
#include "passes/partition/Mesh.h"
#include "passes/partition/Pins.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

#include <thread>

namespace dg::compiler {

using partitioner::Recompute;
using partitioner::SearchOptions;

bool wantsPlanning(const Request &request) {
  return request.ranks > 0 || !request.cluster.empty() || request.simulate != Form::none ||
         request.explain != Form::none || !request.pins.empty() || !request.forbidden.empty();
}

void describeStep(const Request &request, const std::string &optimizer, bool isTraining,
                  const partitioner::Cluster &cluster, passes::PipelineOptions &pipeline) {
  pipeline.optimizer = optimizer;
  pipeline.frozen = request.frozen;
  pipeline.frozenStatistics = request.frozenStatistics;
  pipeline.loss = isTraining ? request.loss : "";
  pipeline.isTraining = isTraining;
  pipeline.metrics = request.metrics;
  pipeline.storesScores = cluster.device.storesScores;
  pipeline.planning.cluster = cluster.withSharedCores();
  pipeline.planning.pins = request.pins;
  if (request.recompute == Recompute::full) // where a stage does not fit by hand, it is known from its arena
    pipeline.planning.recompute = Recompute::full;
  if (request.precision) {
    pipeline.precision = plan::nameOf(*request.precision);
    pipeline.planning.configuration.precision = *request.precision;
  }
  pipeline.precisionOverrides = request.precisionOverrides;
  pipeline.reducesWide = request.reducesWide;
  auto isHalf = [](const std::string &text) { return llvm::StringRef(text).ends_with("=f16"); };
  if (request.precision == plan::DType::f16 || llvm::any_of(request.precisionOverrides, isHalf)) {
    pipeline.lossScale = request.lossScale;
    pipeline.growthInterval = request.lossScaleInterval;
  }
}

/// How much of a core each of so many ranks on a host has.
static double coreShare(int64_t numRanks, int64_t numCores) {
  return std::min(1.0, double(std::max<int64_t>(1, numCores)) / double(numRanks));
}

/// The host as it was measured, with so many ranks on it.
static partitioner::Cluster hostFor(const Host &host, int64_t numRanks) {
  partitioner::Cluster cluster = host.cluster;
  const uint64_t hostBytes = cluster.device.memoryBytes * cluster.devicesPerNode;
  cluster.devicesPerNode = uint32_t(numRanks);
  cluster.device.memoryBytes = std::max<uint64_t>(1, hostBytes / uint64_t(numRanks));
  return cluster;
}

/// This host, as far as nothing was measured: ranks that share cores have a part of them.
static partitioner::Cluster guessHost(int64_t numRanks) {
  partitioner::Cluster host = partitioner::hostCluster(uint32_t(numRanks));
  return host.withCoresOf(std::max(1u, std::thread::hardware_concurrency()), uint64_t(numRanks));
}

bool isForThisHost(const Request &request) {
  return request.cluster == "host" || (request.cluster.empty() && wantsPlanning(request));
}

Result<partitioner::Cluster> chooseCluster(const Request &request, int64_t numRanks) {
  if (isForThisHost(request) && request.host)
    return hostFor(*request.host, numRanks > 0              ? numRanks
                                  : request.cluster.empty() ? 1
                                                            : request.host->cluster.devicesPerNode);
  if (request.cluster.empty())
    return guessHost(std::max<int64_t>(numRanks, 1));
  if (request.cluster == "host")
    return Status::error(ErrorKind::usage, "--cluster host: this host was not measured; name a preset or a file");
  Result<partitioner::Cluster> cluster = partitioner::findCluster(request.cluster);
  if (!cluster)
    return cluster;
  return cluster->forRanks(numRanks > 0 ? uint64_t(numRanks) : cluster->numDevices());
}

std::string describeHost(const Request &request, int64_t numRanks) {
  if (!isForThisHost(request))
    return "";
  auto sharing = [&](int64_t numCores) {
    const double share = coreShare(numRanks, numCores);
    return share < 1 ? fmt::format("; {:.3g} of a core for each of {} ranks", share, numRanks) : "";
  };
  if (request.host)
    return fmt::format("for this host, one core to a rank: {}{}; 'dgrun --probe' measures anew",
                       request.host->description, sharing(request.host->cluster.coresPerNode));
  const partitioner::Device device = guessHost(numRanks).device;
  return fmt::format("this host was not measured: times are predicted for {:.3g} Gflop/s and {:.3g} GB/s a rank{}; "
                     "'dgrun --probe > host.json', then --cluster host.json",
                     device.flopsPerSecond.at(plan::DType::f32) / 1e9, device.memoryBytesPerSecond / 1e9,
                     sharing(std::thread::hardware_concurrency()));
}

namespace {

/// "1f1b" or "interleaved:3"; "interleaved" alone leaves the number of chunks to the search.
Status readSchedule(const std::string &text, SearchOptions &search) {
  Result<partitioner::ScheduleForm> form = partitioner::parseSchedule(text);
  if (!form)
    return form.status();
  search.schedules = {form->schedule};
  search.chunksPerRank = form->hasChunks ? form->chunksPerStage : 0;
  return Status::ok();
}

Result<SearchOptions> readOptions(const Request &request, const plan::Mesh &mesh, const partitioner::Cluster &cluster,
                                  bool isTraining) {
  SearchOptions search;
  const bool hasMesh = !request.mesh.empty();
  search.numRanks = uint32_t(hasMesh ? mesh.numRanks() : request.ranks > 0 ? request.ranks : cluster.numDevices());
  if (hasMesh && request.ranks > 0 && request.ranks != mesh.numRanks())
    return Status::error(ErrorKind::usage,
                         "--ranks {} and --mesh {}, which has {} ranks: make them agree, or leave one out",
                         request.ranks, request.mesh, mesh.numRanks());
  if (hasMesh) {
    search.data = uint32_t(mesh.sizeOf("data"));
    search.tensor = uint32_t(mesh.sizeOf("tensor"));
    search.pipe = uint32_t(mesh.sizeOf("pipe"));
    search.leastCutShare = partitioner::cutShareByHand;
  }
  search.microbatches = uint32_t(request.microbatches * request.accumulate);
  if (!request.schedule.empty())
    DG_RETURN_IF_ERROR(readSchedule(request.schedule, search));
  else if (isTraining && !hasMesh) // without backward passes they are all the same
    search.schedules = partitioner::searchedSchedules();
  if (request.zero)
    search.zero = {*request.zero};
  else if (isTraining && !hasMesh)
    search.zero = {0, 1, 2, 3};
  search.recompute = request.recompute;
  search.precision = request.precision.value_or(plan::DType::f32);
  search.memoryBytes = double(request.memoryBytes);
  search.seconds = request.planSeconds;
  search.forbiddenAxes = request.forbidden;
  return search;
}

} // namespace

Result<PlannedStep> planStep(mlir::ModuleOp module, const Request &request, const std::string &optimizer,
                             bool isTraining) {
  Result<plan::Mesh> mesh = passes::parseMesh(request.mesh);
  if (!mesh)
    return mesh.status();
  Result<partitioner::Cluster> cluster = chooseCluster(request, request.ranks > 0       ? request.ranks
                                                                : !request.mesh.empty() ? mesh->numRanks()
                                                                                        : 0);
  if (!cluster)
    return cluster.status();
  PlannedStep planned;
  planned.cluster = *cluster;
  Result<SearchOptions> search = readOptions(request, *mesh, *cluster, isTraining);
  if (!search)
    return search.status();

  mlir::OwningOpRef<mlir::ModuleOp> whole = module.clone();
  passes::PipelineOptions pipeline;
  describeStep(request, optimizer, isTraining, planned.cluster, pipeline);
  pipeline.batch = request.batch * request.accumulate;
  mlir::PassManager manager(module.getContext());
  passes::buildWholePipeline(manager, pipeline);
  if (failed(manager.run(*whole)))
    return diagnosed();
  if (auto reasons = (*whole)->getAttrOfType<mlir::ArrayAttr>(ir::precisionName))
    for (auto reason : reasons.getAsRange<ir::PrecisionAttr>()) {
      std::string type;
      llvm::raw_string_ostream(type) << reason.getType();
      planned.precision.push_back({reason.getLabel().str(), reason.getKind().str(), type, reason.getWhy().str()});
    }
  mlir::FailureOr<partitioner::Model> model = passes::extractModel(*whole);
  if (failed(model))
    return diagnosed();
  planned.model = std::move(*model);
  planned.model.name = request.model;
  for (const std::string &text : request.pins) {
    Result<partitioner::Pin> pin = passes::resolvePin(text, planned.model);
    if (!pin)
      return pin.status();
    search->pins.push_back(std::move(*pin));
  }

  planned.cluster = planned.cluster.withSharedCores();
  partitioner::CostModel costs(planned.cluster);
  Result<partitioner::SearchResult> found = partitioner::searchPlan(planned.model, costs, *search);
  if (!found)
    return found.status();
  planned.search = std::move(*found);
  planned.model =
      partitioner::inOrderOf(*partitioner::applyPins(std::move(planned.model), search->pins), planned.search.best);
  return planned;
}

} // namespace dg::compiler
