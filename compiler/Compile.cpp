// SPDX-License-Identifier: Apache-2.0
#include "compiler/Compile.h"

#include "compiler/JobPlan.h"
#include "compiler/LoadModel.h"
#include "compiler/Planning.h"
#include "compiler/Report.h"
#include "compiler/Weights.h"
#include "ir/build/Families.h"
#include "ir/ops/structure/GraphOps.h"
#include "partitioner/predict/Simulator.h"
#include "partitioner/schedule/CollectiveChoice.h"
#include "passes/partition/Mesh.h"
#include "passes/shape/InferenceGraph.h"
#include "passes/train/OptimizerSpec.h"
#include "runtime/package/Package.h"
#include "runtime/support/FileWriting.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

#include <deque>

namespace dg::compiler {

namespace {

/// Passes text on with lines cut short: a diagnostic quotes the line it points to, and a file may be one line of
/// megabytes.
class ClippedStream : public llvm::raw_ostream {
public:
  explicit ClippedStream(llvm::raw_ostream &to) : llvm::raw_ostream(/*unbuffered=*/true), to(to) {}

private:
  static constexpr size_t maxColumns = 500;
  void write_impl(const char *text, size_t size) override {
    for (char c : llvm::StringRef(text, size)) {
      column = c == '\n' ? 0 : column + 1;
      if (column <= maxColumns)
        to << c;
      else if (column == maxColumns + 1)
        to << "…";
    }
    passed += size;
  }
  uint64_t current_pos() const override { return passed; }
  llvm::raw_ostream &to;
  size_t column = 0;
  uint64_t passed = 0;
};

/// Diagnostics of a model whose file has no lines: `model.onnx: error: node 'conv1' (Conv, ai.onnx version 11): …`.
class NodeDiagnostics : public mlir::ScopedDiagnosticHandler {
public:
  NodeDiagnostics(mlir::MLIRContext &context, std::string file, llvm::raw_ostream &to)
      : ScopedDiagnosticHandler(&context) {
    setHandler([file = std::move(file), &to](mlir::Diagnostic &message) {
      to << file << ": " << (message.getSeverity() == mlir::DiagnosticSeverity::Error ? "error: " : "note: ");
      if (auto name = message.getLocation()->findInstanceOf<mlir::NameLoc>())
        to << name.getName().getValue() << ": ";
      to << message << "\n";
    });
  }
};

/// Asked before the long work, not after it.
Status checkOutput(const std::string &path) {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (llvm::sys::fs::is_directory(path))
    return Status::error(ErrorKind::usage, "-o {}: is a folder, expected the name of a file, as {}/job.dgx", path,
                         path);
  if (llvm::sys::fs::exists(path) && !llvm::sys::fs::is_regular_file(path))
    return Status::error(ErrorKind::usage, "-o {}: is a device, pipe or socket, expected the name of a file", path);
  if (!llvm::sys::fs::is_directory(folder))
    return Status::error(ErrorKind::usage, "-o {}: there is no folder {}: make it, or choose another", path,
                         folder.str());
  if (auto error = llvm::sys::fs::access(folder, llvm::sys::fs::AccessMode::Write))
    return Status::error(ErrorKind::usage, "-o {}: nothing can be written to {} ({}): choose another folder", path,
                         folder.str(), error.message());
  return Status::ok();
}

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
      return module.emitError("has a graph @loss, which --loss would replace: leave the flag out"), mlir::failure();
    if (!loss && forward && !lossName.empty()) {
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
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Weights weights;
  std::shared_ptr<const void> storage; ///< of the weights
};

/// Reads a text, bytecode, an ONNX file or makes a family. Returns 0 or an exit code, after a message on stderr.
int readSource(const Request &request, const BatchPlan &batch, mlir::MLIRContext &context, Source &source) {
  if (isOnnx(request.model)) {
    ir::OnnxOptions onnx;
    onnx.bindings = request.bindings;
    onnx.batch = batch.rows;
    onnx.isTraining =
        request.purpose == Purpose::train || (request.purpose == Purpose::automatic && !request.loss.empty());
    if (onnx.batch > 0)
      onnx.bindings["batch"] = onnx.batch;
    mlir::FailureOr<ir::OnnxModel> imported = loadOnnx(request.model, context, onnx, request.constants);
    if (failed(imported))
      return exitBadInput;
    source.module = std::move(imported->module);
    source.weights.add(imported->weights);
    source.storage = imported->storage;
    return 0;
  }
  if (!request.bindings.empty()) {
    const auto &[name, size] = *request.bindings.begin();
    return report(Status::error(ErrorKind::usage, "--bind {}={}: {} has no dimension of that name, expected batch=SIZE",
                                name, size, request.model));
  }
  if (!request.constants.empty())
    return report(Status::error(ErrorKind::usage, "--const {}: {} is no ONNX model: write a dg.constant or dg.literal",
                                request.constants.begin()->first, request.model));
  const bool isFamily = ir::isFamilySpec(request.model);
  source.module = isFamily ? loadFamily(request.model, context) : loadModel(request.model, context);
  if (!source.module)
    return isFamily ? exitUsage : exitBadInput;
  return 0;
}

/// Finds what to build and with which optimizer, and gives the parameters what --weights has for them. Returns 0 or an
/// exit code, after a message on stderr.
int chooseStep(Source &source, const Request &request, StepSource &step) {
  mlir::ModuleOp module = *source.module;
  mlir::FailureOr<bool> isTraining = chooseProgram(module, request.purpose, request.loss);
  if (failed(isTraining))
    return exitBadInput;
  step.isTraining = *isTraining;
  if (Status status = request.weights.empty() ? Status::ok() : source.weights.open(request.weights); !status)
    return report(status);
  for (auto graph : module.getOps<ir::GraphOp>())
    if (failed(source.weights.bind(graph)))
      return exitBadInput;
  // "examples/lenet.mlir" and the family "lenet" are the same model to a checkpoint.
  step.model.name = llvm::sys::path::stem(request.model).split(':').first.str();
  step.model.source = llvm::sys::path::filename(request.model).str();
  step.optimizer = request.optimizer;
  auto own = module->getAttrOfType<mlir::StringAttr>("dg.optimizer");
  const bool isOwn = own && step.optimizer.empty();
  if (isOwn)
    step.optimizer = own.str();
  if (!step.isTraining || step.optimizer.empty())
    return 0;
  Result<passes::OptimizerSpec> spec = passes::parseOptimizer(step.optimizer);
  if (!spec && isOwn)
    return module.emitError() << "names dg.optimizer, " << spec.status().message(), exitBadInput;
  if (!spec)
    return report(spec.status());
  step.model.optimizer = step.optimizer;
  step.model.learningRate = spec->lr;
  return 0;
}

/// The options with the batch of a training whose inputs all have the same fixed number of rows, which is that of one
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

/// Writes text to stdout or, where a path is given, to a file.
Status writeText(const std::string &path, llvm::StringRef text) {
  if (!path.empty())
    return writeFile(path, text);
  llvm::raw_fd_ostream &to = llvm::outs();
  to << text;
  to.flush();
  std::error_code error = to.error();
  to.clear_error(); // else the stream ends the process
  if (error)
    return Status::error(ErrorKind::runFailed, "standard output cannot be written: {}", error.message());
  return Status::ok();
}

/// What --emit asks for.
Status emit(const Request &request, JobPlan &job) {
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
  return writeText(request.output, text);
}

/// What --explain asks for, if it was given.
std::string explain(const Request &request, const PlannedStep &planned) {
  return request.explain == Form::json   ? explanationJson(planned)
         : request.explain == Form::text ? explanationText(planned)
                                         : "";
}

/// Objects, plan, initial values and what dgviz shows of them, as JOB.dgx.
Status writeJob(const Request &request, const std::string &modelBytes, const Weights &weights,
                llvm::ArrayRef<codegen::Target> targets, JobPlan &job) {
  std::vector<package::PackageEntry> entries;
  std::deque<std::string> texts; // what the entries borrow
  auto add = [&](std::string name, std::string text) {
    entries.push_back(package::PackageEntry::ofText(std::move(name), texts.emplace_back(std::move(text))));
  };
  add("plan.json", plan::toJson(job.plan));
  add("model.mlirbc", modelBytes);
  add("cluster.json", partitioner::toJson(job.cluster));
  if (job.planned)
    add("explain.json", explanationJson(*job.planned));
  if (request.savePhases)
    add("phases.json", job.phases.toJson());
  for (auto &[program, target, kernels] : job.kernels->objects()) {
    mlir::FailureOr<std::string> object = kernels.emitObject();
    if (failed(object))
      return Status::error(ErrorKind::runFailed, "code of program {} cannot be generated", program);
    add(program + "." + target.cpu + ".so", std::move(*object));
  }
  for (const codegen::Target &target : targets)
    add("target." + target.cpu + ".txt", llvm::join(target.requiredFeatures(), ","));
  Result<std::string> initial = weights.pack(job.literals);
  if (!initial)
    return initial.status();
  if (!initial->empty())
    add("init.safetensors", std::move(*initial));
  return package::writePackage(request.output, entries);
}

} // namespace

int compile(const Request &request) {
  Result<plan::Mesh> mesh = passes::parseMesh(request.mesh);
  if (!mesh)
    return report(mesh.status());
  Result<BatchPlan> batch = planBatch(request, *mesh);
  if (!batch)
    return report(batch.status());
  Result<std::vector<codegen::Target>> targets = readTargets(request);
  if (!targets)
    return report(targets.status());
  if (Status status = request.output.empty() ? Status::ok() : checkOutput(request.output); !status)
    return report(status);

  mlir::DialectRegistry registry;
  registry.insert<ir::DGDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // a message names the line; the whole graph would bury it
  ClippedStream messages(llvm::errs());
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context, messages);
  std::optional<NodeDiagnostics> nodeDiagnostics;
  if (isOnnx(request.model))
    nodeDiagnostics.emplace(context, request.model, messages);
  Source source;
  if (int code = readSource(request, *batch, context, source); code != 0)
    return code;
  std::string modelBytes;
  llvm::raw_string_ostream modelStream(modelBytes);
  if (failed(mlir::writeBytecodeToFile(*source.module, modelStream)))
    return report(Status::error(ErrorKind::runFailed, "{} cannot be written as bytecode", request.model));
  StepSource step;
  step.targets = *targets;
  if (int code = chooseStep(source, request, step); code != 0)
    return code;

  if (request.emit == Emit::nothing) {
    Result<PlannedStep> planned = planStep(*source.module, request, step.optimizer, step.isTraining);
    if (!planned)
      return report(planned.status());
    std::string text = request.simulate == Form::json   ? simulationJson(*planned)
                       : request.simulate == Form::text ? simulationText(*planned)
                                                        : "";
    Status status = writeText("", text + explain(request, *planned));
    return status ? 0 : report(status);
  }
  Messages notes;
  Result<JobPlan> job = planJob(*source.module, withFixedBatch(*source.module, step, request), step, notes);
  for (const Message &note : notes)
    llvm::errs() << "dgc: note: " << note.text << "\n";
  if (!job)
    return report(job.status());
  if (Status status = request.emit == Emit::dg ? Status::ok() : completePlan(*job); !status)
    return report(status);
  Status status = request.emit == Emit::package ? writeJob(request, modelBytes, source.weights, *targets, *job)
                                                : emit(request, *job);
  if (status && request.explain != Form::none)
    status = writeText("", explain(request, *job->planned));
  return status ? 0 : report(status);
}

} // namespace dg::compiler
