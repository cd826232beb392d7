// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/passes/SplitComparison.h"

#include "ir/ops/structure/GraphOps.h"
#include "ir/reference/ReferenceExecutor.h"
#include "passes/Passes.h"
#include "passes/Pipeline.h"
#include "passes/partition/Mesh.h"
#include "passes/train/OptimizerSpec.h"
#include "runtime/plan/MetricPorts.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>
#include <random>

using namespace mlir;
using namespace dg::ir;

namespace dg::passes::test {

namespace {

/// Keeps the errors of its lifetime instead of printing them.
class ErrorCapture {
public:
  explicit ErrorCapture(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) { text += diagnostic.str() + "\n"; }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

int64_t numEvaluated(const Training &training) {
  return training.numEvaluated > 0 ? training.numEvaluated : training.sampleCounts.front();
}

double learningRate(const Training &training) {
  Result<OptimizerSpec> spec = parseOptimizer(training.optimizer);
  return spec ? spec->lr : 0;
}

/// The pipeline up to the optimizer, for this many samples.
OwningOpRef<ModuleOp> differentiated(ModuleOp model, const Training &training, int64_t count) {
  OwningOpRef<ModuleOp> module = model.clone();
  PassManager manager(model.getContext());
  DeduceTypesOptions deduce;
  deduce.batch = count;
  manager.addPass(createDeduceTypes(deduce));
  manager.addPass(createNumberOps()); // streams of random numbers
  manager.addPass(createAddEvaluation());
  manager.addPass(createWeighSamples());
  manager.addPass(createTrainingForms());
  manager.addPass(createDecompose());
  manager.addPass(createDifferentiate());
  AddOptimizerOptions optimizer;
  optimizer.optimizer = training.optimizer;
  manager.addPass(createAddOptimizer(optimizer));
  if (failed(manager.run(*module)))
    return {};
  return module;
}

HostTensor numbersTo(int64_t count) {
  HostTensor numbers{{count}, std::vector<double>(size_t(count))};
  std::iota(numbers.data.begin(), numbers.data.end(), 0.0);
  return numbers;
}

HostTensor evenWeights(int64_t count) { return {{count}, std::vector<double>(size_t(count), 1.0 / double(count))}; }

} // namespace

std::vector<TensorMap> drawSamples(ModuleOp model, const Training &training) {
  std::mt19937_64 random(training.seed);
  auto graph = model.lookupSymbol<GraphOp>("loss");
  std::vector<int64_t> counts = training.sampleCounts;
  counts.push_back(numEvaluated(training));
  std::vector<TensorMap> samples;
  for (int64_t count : counts) {
    TensorMap &tensors = samples.emplace_back();
    for (auto [index, attribute] : llvm::enumerate(graph.getInputTypes().getAsValueRange<TypeAttr>())) {
      auto type = cast<RankedTensorType>(attribute);
      std::vector<int64_t> shape = type.getShape().vec();
      shape[0] = count;
      HostTensor tensor = ir::test::randomTensor(shape, random);
      if (type.getElementType().isInteger())
        for (double &element : tensor.data)
          element = double(random() % uint64_t(training.indexBound));
      tensors[graph.getInputName(index).str()] = std::move(tensor);
    }
  }
  return samples;
}

bool isClearRejection(const std::string &error) {
  return llvm::any_of(
      ArrayRef<StringRef>{"do not divide over", "divides evenly", "cannot be cut into pipe=", "nothing to train"},
      [&](StringRef part) { return StringRef(error).contains(part); });
}

Attempt trainWhole(ModuleOp model, const Training &training) {
  ErrorCapture errors(model.getContext());
  std::vector<TensorMap> samples = drawSamples(model, training);
  ParameterStore parameters(parameterSeed);
  std::map<int64_t, OwningOpRef<ModuleOp>> modules;
  auto moduleFor = [&](int64_t count) -> ModuleOp {
    auto [found, isNew] = modules.try_emplace(count);
    if (isNew)
      found->second = differentiated(model, training, count);
    return found->second.get();
  };
  auto run = [&](StringRef program, TensorMap &inputs, int64_t count, int64_t step) -> FailureOr<TensorMap> {
    inputs["sample_weight"] = evenWeights(count);
    inputs["sample_index"] = numbersTo(count);
    ModuleOp module = moduleFor(count);
    if (!module)
      return failure();
    return ReferenceExecutor().run(module.lookupSymbol<GraphOp>(program), inputs, parameters,
                                   {learningRate(training), step});
  };

  Outcome outcome;
  for (auto [index, count] : llvm::enumerate(training.sampleCounts)) {
    FailureOr<TensorMap> results = run("train", samples[index], count, int64_t(index) + 1);
    if (failed(results))
      return {std::nullopt, errors.text};
    outcome.losses.push_back(results->at("loss").data[0]);
    if (auto norm = results->find(plan::gradientNormPort); norm != results->end())
      outcome.gradientNorms.push_back(norm->second.data[0]);
  }
  outcome.parameters = parameters.tensors();
  FailureOr<TensorMap> results = run("eval", samples.back(), numEvaluated(training), 1);
  if (failed(results))
    return {std::nullopt, errors.text};
  outcome.evalLoss = results->at("loss").data[0];
  if (auto accuracy = results->find("accuracy"); accuracy != results->end())
    outcome.accuracy = accuracy->second.data[0];
  return {std::move(outcome), ""};
}

std::pair<OwningOpRef<ModuleOp>, std::string> splitModel(ModuleOp model, const Training &training, const Split &split) {
  ErrorCapture errors(model.getContext());
  Result<plan::Mesh> mesh = parseMesh(split.mesh);
  if (!mesh)
    return {OwningOpRef<ModuleOp>(), mesh.status().message()};
  // The largest step sets the rows, as `dgc --batch` does; smaller ones leave some of them empty.
  int64_t largest = std::max(*llvm::max_element(training.sampleCounts), numEvaluated(training));
  int64_t data = mesh->sizeOf("data"), parts = data * split.microbatches;
  PipelineOptions options;
  options.mesh = *mesh;
  options.optimizer = training.optimizer;
  options.batch = (largest + parts - 1) / parts * data;
  options.microbatches = options.batchPieces = split.microbatches;
  options.paddedRows = options.batch * split.microbatches - largest;
  options.zero = split.zero;
  options.chunksPerStage = split.chunksPerStage;
  options.isFolded = split.isFolded;
  options.splitsBackward = split.splitsBackward;
  options.precision = split.precision;
  options.reducesWide = split.reducesWide;
  options.lossScale = split.lossScale;
  if (split.isRecomputed)
    options.planning.recompute = partitioner::Recompute::full;
  if (split.slicesSends) {
    partitioner::Cluster &cluster = options.planning.cluster.emplace(partitioner::hostCluster(1));
    cluster.numNodes = uint32_t(mesh->sizeOf(plan::Axis::pipe));
    cluster.devicesPerNode = uint32_t(mesh->numRanks()) / cluster.numNodes;
    cluster.intraNode = {1e15, 0};
  }
  if (split.savedBytes > 0)
    options.savedBytes.assign(size_t(mesh->sizeOf("pipe") * split.chunksPerStage), split.savedBytes);
  OwningOpRef<ModuleOp> module = model.clone();
  PassManager manager(model.getContext());
  buildPipeline(manager, options);
  if (failed(manager.run(*module)))
    return {OwningOpRef<ModuleOp>(), "split: " + errors.text};
  return {std::move(module), ""};
}

Attempt trainSplit(ModuleOp model, ModuleOp chunks, const Training &training, const Split &split) {
  ErrorCapture errors(chunks.getContext());
  std::vector<TensorMap> samples = drawSamples(model, training);
  Result<plan::Mesh> mesh = parseMesh(split.mesh);
  SimulatedRanks ranks(chunks, {mesh->sizeOf("data"), mesh->sizeOf("tensor")}, ParameterStore(parameterSeed),
                       split.rounds ? Precision::f32 : Precision::f64);
  Outcome outcome;
  for (size_t index = 0; index < training.sampleCounts.size(); ++index) {
    FailureOr<StepResults> results =
        ranks.run("train", samples[index], split.microbatches, {learningRate(training), int64_t(index) + 1});
    if (failed(results))
      return {std::nullopt, errors.text};
    outcome.losses.push_back(results->total("loss").value_or(std::nan("")));
    if (std::optional<double> norm = results->total(plan::gradientNormPort))
      outcome.gradientNorms.push_back(*norm);
  }
  FailureOr<TensorMap> parameters = ranks.gatherParameters();
  if (failed(parameters))
    return {std::nullopt, errors.text};
  outcome.parameters = std::move(*parameters);
  FailureOr<StepResults> results = ranks.run("eval", samples.back(), split.microbatches, {learningRate(training), 1});
  if (failed(results))
    return {std::nullopt, errors.text};
  outcome.evalLoss = results->total("loss").value_or(std::nan(""));
  outcome.accuracy = results->total("accuracy");
  return {std::move(outcome), ""};
}

Attempt splitAndTrain(ModuleOp model, const Training &training, const Split &split) {
  auto [chunks, error] = splitModel(model, training, split);
  if (!chunks)
    return {std::nullopt, error};
  return trainSplit(model, *chunks, training, split);
}

std::string firstDifference(const Outcome &whole, const Outcome &split, double tolerance) {
  // What is mathematically 0, such as the gradient of a key's bias, is rounding noise in both: hence the floor.
  constexpr double floor = 0.01;
  auto differs = [&](double a, double b, double scale) {
    return !(std::abs(a - b) <= tolerance * std::max(scale, floor)); // a NaN differs
  };
  auto says = [](const std::string &what, double a, double b) {
    return llvm::formatv("{0} is {1:e16} in the whole program and {2:e16} in the split one", what, a, b).str();
  };
  if (whole.losses.size() != split.losses.size())
    return "the number of steps differs";
  for (size_t step = 0; step < whole.losses.size(); ++step)
    if (differs(whole.losses[step], split.losses[step], std::abs(whole.losses[step])))
      return says("the loss of step " + std::to_string(step + 1), whole.losses[step], split.losses[step]);
  if (whole.gradientNorms.size() != split.gradientNorms.size())
    return "one of the programs lacks the norm of the gradients";
  for (auto [step, norms] : llvm::enumerate(llvm::zip_equal(whole.gradientNorms, split.gradientNorms)))
    if (auto [a, b] = norms; differs(a, b, std::abs(a)))
      return says("the norm of the gradients of step " + std::to_string(step + 1), a, b);
  for (const auto &[name, tensor] : whole.parameters) {
    auto found = split.parameters.find(name);
    if (found == split.parameters.end() || found->second.shape != tensor.shape)
      return "'" + name + "' is not a parameter of the split program, or has another shape";
    double scale = 0;
    for (double element : tensor.data)
      scale = std::max(scale, std::abs(element));
    for (size_t i = 0; i < tensor.data.size(); ++i)
      if (differs(tensor.data[i], found->second.data[i], scale))
        return says("element " + std::to_string(i) + " of '" + name + "'", tensor.data[i], found->second.data[i]);
  }
  if (whole.parameters.size() != split.parameters.size())
    return "the split program has parameters that the whole one has not";
  if (differs(whole.evalLoss, split.evalLoss, std::abs(whole.evalLoss)))
    return says("the loss of the evaluation", whole.evalLoss, split.evalLoss);
  if (whole.accuracy.has_value() != split.accuracy.has_value())
    return "only one of the programs has an accuracy";
  if (whole.accuracy && differs(*whole.accuracy, *split.accuracy, 1))
    return says("the accuracy", *whole.accuracy, *split.accuracy);
  return "";
}

} // namespace dg::passes::test
