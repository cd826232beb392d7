// SPDX-License-Identifier: Apache-2.0
#include "compiler/JobPlan.h"

#include "compiler/LoadModel.h"
#include "compiler/Planning.h"
#include "compiler/Report.h"
#include "partitioner/memory/PlanMemory.h"
#include "partitioner/schedule/PlanSchedule.h"
#include "partitioner/schedule/Schedule.h"
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

/// A search's cut as AssignStages takes it: the stage of every op, in the order of the program.
std::vector<int64_t> stagesOf(const partitioner::SearchedPlan &plan) {
  std::vector<int64_t> stages(plan.choices.size());
  for (size_t s = 0, position = 0; s < plan.stages.begins.size(); ++s) {
    const size_t end = s + 1 < plan.stages.begins.size() ? plan.stages.begins[s + 1] : stages.size();
    for (; position < end; ++position)
      stages[plan.order.empty() ? position : plan.order[position]] = int64_t(s);
  }
  return stages;
}

/// A search's choice as AssignShardings takes it: a dimension that the factor cuts, of the first result that has one.
/// An operand is named among all operands of the op, parameters included.
std::string dimensionOf(const partitioner::ModelOp &op, int32_t choice) {
  if (choice < 0)
    return "none";
  auto find = [&](const std::vector<int32_t> &factors) {
    return size_t(std::find(factors.begin(), factors.end(), choice) - factors.begin());
  };
  for (size_t i = 0; i < op.results.size(); ++i)
    if (size_t dim = find(op.results[i].factors); dim < op.results[i].factors.size())
      return fmt::format("r{}.{}", i, dim);
  for (const partitioner::ModelUse &use : op.operands)
    if (size_t dim = find(use.factors); dim < use.factors.size())
      return fmt::format("o{}.{}", use.operand, dim);
  for (const partitioner::ModelParameter &parameter : op.parameters)
    if (size_t dim = find(parameter.factors); dim < parameter.factors.size())
      return fmt::format("o{}.{}", parameter.operand, dim);
  return "none";
}

/// What the search chose, as if it had been given by hand; returns what the plan records of the search.
plan::Search adopt(const PlannedStep &planned, CompileOptions &options, passes::PipelineOptions &pipeline) {
  const partitioner::SearchResult &found = planned.search;
  const partitioner::Configuration &how = found.best.configuration;
  options.mesh = how.meshText();
  options.microbatches = std::max<int64_t>(1, how.microbatches / options.accumulate);
  options.schedule = how.scheduleText();
  options.zero = how.zero;
  // The search knows stages; where one has several parts of the model, these are cut by AssignStages' own rule.
  if (how.schedule != partitioner::PipelineKind::interleaved && how.schedule != partitioner::PipelineKind::zeroBubbleV)
    pipeline.stages = stagesOf(found.best);
  pipeline.shardingChoices.resize(planned.model.ops.size());
  for (size_t op = 0; op < planned.model.ops.size(); ++op)
    pipeline.shardingChoices[found.best.order.empty() ? op : found.best.order[op]] =
        dimensionOf(planned.model.ops[op], found.best.choices[op]);
  plan::Search search;
  search.lowerBoundUs = found.lowerBoundUs;
  search.gap = found.gap;
  search.seconds = found.seconds;
  search.stopped = found.stopped;
  for (const partitioner::SearchedPlan &plan : found.alternatives)
    search.alternatives.push_back({partitioner::describe(plan), plan.stages.stepUs, uint64_t(plan.stages.peakBytes)});
  return search;
}

/// Passes, tasks, schedule and arenas.
int split(mlir::ModuleOp module, const CompileOptions &options, const StepSource &source,
          passes::PipelineOptions pipeline, JobPlan &job) {
  Result<plan::Mesh> mesh = passes::parseMesh(options.mesh);
  if (!mesh)
    return report(mesh.status());
  Result<BatchPlan> batch = planBatch(options, *mesh);
  if (!batch)
    return report(batch.status());
  Result<partitioner::Cluster> cluster = chooseCluster(options, mesh->numRanks());
  if (!cluster)
    return report(cluster.status());
  const std::string schedule = options.schedule.empty() ? "1f1b" : options.schedule;
  Result<partitioner::ScheduleForm> form = partitioner::parseSchedule(schedule);
  if (!form)
    return report(form.status());
  if (!source.isTraining) // micro-batches of an inference follow each other in any schedule
    form = partitioner::ScheduleForm{"1f1b"};
  job.cluster = std::move(*cluster);
  job.module = module.clone();
  describeStep(options, source.optimizer, source.isTraining, job.cluster, pipeline);
  pipeline.mesh = options.mesh;
  pipeline.batch = batch->rows;
  pipeline.microbatches = batch->microbatches;
  pipeline.paddedRows = batch->rows * batch->microbatches - batch->samples;
  pipeline.batchPieces = batch->microbatches / options.accumulate;
  pipeline.chunksPerStage = form->chunksPerStage;
  pipeline.isFolded = form->isFolded;
  pipeline.splitsBackward = form->splitsBackward;
  pipeline.zero = std::max<int64_t>(0, options.zero);
  mlir::PassManager manager(module.getContext());
  passes::buildPipeline(manager, pipeline);
  if (options.savePhases)
    job.phases.attach(manager, *job.module);
  if (failed(manager.run(*job.module)))
    return exitBadInput;
  if (options.emit == "dg")
    return 0;

  codegen::PlanOptions planOptions;
  planOptions.mesh = *mesh;
  planOptions.model = source.model;
  planOptions.batch = batch->samples;
  planOptions.microbatches = uint32_t(batch->microbatches);
  std::vector<plan::ChunkRole> roles;
  job.kernels = std::make_unique<codegen::KernelSet>(*module.getContext(), source.targets);
  mlir::FailureOr<plan::Plan> plan = codegen::buildPlan(*job.module, planOptions, *job.kernels, job.literals, roles);
  if (failed(plan))
    return exitBadInput;
  job.plan = std::move(*plan);
  if (Status status = partitioner::schedulePlan(job.plan, source.isTraining ? schedule : form->name, roles); !status)
    return report(status);
  partitioner::planMemory(job.plan);
  return 0;
}

/// Splits as the flags say; where a stage needs more than `--memory`, values of the forward pass are made again in the
/// backward pass, cheapest for each byte first. What that saves is an estimate: what it lacks is asked for once more.
int splitToFit(mlir::ModuleOp module, const CompileOptions &options, const StepSource &source, JobPlan &job) {
  if (int code = split(module, options, source, {}, job); code != 0)
    return code;
  const uint64_t limit = options.memoryBytes, whole = largestArena(job.plan).second;
  if (limit == 0 || whole <= limit)
    return 0;
  const uint32_t numStages = job.plan.numStages();
  const partitioner::ScheduleForm form =
      *partitioner::parseSchedule(options.schedule.empty() ? "1f1b" : options.schedule);
  const partitioner::Device device = job.cluster.device;
  passes::PipelineOptions pipeline;
  pipeline.flopsPerByte = device.flopsPerSecond.at(plan::DType::f32) * device.efficiency / device.memoryBytesPerSecond;
  pipeline.savedBytes.resize(size_t(numStages) * form.chunksPerStage);
  for (int round = 0; source.isTraining && round < maxRecomputeRounds; ++round) {
    const uint64_t before = largestArena(job.plan).second;
    for (uint32_t part = 0; part < pipeline.savedBytes.size(); ++part)
      if (uint64_t bytes = job.plan.memory[partitioner::stageOfChunk(part, numStages, form.isFolded)].arenaBytes;
          bytes > limit)
        pipeline.savedBytes[part] += (int64_t(bytes - limit) + form.chunksPerStage - 1) / form.chunksPerStage;
    JobPlan next;
    if (int code = split(module, options, source, pipeline, next); code != 0)
      return code;
    const uint64_t after = largestArena(next.plan).second;
    if (after < before)
      job = std::move(next);
    if (after <= limit || after >= before)
      break;
  }
  if (Status status = checkMemory(job.plan, limit, whole); !status)
    return report(status);
  return 0;
}

/// Searches and splits until the arena fits. The bytes of a search are an estimate: where it is too low for the plan
/// that was found, the next search gets so much less memory that this plan is out.
int searchJob(mlir::ModuleOp module, const CompileOptions &given, const StepSource &source, JobPlan &job) {
  CompileOptions options = given;
  std::string last; // what the search before found, and what it needs
  for (int round = 0; round < maxSearches; ++round) {
    PlannedStep planned;
    if (int code = planStep(module, options, source.optimizer, source.isTraining, planned); code != 0) {
      if (!last.empty())
        llvm::errs() << "dgc: note: " << last << "\n";
      return code;
    }
    CompileOptions chosen = given;
    passes::PipelineOptions pipeline;
    plan::Search search = adopt(planned, chosen, pipeline);
    Result<plan::Mesh> before = passes::parseMesh(given.mesh), after = passes::parseMesh(chosen.mesh);
    Result<BatchPlan> imported = planBatch(given, *before), batch = planBatch(chosen, *after);
    if (!batch)
      return report(batch.status());
    if (isOnnx(given.model) && batch->rows != imported->rows) // shapes were computed with the rows of one rank
      return report(Status::error(ErrorKind::usage,
                                  "the plan found for {} is --mesh {} --microbatches {}: compile it with these flags",
                                  given.model, chosen.mesh, chosen.microbatches));
    job = JobPlan();
    if (int code = split(module, chosen, source, pipeline, job); code != 0)
      return code;
    job.plan.search = std::move(search);
    const uint64_t limit = given.memoryBytes > 0 ? given.memoryBytes : job.cluster.device.memoryBytes;
    auto [stage, bytes] = largestArena(job.plan);
    if (!given.emit.empty() || bytes <= limit) {
      job.planned = std::move(planned);
      return 0;
    }
    const partitioner::SearchedPlan &best = planned.search.best;
    last = fmt::format("{} was estimated at {:.0f} bytes on each device, but stage {} needs {}, {} more than {}",
                       partitioner::describe(best), best.stages.peakBytes, stage, bytes, bytes - limit, limit);
    llvm::errs() << "dgc: note: " << last << ": searching again\n";
    options.memoryBytes =
        std::max<uint64_t>(1, uint64_t(double(limit) * std::min(0.99, best.stages.peakBytes / double(bytes))));
  }
  return report(Status::error(ErrorKind::usage,
                              "none of {} searched plans fits; {}: give more ranks, more --memory, a smaller batch or "
                              "more micro-batches",
                              maxSearches, last));
}

} // namespace

Result<BatchPlan> planBatch(const CompileOptions &options, const plan::Mesh &mesh) {
  int64_t data = mesh.sizeOf("data"), pipe = mesh.sizeOf("pipe");
  BatchPlan plan;
  int64_t perBatch = options.microbatches;
  if (perBatch == 0)
    perBatch = pipe == 1 ? 1 : std::max<int64_t>(1, std::min(2 * pipe, options.batch / data));
  if (options.batch > 0 && options.batch < data * perBatch)
    return Status::error(ErrorKind::usage,
                         "a batch of {} samples is fewer than the {} ranks on the data axis times {} micro-batches: "
                         "give a larger --batch, a smaller data axis or fewer --microbatches",
                         options.batch, data, perBatch);
  if (perBatch > maxMicrobatches / options.accumulate)
    return Status::error(ErrorKind::usage,
                         "{} micro-batches times --accumulate {} are more than the {} that a step may have: give fewer",
                         perBatch, options.accumulate, maxMicrobatches);
  plan.samples = options.batch * options.accumulate;
  plan.microbatches = perBatch * options.accumulate;
  int64_t perRank = (options.batch + data * perBatch - 1) / (data * perBatch);
  plan.rows = perRank * data;
  return plan;
}

int planJob(mlir::ModuleOp module, const CompileOptions &options, const StepSource &source, JobPlan &job) {
  if (wantsPlanning(options))
    return searchJob(module, options, source, job);
  if (int code = splitToFit(module, options, source, job); code != 0)
    return code;
  job.plan.search.stopped = "given by hand";
  return 0;
}

} // namespace dg::compiler
