// SPDX-License-Identifier: Apache-2.0
#include "compiler/JobPlan.h"

#include "compiler/LoadModel.h"
#include "compiler/Planning.h"
#include "partitioner/memory/PlanMemory.h"
#include "partitioner/schedule/PlanSchedule.h"
#include "passes/Pipeline.h"
#include "passes/partition/Mesh.h"

namespace dg::compiler {

namespace {

/// A schedule lists every micro-batch.
constexpr int64_t maxMicrobatches = 65536;
/// Searches with less and less memory before a job is given up.
constexpr int maxSearches = 8;
/// Rounds in which more and more of the forward pass runs again.
constexpr int maxRecomputeRounds = 6;

Result<partitioner::ScheduleForm> readSchedule(const Request &request) {
  return request.schedule.empty() ? partitioner::ScheduleForm() : partitioner::parseSchedule(request.schedule);
}

/// The stage that needs most.
std::pair<uint32_t, uint64_t> largestArena(const plan::Plan &plan) {
  std::pair<uint32_t, uint64_t> largest{0, 0};
  for (uint32_t stage = 0; stage < plan.memory.size(); ++stage)
    if (plan.memory[stage].arenaBytes > largest.second)
      largest = {stage, plan.memory[stage].arenaBytes};
  return largest;
}

/// `whole` is what the largest stage needs when nothing is computed twice.
Status checkMemory(const plan::Plan &plan, uint64_t limit, uint64_t whole) {
  auto [stage, bytes] = largestArena(plan);
  if (limit == 0 || bytes <= limit)
    return Status::ok();
  std::string again =
      bytes < whole ? fmt::format(" (and {} without computing values of the forward pass again)", whole) : "";
  return Status::error(ErrorKind::usage,
                       "stage {} needs {} bytes on each device{}, {} more than --memory {}: cut it over more stages or "
                       "a tensor axis, or use more --microbatches",
                       stage, bytes, again, bytes - limit, limit);
}

/// What the search chose, as if it had been given by hand; returns what the plan records of the search.
plan::Search adopt(const PlannedStep &planned, Request &request) {
  const partitioner::SearchResult &found = planned.search;
  const partitioner::Configuration &how = found.best.configuration;
  request.mesh = how.meshText();
  request.microbatches = std::max<int64_t>(1, how.microbatches / request.accumulate);
  request.schedule = how.scheduleText();
  request.zero = how.zero;
  plan::Search search;
  search.lowerBoundUs = found.lowerBoundUs;
  search.gap = found.gap;
  search.seconds = found.seconds;
  search.stopped = found.stopped;
  for (const partitioner::SearchedPlan &plan : found.alternatives)
    search.alternatives.push_back({partitioner::describe(plan), plan.stages.stepUs, uint64_t(plan.stages.peakBytes)});
  return search;
}

/// Passes, tasks, schedule and arenas. Kernels and literals are added to those of `shared`, where it is given.
Result<JobPlan> split(mlir::ModuleOp module, const Request &request, const StepSource &source,
                      passes::PipelineOptions pipeline, JobPlan *shared = nullptr) {
  Result<plan::Mesh> mesh = passes::parseMesh(request.mesh);
  if (!mesh)
    return mesh.status();
  Result<BatchPlan> batch = planBatch(request, *mesh);
  if (!batch)
    return batch.status();
  Result<partitioner::Cluster> cluster = chooseCluster(request, mesh->numRanks());
  if (!cluster)
    return cluster.status();
  Result<partitioner::ScheduleForm> form = readSchedule(request);
  if (!form)
    return form.status();
  if (!source.isTraining) // micro-batches of an inference follow each other in any schedule
    form = partitioner::ScheduleForm();
  JobPlan job;
  job.cluster = std::move(*cluster);
  job.module = module.clone();
  describeStep(request, source.optimizer, source.isTraining, job.cluster, pipeline);
  pipeline.mesh = *mesh;
  pipeline.batch = batch->rows;
  pipeline.microbatches = batch->microbatches;
  pipeline.paddedRows = batch->rows * batch->microbatches - batch->samples;
  pipeline.batchPieces = batch->microbatches / request.accumulate;
  pipeline.chunksPerStage = form->chunksPerStage;
  pipeline.isFolded = form->schedule->isFolded;
  pipeline.splitsBackward = form->schedule->splitsBackward;
  pipeline.zero = request.zero.value_or(0);
  pipeline.planning.configuration.schedule = form->schedule;
  mlir::PassManager manager(module.getContext());
  passes::buildPipeline(manager, pipeline);
  if (request.savePhases)
    job.phases.attach(manager, *job.module);
  if (failed(manager.run(*job.module)))
    return diagnosed();
  if (request.emit == Emit::dg)
    return job;

  codegen::PlanOptions planOptions;
  planOptions.mesh = *mesh;
  planOptions.model = source.model;
  planOptions.batch = batch->samples;
  planOptions.microbatches = uint32_t(batch->microbatches);
  std::vector<plan::ChunkRole> roles;
  if (!shared)
    job.kernels = std::make_unique<codegen::KernelSet>(*module.getContext(), source.targets);
  JobPlan &owner = shared ? *shared : job;
  mlir::FailureOr<plan::Plan> plan =
      codegen::buildPlan(*job.module, planOptions, *owner.kernels, owner.literals, roles);
  if (failed(plan))
    return diagnosed();
  job.plan = std::move(*plan);
  DG_RETURN_IF_ERROR(partitioner::schedulePlan(job.plan, *form, roles));
  partitioner::planMemory(job.plan);
  return job;
}

/// Splits as the flags say; where a stage needs more than `--memory`, values of the forward pass are made again in the
/// backward pass, cheapest for each byte first. What that saves is an estimate: what it lacks is asked for once more.
Result<JobPlan> splitToFit(mlir::ModuleOp module, const Request &request, const StepSource &source) {
  Result<JobPlan> job = split(module, request, source, {});
  if (!job)
    return job;
  const uint64_t limit = request.memoryBytes, whole = largestArena(job->plan).second;
  if (limit == 0 || whole <= limit)
    return job;
  const uint32_t numStages = job->plan.numStages();
  const partitioner::ScheduleForm form = *readSchedule(request);
  const partitioner::Device device = job->cluster.device;
  passes::PipelineOptions pipeline;
  pipeline.flopsPerByte = device.flopsPerSecond.at(plan::DType::f32) * device.efficiency / device.memoryBytesPerSecond;
  pipeline.savedBytes.resize(size_t(numStages) * form.chunksPerStage);
  for (int round = 0; source.isTraining && round < maxRecomputeRounds; ++round) {
    const uint64_t before = largestArena(job->plan).second;
    for (uint32_t part = 0; part < pipeline.savedBytes.size(); ++part)
      if (uint64_t bytes =
              job->plan.memory[partitioner::stageOfChunk(part, numStages, form.schedule->isFolded)].arenaBytes;
          bytes > limit)
        pipeline.savedBytes[part] += (int64_t(bytes - limit) + form.chunksPerStage - 1) / form.chunksPerStage;
    Result<JobPlan> next = split(module, request, source, pipeline);
    if (!next)
      return next;
    const uint64_t after = largestArena(next->plan).second;
    if (after < before)
      job = std::move(next);
    if (after <= limit || after >= before)
      break;
  }
  DG_RETURN_IF_ERROR(checkMemory(job->plan, limit, whole));
  return job;
}

/// Searches and splits until the arena fits. The bytes of a search are an estimate: where it is too low for the plan
/// that was found, the next search gets so much less memory that this plan is out.
Result<JobPlan> searchJob(mlir::ModuleOp module, const Request &given, const StepSource &source, Messages &messages) {
  Request request = given;
  Result<plan::Mesh> mesh = passes::parseMesh(given.mesh);
  Result<BatchPlan> read = planBatch(given, *mesh);
  std::string last; // what the search before found, and what it needs
  for (int round = 0; round < maxSearches; ++round) {
    Result<PlannedStep> planned = planStep(module, request, source.optimizer, source.isTraining);
    if (!planned)
      return planned.status();
    Request chosen = given;
    plan::Search search = adopt(*planned, chosen);
    Result<plan::Mesh> foundMesh = passes::parseMesh(chosen.mesh);
    Result<BatchPlan> batch = planBatch(chosen, *foundMesh);
    if (!batch)
      return batch.status();
    mlir::ModuleOp own = module;
    if (source.readAgain && batch->rows != read->rows) { // shapes were computed with the rows of one rank
      Result<mlir::ModuleOp> again = source.readAgain(batch->rows);
      if (!again)
        return again.status();
      own = *again;
    }
    passes::PipelineOptions pipeline;
    passes::GraphPlan found; // on the graph as it runs: what is compiled, and explained
    pipeline.found = &found;
    pipeline.planning.memoryBytes =
        double(request.memoryBytes > 0 ? request.memoryBytes : planned->cluster.device.memoryBytes);
    pipeline.planning.recompute = given.recompute;
    if (given.mesh.empty())
      pipeline.planning.leastCutShare = 0;
    Result<JobPlan> job = split(own, chosen, source, pipeline);
    if (!job)
      return job;
    job->plan.search = std::move(search);
    if (!found.plan.choices.empty()) {
      found.model.name = given.model;
      planned->model = std::move(found.model);
      planned->search.best = std::move(found.plan);
    }
    const uint64_t limit = given.memoryBytes > 0 ? given.memoryBytes : job->cluster.device.memoryBytes;
    auto [stage, bytes] = largestArena(job->plan);
    const bool mustFit = given.emit == Emit::package || (given.emit == Emit::nothing && given.mesh.empty());
    if (bytes <= limit || !mustFit) {
      job->planned = std::move(*planned);
      return job;
    }
    const partitioner::SearchedPlan &best = planned->search.best;
    last = fmt::format("{} was estimated at {:.0f} bytes on each device, but stage {} needs {}, {} more than {}",
                       partitioner::describe(best), best.stages.peakBytes, stage, bytes, bytes - limit, limit);
    messages.add(Message::Kind::note, last + ": searching again");
    request.memoryBytes =
        std::max<uint64_t>(1, uint64_t(double(limit) * std::min(0.99, best.stages.peakBytes / double(bytes))));
  }
  return Status::error(ErrorKind::usage,
                       "none of {} searched plans fits; {}: give more ranks, more --memory, a smaller batch or "
                       "more micro-batches",
                       maxSearches, last);
}

} // namespace

Result<BatchPlan> planBatch(const Request &request, const plan::Mesh &mesh) {
  int64_t data = mesh.sizeOf("data"), pipe = mesh.sizeOf("pipe");
  BatchPlan plan;
  int64_t perBatch = request.microbatches;
  if (perBatch == 0)
    perBatch = pipe == 1 ? 1 : std::max<int64_t>(1, std::min(2 * pipe, request.batch / data));
  if (request.batch > 0 && request.batch < data * perBatch)
    return Status::error(ErrorKind::usage,
                         "a batch of {} samples is fewer than the {} ranks on the data axis times {} micro-batches: "
                         "give a larger --batch, a smaller data axis or fewer --microbatches",
                         request.batch, data, perBatch);
  if (perBatch > maxMicrobatches / request.accumulate)
    return Status::error(ErrorKind::usage,
                         "{} micro-batches times --accumulate {} are more than the {} that a step may have: give fewer",
                         perBatch, request.accumulate, maxMicrobatches);
  plan.samples = request.batch * request.accumulate;
  plan.microbatches = perBatch * request.accumulate;
  int64_t perRank = (request.batch + data * perBatch - 1) / (data * perBatch);
  plan.rows = perRank * data;
  return plan;
}

Result<JobPlan> planJob(mlir::ModuleOp module, const Request &request, const StepSource &source, Messages &messages) {
  if (wantsPlanning(request))
    return searchJob(module, request, source, messages);
  Result<JobPlan> job = splitToFit(module, request, source);
  if (job)
    job->plan.search.stopped = "given by hand";
  return job;
}

Status addSmaller(JobPlan &job, mlir::ModuleOp module, const Request &request, const StepSource &source,
                  int64_t batch) {
  Request own = request;
  own.batch = batch;
  own.mesh.clear(); // one rank, which was checked
  own.ranks = 0;
  own.pins.clear(), own.forbidden.clear();
  own.emit = Emit::package;
  Result<JobPlan> smaller = split(module, own, source, {}, &job);
  if (!smaller)
    return smaller.status();
  job.smaller.insert(job.smaller.begin(), std::move(smaller->plan));
  return Status::ok();
}

} // namespace dg::compiler
