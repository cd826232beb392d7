// SPDX-License-Identifier: Apache-2.0
#include "compiler/Compile.h"

#include "compiler/Diagnostics.h"
#include "compiler/JobPlan.h"
#include "compiler/LoadModel.h"
#include "compiler/ParameterTable.h"
#include "compiler/PlanReport.h"
#include "compiler/Weights.h"
#include "ir/build/Families.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/LossTerms.h"
#include "partitioner/predict/Simulator.h"
#include "partitioner/schedule/CollectiveChoice.h"
#include "passes/UsageError.h"
#include "passes/partition/Mesh.h"
#include "passes/shape/InferenceGraph.h"
#include "passes/train/NamePattern.h"
#include "passes/train/OptimizerSpec.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <chrono>

namespace dg::compiler {

namespace {

/// The name of code that is printed for one processor, else null.
const char *nameOfCode(Emit emit) {
  return emit == Emit::linalg ? "linalg" : emit == Emit::llvm ? "llvm" : emit == Emit::assembly ? "asm" : nullptr;
}

/// The processors of --target, each once.
Result<std::vector<codegen::Target>> readTargets(const Request &request) {
  std::vector<codegen::Target> targets;
  for (const std::string &name : request.targets.empty() ? std::vector<std::string>{"native"} : request.targets) {
    std::string error;
    mlir::FailureOr<codegen::Target> target = codegen::Target::parse(name, error);
    if (failed(target))
      return Status::error(ErrorKind::usage, "{}", error);
    for (const codegen::Target &other : targets)
      if (other.cpu == target->cpu)
        return Status::error(ErrorKind::usage,
                             "--target {}: {} and {} are the same processor here, {}: give one of them",
                             llvm::join(request.targets, ","), other.name, name, target->cpu);
    targets.push_back(std::move(*target));
  }
  if (const char *code = nameOfCode(request.emit); code && targets.size() > 1)
    return Status::error(ErrorKind::usage, "--emit {} prints the code of one processor: give one --target, found {}",
                         code, llvm::join(request.targets, ","));
  return targets;
}

/// A model may hold graphs for other purposes.
void keepOnly(mlir::ModuleOp module, ir::GraphOp wanted) {
  for (auto graph : llvm::make_early_inc_range(module.getOps<ir::GraphOp>()))
    if (graph != wanted)
      graph.erase();
}

/// Finds what to build and gives its graph the name that the pipeline expects. `lossName` makes @forward the loss.
mlir::FailureOr<bool> chooseProgram(mlir::ModuleOp module, Purpose purpose, const std::string &lossName) {
  auto loss = module.lookupSymbol<ir::GraphOp>("loss");
  auto forward = module.lookupSymbol<ir::GraphOp>("forward");
  bool isTraining = purpose == Purpose::automatic ? bool(loss) || !lossName.empty() : purpose == Purpose::train;
  if (isTraining) {
    if (loss && !lossName.empty())
      return passes::emitUsageError(module) << "has a graph @loss, which --loss would replace: leave the flag out";
    // Of an ONNX file: its first result is compared by --loss, or is the loss itself.
    if (!loss && forward) {
      forward.setSymName("loss");
      loss = forward;
    }
    if (!loss)
      return module.emitError("has no graph @loss: training needs one that returns the loss, or --loss NAME"),
             mlir::failure();
    keepOnly(module, loss);
    return true;
  }
  if (!forward && loss) {
    mlir::FailureOr<ir::GraphOp> derived = passes::deriveForward(loss);
    if (failed(derived))
      return mlir::failure();
    forward = *derived;
  }
  if (!forward) {
    llvm::SmallVector<std::string> found;
    for (auto graph : module.getOps<ir::GraphOp>())
      found.push_back("@" + graph.getSymName().str());
    return module.emitError() << "has " << (found.empty() ? "no graph" : "only " + llvm::join(found, ", "))
                              << (purpose == Purpose::automatic
                                      ? ", expected dg.graph @loss to train or dg.graph @forward to infer"
                                      : ", expected dg.graph @forward, which returns the results of --infer");
  }
  forward.setSymName("infer");
  keepOnly(module, forward);
  return false;
}

/// The model as it was read.
struct Source {
  std::string bytes; ///< as bytecode
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Weights weights;
  std::vector<ir::OnnxWeight> constants; ///< of an ONNX file
  std::shared_ptr<const void> storage;   ///< of the weights
};

/// Reads a text, bytecode, an ONNX file or makes a family.
Result<Source> readModel(const Request &request, const BatchPlan &batch, mlir::MLIRContext &context,
                         Messages &messages) {
  Source source;
  if (isOnnx(request.model)) {
    ir::OnnxOptions onnx;
    onnx.bindings = request.bindings;
    onnx.batch = batch.rows;
    onnx.isTraining =
        request.purpose == Purpose::train || (request.purpose == Purpose::automatic && !request.loss.empty());
    onnx.isFrozen = [&](llvm::StringRef name) {
      return llvm::any_of(request.frozen, [&](const auto &pattern) { return passes::matchesPattern(name, pattern); });
    };
    onnx.keepsTrainingMode = request.keepsTrainingMode;
    if (onnx.isTraining && onnx.keepsTrainingMode)
      return Status::error(ErrorKind::usage,
                           "--training-mode is for --infer: a training always computes batch norm and "
                           "dropout in training mode: leave one of them out");
    if (onnx.batch > 0)
      onnx.bindings["batch"] = onnx.batch;
    Result<ir::OnnxModel> imported = loadOnnx(request.model, context, onnx, request.constants, messages);
    if (!imported)
      return imported.status();
    source.module = std::move(imported->module);
    source.weights.add(imported->weights);
    source.constants = std::move(imported->constants);
    source.storage = imported->storage;
    return std::move(source);
  }
  if (!request.bindings.empty()) {
    const auto &[name, size] = *request.bindings.begin();
    return Status::error(ErrorKind::usage, "--bind {}={}: {} has no dimension of that name, expected batch=SIZE", name,
                         size, request.model);
  }
  if (request.keepsTrainingMode)
    return Status::error(ErrorKind::usage, "--training-mode: {} is no ONNX model: write the graph that you mean",
                         request.model);
  if (!request.constants.empty())
    return Status::error(ErrorKind::usage, "--const {}: {} is no ONNX model: write a dg.constant or dg.literal",
                         request.constants.begin()->first, request.model);
  Result<mlir::OwningOpRef<mlir::ModuleOp>> module = ir::isFamilySpec(request.model)
                                                         ? loadFamily(request.model, context, messages)
                                                         : loadModel(request.model, context, messages);
  if (!module)
    return module.status();
  source.module = std::move(*module);
  return std::move(source);
}

Result<Source> readSource(const Request &request, const BatchPlan &batch, mlir::MLIRContext &context,
                          Messages &messages) {
  Result<Source> source = readModel(request, batch, context, messages);
  if (!source)
    return source;
  llvm::raw_string_ostream stream(source->bytes);
  if (failed(mlir::writeBytecodeToFile(*source->module, stream)))
    return Status::error(ErrorKind::runFailed, "{} cannot be written as bytecode", request.model);
  return source;
}

/// Opens what --weights names.
Status openWeights(Source &source, const Request &request, bool isTraining, Messages &messages) {
  if (!isOnnx(request.weights))
    return source.weights.open(request.weights, request.weightRenames, request.weightSkips);
  ir::OnnxOptions onnx;
  onnx.bindings = request.bindings;
  onnx.bindings["batch"] = onnx.batch = std::max<int64_t>(1, request.batch); // weights have the same shapes with any
  onnx.isTraining = isTraining;
  Result<ir::OnnxModel> imported =
      loadOnnx(request.weights, *source.module->getContext(), onnx, request.constants, messages);
  if (!imported)
    return imported.status();
  return source.weights.openOnnx(request.weights, imported->weights, request.weightRenames, request.weightSkips);
}

/// Finds what to build and with which optimizer, and gives the parameters what --weights has for them.
Result<StepSource> chooseStep(Source &source, const Request &request, Messages &messages) {
  StepSource step;
  mlir::ModuleOp module = *source.module;
  mlir::FailureOr<bool> isTraining = chooseProgram(module, request.purpose, request.loss);
  if (failed(isTraining))
    return diagnosed();
  step.isTraining = *isTraining;
  for (auto [flag, isGiven] : {std::pair("--freeze", !request.frozen.empty()),
                               {"--freeze-statistics", !request.frozenStatistics.empty()},
                               {"--optimizer", !request.optimizer.empty()},
                               {"--loss", !request.loss.empty()},
                               {"--metrics", request.metrics},
                               {"--accumulate", request.accumulate > 1},
                               {"--schedule", !request.schedule.empty()},
                               {"--zero", request.zero.value_or(0) > 0},
                               {"--reduce-precision f32", request.reducesWide},
                               {"--recompute full", request.recompute == partitioner::Recompute::full}})
    if (isGiven && !step.isTraining)
      return Status::error(ErrorKind::usage,
                           "{}: nothing is trained by this job; leave it out, or compile with --train", flag);
  if (request.weights.empty() && (!request.weightRenames.empty() || !request.weightSkips.empty()))
    return Status::error(ErrorKind::usage, "{}: there are no weights; give --weights FILE.safetensors",
                         request.weightRenames.empty() ? "--weights-skip" : "--weights-rename");
  if (!request.weights.empty())
    DG_RETURN_IF_ERROR(openWeights(source, request, step.isTraining, messages));
  for (auto graph : module.getOps<ir::GraphOp>())
    if (failed(source.weights.bind(graph, messages)))
      return diagnosed();
  if (step.isTraining)
    module.walk([](ir::LossOp loss) {
      if (std::string doubt = ir::doubtOf(loss); !doubt.empty())
        loss->emitWarning(doubt);
    });
  // "examples/lenet.mlir" and the family "lenet" are the same model to a checkpoint.
  step.model.name = llvm::sys::path::stem(request.model).split(':').first.str();
  step.model.source = llvm::sys::path::filename(request.model).str();
  step.optimizer = request.optimizer;
  auto own = module->getAttrOfType<mlir::StringAttr>("dg.optimizer");
  const bool isOwn = own && step.optimizer.empty();
  if (isOwn)
    step.optimizer = own.str();
  if (!step.isTraining || step.optimizer.empty())
    return step;
  Result<passes::OptimizerSpec> spec = passes::parseOptimizer(step.optimizer);
  if (!spec && isOwn)
    return module.emitError() << "names dg.optimizer, " << spec.status().message(), diagnosed();
  if (!spec)
    return spec.status();
  step.model.optimizer = step.optimizer;
  step.model.learningRate = spec->lr;
  return step;
}

/// The request with the batch of a training whose inputs all have the same fixed number of rows, which is that of one
/// micro-batch. A search needs --batch: it chooses the rows.
Request withFixedBatch(mlir::ModuleOp module, const StepSource &step, const Request &given) {
  Request request = given;
  if (!step.isTraining || request.batch > 0 || wantsPlanning(request))
    return request;
  int64_t rows = 0;
  for (auto graph : module.getOps<ir::GraphOp>())
    for (auto each : graph.getInputTypes().getAsRange<mlir::TypeAttr>()) {
      auto type = llvm::cast<mlir::RankedTensorType>(each.getValue());
      if (type.getRank() == 0 || type.isDynamicDim(0) || (rows > 0 && rows != type.getDimSize(0)))
        return request;
      rows = type.getDimSize(0);
    }
  request.microbatches = std::max<int64_t>(1, request.microbatches);
  request.batch = rows * request.microbatches;
  return request;
}

/// The request with the precision of a simulation: a device with a 16-bit rate trains with it, while a job is compiled
/// for f32 unless the user says otherwise.
Result<Request> withSimulatedPrecision(Request request) {
  if (request.simulate == Form::none || request.precision)
    return request;
  Result<partitioner::Cluster> cluster = chooseCluster(request, 1);
  if (!cluster)
    return cluster.status();
  if (cluster->device.flopsPerSecond.count(plan::DType::bf16))
    request.precision = plan::DType::bf16;
  return request;
}

/// Gives the plan its bracketings and its prediction, and proves it.
Status completePlan(JobPlan &job) {
  partitioner::CostModel costs(job.cluster);
  partitioner::chooseBracketings(job.plan, costs);
  Result<plan::Predicted> predicted = partitioner::simulate(job.plan, costs);
  if (!predicted)
    return predicted.status();
  job.plan.predicted = *predicted;
  if (Status status = plan::verify(job.plan); !status)
    return Status::error(ErrorKind::runFailed, "the plan is not sound, which is a fault of dgc: {}", status.message());
  return Status::ok();
}

/// What --emit asks for.
Result<std::string> emit(const Request &request, JobPlan &job) {
  std::string text;
  llvm::raw_string_ostream to(text);
  if (request.emit == Emit::dg) {
    job.module->print(to);
    to << "\n";
  } else if (request.emit == Emit::plan) {
    to << plan::toJson(job.plan) << "\n";
  } else {
    for (auto &[program, target, kernels] : job.kernels->objects())
      if (failed(request.emit == Emit::linalg ? kernels.emitLinalg(to)
                 : request.emit == Emit::llvm ? kernels.emitLlvmIr(to)
                                              : kernels.emitAsm(to)))
        return Status::error(ErrorKind::runFailed, "code of program {} cannot be printed", program);
  }
  return text;
}

/// Notes what each part of a compilation took.
class PhaseWatch {
public:
  explicit PhaseWatch(std::vector<Phase> &phases) : phases(phases) {}
  /// What was done since the last call.
  void note(std::string name) {
    auto now = std::chrono::steady_clock::now();
    phases.push_back({std::move(name), std::chrono::duration<double>(now - last).count()});
    last = now;
  }

private:
  std::vector<Phase> &phases;
  std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
};

/// The shared object of each program and target.
Result<std::vector<PackageFile>> generateCode(const Request &request, JobPlan &job, PhaseWatch &watch,
                                              Messages &messages) {
  std::vector<PackageFile> files;
  codegen::CodeTimes times;
  std::optional<codegen::ObjectCache> cache;
  if (!request.cache.empty()) {
    Result<codegen::ObjectCache> opened = codegen::ObjectCache::open(request.cache);
    if (opened)
      cache = std::move(*opened);
    else
      messages.add(Message::Kind::note, "nothing is cached: " + opened.status().message());
  }
  for (auto &[program, target, kernels] : job.kernels->objects()) {
    auto progress = [&](size_t done, size_t all) {
      messages.add(Message::Kind::progress, fmt::format("{} of {} kernels of {}", done, all, program));
    };
    mlir::FailureOr<std::string> object = kernels.emitObject({cache ? &*cache : nullptr, progress, &times});
    if (failed(object))
      return Status::error(ErrorKind::runFailed, "code of program {} cannot be generated", program);
    files.push_back({program + "." + target.cpu + ".so", std::move(*object)});
  }
  if (cache && times.cached < times.kernels)
    cache->prune();
  watch.note(fmt::format("machine code of {} kernels, {} from the cache (seconds of processors: {:.2f} lowering, "
                         "{:.2f} optimising, {:.2f} generating)",
                         times.kernels, times.cached, times.lowering, times.optimizing, times.generating));
  return files;
}

/// Objects, plan, initial values and what dgviz shows of them.
Result<std::vector<PackageFile>> pack(const Request &request, std::string modelBytes, std::string parameters,
                                      const Weights &weights, llvm::ArrayRef<codegen::Target> targets, JobPlan &job,
                                      std::vector<PackageFile> objects) {
  std::vector<PackageFile> files = {{"plan.json", plan::toJson(job.plan)},
                                    {"model.mlirbc", std::move(modelBytes)},
                                    {"parameters.json", std::move(parameters)},
                                    {"cluster.json", partitioner::toJson(job.cluster)}};
  if (job.planned)
    files.push_back({"explain.json", explanationOf(*job.planned, Form::json)});
  if (request.savePhases)
    files.push_back({"phases.json", job.phases.toJson()});
  llvm::move(objects, std::back_inserter(files));
  for (const codegen::Target &target : targets)
    files.push_back({"target." + target.cpu + ".txt", llvm::join(target.requiredFeatures(), ",")});
  Result<std::string> initial = weights.pack(job.literals);
  if (!initial)
    return initial.status();
  if (!initial->empty())
    files.push_back({"init.safetensors", std::move(*initial)});
  return files;
}

/// Says which flags change nothing in the plan that was made.
void noteIdleFlags(const Request &request, const plan::Plan &plan, Messages &messages) {
  if (!request.schedule.empty() && plan.mesh.sizeOf(plan::Axis::pipe) == 1)
    messages.add(Message::Kind::note,
                 fmt::format("--schedule {} changes nothing: the plan has one stage", request.schedule));
  if (request.zero.value_or(0) > 0 && plan.mesh.sizeOf(plan::Axis::data) == 1)
    messages.add(Message::Kind::note,
                 fmt::format("--zero {} changes nothing: there is one data rank to cut over", *request.zero));
  if (request.savePhases && request.emit != Emit::package)
    messages.add(Message::Kind::note, "--save-phases changes nothing: no job is written");
  if (plan.model.learningRate == 0 && !plan.model.optimizer.empty())
    messages.add(Message::Kind::note, fmt::format("the learning rate of '{}' is 0: nothing is learnt unless dgrun --lr "
                                                  "gives another",
                                                  plan.model.optimizer));
  if (request.reducesWide && plan.mesh.sizeOf(plan::Axis::data) == 1)
    messages.add(Message::Kind::note, "--reduce-precision f32 changes nothing: there is one data rank");
}

Result<Output> run(const Request &given, Messages &messages) {
  Output output;
  PhaseWatch watch(output.phases);
  Result<Request> withPrecision = withSimulatedPrecision(given);
  if (!withPrecision)
    return withPrecision.status();
  const Request &request = *withPrecision;
  Result<plan::Mesh> mesh = passes::parseMesh(request.mesh);
  if (!mesh)
    return mesh.status();
  Result<BatchPlan> batch = planBatch(request, *mesh);
  if (!batch)
    return batch.status();
  if (request.planSeconds > 0 && !wantsPlanning(request))
    return Status::error(ErrorKind::usage, "--plan-seconds: no plan is searched; give --ranks, --cluster or --explain");
  Result<std::vector<codegen::Target>> targets = readTargets(request);
  if (!targets)
    return targets.status();

  mlir::DialectRegistry registry;
  registry.insert<ir::DGDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // a message names the line; the whole graph would bury it
  const bool hasLines = !isOnnx(request.model) && !ir::isFamilySpec(request.model);
  Diagnostics diagnostics(context, hasLines ? "" : request.model, messages);
  Result<Source> source = readSource(request, *batch, context, messages);
  if (!source)
    return source.status();
  mlir::ModuleOp module = *source->module;
  if (request.emit == Emit::source) {
    llvm::raw_string_ostream(output.text) << module << "\n";
    return output;
  }
  Result<StepSource> step = chooseStep(*source, request, messages);
  if (!step)
    return step.status();
  step->targets = *targets;
  std::optional<Source> readAgain;
  if (isOnnx(request.model))
    step->readAgain = [&](int64_t rows) -> Result<mlir::ModuleOp> {
      Messages heard(nullptr); // the first time
      Result<Source> again = readSource(request, {batch->samples, batch->microbatches, rows}, context, heard);
      if (!again)
        return again.status();
      readAgain = std::move(*again);
      Result<StepSource> same = chooseStep(*readAgain, request, heard);
      if (!same)
        return same.status();
      return *readAgain->module;
    };
  std::vector<ParameterRow> parameters;
  for (auto graph : module.getOps<ir::GraphOp>())
    parameters = listParameters(graph, request, step->isTraining, source->constants);
  if (isOnnx(request.model) && !request.parametersAsJson)
    messages.add(Message::Kind::note, parametersAsText(parameters));
  watch.note("reading the model");

  Result<JobPlan> job = planJob(module, withFixedBatch(module, *step, request), *step, messages);
  if (!job)
    return job.status();
  // What the predicted times rest on where the user named no other machines; --explain prints it itself.
  if (std::string host = describeHost(request, job->plan.mesh.numRanks());
      !host.empty() && request.emit != Emit::dg && request.explain != Form::text)
    messages.add(Message::Kind::note, host);
  if (job->planned)
    job->planned->machines = describeHost(request, job->plan.mesh.numRanks());
  noteIdleFlags(request, job->plan, messages);
  watch.note("passes, plan and kernels as loops");
  const bool isExplainedAlone = request.emit == Emit::nothing && request.simulate == Form::none;
  if (request.emit != Emit::dg && !isExplainedAlone)
    DG_RETURN_IF_ERROR(completePlan(*job));
  watch.note("predicting and proving the plan");
  if (request.emit == Emit::nothing) {
    output.text = simulationOf(*job, request.simulate) + explanationOf(*job->planned, request.explain);
    return output;
  }
  if (request.emit != Emit::package) {
    Result<std::string> text = emit(request, *job);
    if (!text)
      return text.status();
    output.text = std::move(*text);
    watch.note("printing");
    return output;
  }
  Result<std::vector<PackageFile>> objects = generateCode(request, *job, watch, messages);
  if (!objects)
    return objects.status();
  Source &packed = readAgain ? *readAgain : *source;
  Result<std::vector<PackageFile>> files = pack(request, std::move(packed.bytes), parametersAsJson(parameters),
                                                packed.weights, *targets, *job, std::move(*objects));
  if (!files)
    return files.status();
  watch.note("packing");
  output.package = std::move(*files);
  if (request.parametersAsJson)
    output.text = parametersAsJson(parameters) + "\n";
  if (job->planned)
    output.text += explanationOf(*job->planned, request.explain);
  return output;
}

} // namespace

Result<Output> compile(const Request &request, MessageSink sink) {
  Messages messages(std::move(sink));
  Result<Output> output = run(request, messages);
  if (output)
    output->messages = messages.all();
  else if (output.status().message().empty())
    return Status::error(messages.isUsage() ? ErrorKind::usage : output.status().kind(), "{}", messages.errors());
  else
    messages.add(Message::Kind::error, output.status().message());
  return output;
}

} // namespace dg::compiler
