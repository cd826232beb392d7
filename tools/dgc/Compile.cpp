// SPDX-License-Identifier: Apache-2.0
#include "tools/dgc/Compile.h"

#include "ir/Families.h"
#include "ir/GraphOps.h"
#include "partitioner/CollectiveChoice.h"
#include "partitioner/Simulator.h"
#include "passes/InferenceGraph.h"
#include "passes/Mesh.h"
#include "passes/OptimizerSpec.h"
#include "runtime/package/Package.h"
#include "tools/dgc/JobPlan.h"
#include "tools/dgc/LoadModel.h"
#include "tools/dgc/Planning.h"
#include "tools/dgc/Weights.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

namespace dg::tools {

namespace {

constexpr int exitUsage = 2, exitBadInput = 65;

int report(const Status &status) {
  llvm::errs() << "dgc: error: " << status.message() << "\n";
  return status.exitCode();
}

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

/// The processors of --target, each once.
Result<std::vector<codegen::Target>> readTargets(const CompileOptions &options) {
  std::vector<codegen::Target> targets;
  for (const std::string &name : options.targets.empty() ? std::vector<std::string>{"native"} : options.targets) {
    std::string error;
    mlir::FailureOr<codegen::Target> target = codegen::Target::parse(name, error);
    if (failed(target))
      return Status::error(ErrorKind::usage, "{}", error);
    for (const codegen::Target &other : targets)
      if (other.cpu == target->cpu)
        return Status::error(ErrorKind::usage,
                             "--target {}: {} and {} are the same processor here, {}: give one of them",
                             llvm::join(options.targets, ","), other.name, name, target->cpu);
    targets.push_back(std::move(*target));
  }
  bool printsCode = options.emit == "linalg" || options.emit == "llvm" || options.emit == "asm";
  if (printsCode && targets.size() > 1)
    return Status::error(ErrorKind::usage, "--emit {} prints the code of one processor: give one --target, found {}",
                         options.emit, llvm::join(options.targets, ","));
  return targets;
}

/// A model may hold graphs for other purposes.
void keepOnly(mlir::ModuleOp module, ir::GraphOp wanted) {
  for (auto graph : llvm::make_early_inc_range(module.getOps<ir::GraphOp>()))
    if (graph != wanted)
      graph.erase();
}

/// Finds what to build and gives its graph the name that the pipeline expects. `lossName` makes @forward the loss.
mlir::FailureOr<bool> chooseProgram(mlir::ModuleOp module, CompileOptions::Purpose purpose,
                                    const std::string &lossName) {
  auto loss = module.lookupSymbol<ir::GraphOp>("loss");
  auto forward = module.lookupSymbol<ir::GraphOp>("forward");
  bool isTraining = purpose == CompileOptions::Purpose::automatic ? bool(loss) || !lossName.empty()
                                                                  : purpose == CompileOptions::Purpose::train;
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
                              << (purpose == CompileOptions::Purpose::automatic
                                      ? ", expected dg.graph @loss to train or dg.graph @forward to infer"
                                      : ", expected dg.graph @forward, which returns the results of --infer");
  }
  forward.setSymName("infer");
  keepOnly(module, forward);
  return false;
}

} // namespace

int compile(const CompileOptions &given) {
  CompileOptions options = given;
  Result<plan::Mesh> mesh = passes::parseMesh(options.mesh);
  if (!mesh)
    return report(mesh.status());
  Result<BatchPlan> batch = planBatch(options, *mesh);
  if (!batch)
    return report(batch.status());
  Result<std::vector<codegen::Target>> targets = readTargets(options);
  if (!targets)
    return report(targets.status());
  const llvm::StringRef precision = options.precision;
  if (!precision.empty() && precision != "auto" && precision != "f32" && precision != "bf16" && precision != "f16")
    return report(
        Status::error(ErrorKind::usage, "--precision {}: expected auto, f32, bf16 or f16", options.precision));
  const bool isJob = options.emit.empty() && options.simulate.empty() && options.explain.empty();
  if (Status status = isJob ? checkOutput(options.output) : Status::ok(); !status)
    return report(status);

  mlir::DialectRegistry registry;
  registry.insert<ir::DGDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // a message names the line; the whole graph would bury it
  ClippedStream messages(llvm::errs());
  mlir::OwningOpRef<mlir::ModuleOp> module;
  if (ir::isFamilySpec(options.model)) {
    module = loadFamily(options.model, context);
    if (!module)
      return exitUsage;
  }
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler diagnostics(sources, &context, messages);
  std::optional<NodeDiagnostics> nodeDiagnostics;
  Weights weights;
  std::shared_ptr<const void> storage; // of the weights
  if (isOnnx(options.model)) {
    nodeDiagnostics.emplace(context, options.model, messages);
    ir::OnnxOptions onnx;
    onnx.bindings = options.bindings;
    onnx.batch = batch->rows;
    onnx.isTraining = options.purpose == CompileOptions::Purpose::train ||
                      (options.purpose == CompileOptions::Purpose::automatic && !options.loss.empty());
    if (onnx.batch > 0)
      onnx.bindings["batch"] = onnx.batch;
    mlir::FailureOr<ir::OnnxModel> imported = loadOnnx(options.model, context, onnx, options.constants);
    if (failed(imported))
      return exitBadInput;
    module = std::move(imported->module);
    weights.add(imported->weights);
    storage = imported->storage;
  } else if (!options.bindings.empty()) {
    const auto &[name, size] = *options.bindings.begin();
    return report(Status::error(ErrorKind::usage, "--bind {}={}: {} has no dimension of that name, expected batch=SIZE",
                                name, size, options.model));
  } else if (!options.constants.empty()) {
    return report(Status::error(ErrorKind::usage, "--const {}: {} is no ONNX model: write a dg.constant or dg.literal",
                                options.constants.begin()->first, options.model));
  }
  if (!module)
    module = loadModel(options.model, context);
  if (!module)
    return exitBadInput;
  std::string modelBytes;
  llvm::raw_string_ostream modelStream(modelBytes);
  if (failed(mlir::writeBytecodeToFile(*module, modelStream)))
    return report(Status::error(ErrorKind::runFailed, "{} cannot be written as bytecode", options.model));

  mlir::FailureOr<bool> isTraining = chooseProgram(*module, options.purpose, options.loss);
  if (failed(isTraining))
    return exitBadInput;
  if (Status status = options.weights.empty() ? Status::ok() : weights.open(options.weights); !status)
    return report(status);
  for (auto graph : module->getOps<ir::GraphOp>())
    if (failed(weights.bind(graph)))
      return exitBadInput;
  std::string optimizer = options.optimizer;
  if (auto own = (*module)->getAttrOfType<mlir::StringAttr>("dg.optimizer"); own && optimizer.empty()) {
    optimizer = own.str();
    if (Result<passes::OptimizerSpec> spec = passes::parseOptimizer(optimizer); *isTraining && !spec) {
      module->emitError() << "names dg.optimizer, " << spec.status().message();
      return exitBadInput;
    }
  }
  plan::Model model;
  // "examples/lenet.mlir" and the family "lenet" are the same model to a checkpoint.
  model.name = llvm::sys::path::stem(options.model).split(':').first.str();
  model.source = llvm::sys::path::filename(options.model).str();
  if (*isTraining && !optimizer.empty()) {
    Result<passes::OptimizerSpec> spec = passes::parseOptimizer(optimizer);
    if (!spec)
      return report(spec.status());
    model.optimizer = optimizer;
    model.learningRate = spec->lr;
  }

  if (!options.simulate.empty() || !options.explain.empty()) {
    PlannedStep planned;
    if (int code = planStep(*module, options, optimizer, *isTraining, planned); code != 0)
      return code;
    if (!options.simulate.empty())
      llvm::outs() << (options.simulate == "json" ? simulationJson(planned) : simulationText(planned));
    if (!options.explain.empty())
      llvm::outs() << (options.explain == "json" ? explanationJson(planned) : explanationText(planned));
    return 0;
  }
  JobPlan job;
  if (int code = planJob(*module, options, {model, optimizer, *isTraining, *targets}, job); code != 0)
    return code;
  if (options.emit == "dg") {
    job.module->print(llvm::outs());
    llvm::outs() << "\n";
    return 0;
  }
  partitioner::CostModel costs(job.cluster);
  partitioner::chooseBracketings(job.plan, costs);
  Result<plan::Predicted> predicted = partitioner::simulate(job.plan, costs);
  if (!predicted)
    return report(predicted.status());
  job.plan.predicted = *predicted;
  if (Status status = plan::verify(job.plan); !status)
    return report(
        Status::error(ErrorKind::runFailed, "the plan is not sound, which is a fault of dgc: {}", status.message()));
  std::string planText = plan::toJson(job.plan);
  if (options.emit == "plan") {
    llvm::outs() << planText << "\n";
    return 0;
  }

  std::vector<std::string> objects;
  std::vector<package::PackageEntry> entries = {package::PackageEntry::ofText("plan.json", planText),
                                                package::PackageEntry::ofText("model.mlirbc", modelBytes)};
  std::string clusterText = partitioner::toJson(job.cluster);
  entries.push_back(package::PackageEntry::ofText("cluster.json", clusterText));
  if (!job.explanation.empty())
    entries.push_back(package::PackageEntry::ofText("explain.json", job.explanation));
  std::string phaseText = options.savePhases ? job.phases.toJson() : "";
  if (options.savePhases)
    entries.push_back(package::PackageEntry::ofText("phases.json", phaseText));
  objects.reserve(job.kernels->objects().size());
  for (auto &[program, target, kernels] : job.kernels->objects()) {
    if (!options.emit.empty()) {
      mlir::LogicalResult emitted = options.emit == "linalg" ? kernels.emitLinalg(llvm::outs())
                                    : options.emit == "llvm" ? kernels.emitLlvmIr(llvm::outs())
                                                             : kernels.emitAsm(llvm::outs());
      if (failed(emitted))
        return report(Status::error(ErrorKind::runFailed, "code of program {} cannot be printed", program));
      continue;
    }
    mlir::FailureOr<std::string> object = kernels.emitObject();
    if (failed(object))
      return report(Status::error(ErrorKind::runFailed, "code of program {} cannot be generated", program));
    objects.push_back(std::move(*object));
    entries.push_back(package::PackageEntry::ofText(program + "." + target.cpu + ".so", objects.back()));
  }
  if (!options.emit.empty())
    return 0;
  std::vector<std::string> needs;
  for (const codegen::Target &target : *targets)
    needs.push_back(llvm::join(target.requiredFeatures(), ","));
  for (auto [target, features] : llvm::zip_equal(*targets, needs))
    entries.push_back(package::PackageEntry::ofText("target." + target.cpu + ".txt", features));
  Result<std::string> initial = weights.pack(job.literals);
  if (!initial)
    return report(initial.status());
  if (!initial->empty())
    entries.push_back(package::PackageEntry::ofText("init.safetensors", *initial));
  if (Status status = package::writePackage(options.output, entries); !status)
    return report(status);
  return 0;
}

} // namespace dg::tools
