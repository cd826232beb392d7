// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/BuildPlan.h"

#include "codegen/plan/DTypes.h"
#include "ir/dialect/Locations.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/ops/structure/LiteralOps.h"

#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;

namespace dg::codegen {

namespace {

using namespace ir;
using plan::ChunkId;
using plan::ProgramKind;
using plan::TaskId;
using plan::ValueId;
using plan::ValueKind;

plan::Phase phaseOf(Phase phase) { return plan::Phase(int(phase)); }

class PlanBuilder {
public:
  PlanBuilder(ModuleOp module, const PlanOptions &options, KernelSet &kernels, std::vector<LiteralTensor> &literals,
              std::vector<plan::ChunkRole> &roles)
      : module(module), options(options), kernels(kernels), literals(literals), roles(roles) {
    for (const LiteralTensor &known : literals) // of another plan of the same job
      literalNames.try_emplace(known.elements, known.name);
  }

  FailureOr<plan::Plan> run() {
    result.mesh = options.mesh;
    result.model = options.model;
    result.memory.resize(result.numStages());
    for (auto graph : module.getOps<GraphOp>())
      if (!graph.getProgram())
        return graph.emitOpError("is not a chunk: run --dg-split-stages first"), failure();
    for (auto graph : module.getOps<GraphOp>())
      if (graph.getProgram() == plan::nameOf(ProgramKind::prepare))
        findPrepared(graph);
    // What is prepared is known by then from those who read it.
    for (ProgramKind kind : allOf<ProgramKind>())
      if (failed(addProgram(kind)))
        return failure();
    llvm::StringSet<> counted;
    for (const plan::Value &value : result.values)
      if (value.kind == ValueKind::parameter && counted.insert(value.name).second) {
        uint64_t elements = 1;
        for (int64_t size : value.globalShape)
          elements *= uint64_t(size);
        result.model.parameters += elements;
      }
    return std::move(result);
  }

private:
  //===- Programs and chunks
  //----------------------------------------------------------------------------------------===//

  LogicalResult addProgram(ProgramKind kind) {
    SmallVector<GraphOp> chunks;
    for (auto graph : module.getOps<GraphOp>())
      if (*graph.getProgram() == plan::nameOf(kind))
        chunks.push_back(graph);
    if (chunks.empty())
      return success();
    // Phase by phase, and within one in the order of a micro-batch, so that a value is known before the chunk that
    // reads it.
    auto order = [](GraphOp chunk) {
      int64_t part = partOf(chunk);
      return std::make_tuple(int(*chunk.getPhase()), isWeightPart(chunk),
                             *chunk.getPhase() == Phase::backward ? -part : part);
    };
    llvm::sort(chunks, [&](GraphOp a, GraphOp b) { return order(a) < order(b); });
    ports.clear();
    accumulators.clear();
    usedNames.clear();
    outputs.clear();
    program = plan::Program();
    program.kind = kind;
    bool isOnce = kind == ProgramKind::prepare;
    program.batch = isOnce ? 0 : options.batch;
    program.microbatches = isOnce ? 1 : options.microbatches;
    if (auto mixing = module->getAttrOfType<StringAttr>("dg.mixes_samples"); mixing && program.batch > 0)
      program.mixesSamples = mixing.str();
    for (GraphOp chunk : chunks)
      if (failed(addChunk(chunk)))
        return failure();
    addBeginChunks();
    for (auto &[port, value] : outputs)
      portNamed(program.outputs, port.second).values.push_back(value);
    if ((kind == ProgramKind::infer || kind == ProgramKind::eval) && options.batch > 0)
      markSampleRows();
    result.programs.push_back(std::move(program));
    return success();
  }

  /// Results with a row for each sample, as AssignShardings found them, are cut over data as inputs are, also where one
  /// rank has all of them.
  void markSampleRows() {
    auto names = module->getAttrOfType<ArrayAttr>("dg.sample_rows");
    if (!names)
      return;
    for (auto name : names.getAsRange<StringAttr>())
      for (ValueId id : portNamed(program.outputs, name.str()).values)
        if (plan::Value &value = result.values[id]; !value.shape.empty() && !value.sharding[0]) {
          value.sharding[0] = plan::Axis::data;
          value.globalShape[0] = value.shape[0] * options.mesh.sizeOf(plan::Axis::data);
        }
  }

  /// The part of the model, as SplitStages wrote it.
  static int64_t partOf(GraphOp chunk) { return int64_t(chunk.getPart().value_or(*chunk.getStage())); }
  static bool isWeightPart(GraphOp chunk) { return chunk.getWeightGradients(); }

  void addRole(plan::ChunkRole role) {
    roles.resize(result.chunks.size());
    roles.push_back(role);
  }

  LogicalResult addChunk(GraphOp graph) {
    stage = uint32_t(*graph.getStage());
    chunk = plan::Chunk();
    chunk.program = uint32_t(result.programs.size());
    chunk.stage = stage;
    chunk.phase = phaseOf(*graph.getPhase());
    ids.clear();
    unfinished.clear();
    kept.clear();
    if (program.kind == ProgramKind::prepare)
      for (auto [index, value] : llvm::enumerate(graph.getReturn().getOperands()))
        kept[value] = preparedValue(graph.getReturn().getResultName(index), tensorOf(value));
    for (BlockArgument argument : graph.getBody().getArguments())
      ids[argument] = inputValue(graph, argument);
    for (Operation &op : graph.getBody().front())
      if (failed(addOp(&op)))
        return failure();
    while (!unfinished.empty())
      finish(unfinished.begin()->first);
    addRole({uint32_t(partOf(graph) / result.numStages()), isWeightPart(graph)});
    result.chunks.push_back(std::move(chunk));
    return success();
  }

  /// Each accumulator starts every step at zero.
  void addBeginChunks() {
    std::map<uint32_t, plan::Chunk> begins;
    for (auto &[key, value] : accumulators) {
      plan::Chunk &begin = begins[key.first];
      begin.program = uint32_t(result.programs.size());
      begin.stage = key.first;
      begin.phase = plan::Phase::begin;
      plan::Task task;
      task.name = key.second + "/zero";
      task.op = "zero";
      task.stage = key.first;
      task.work = plan::Zero{value};
      task.bytes = double(result.values[value].bytes);
      begin.tasks.push_back(TaskId(result.tasks.size()));
      result.tasks.push_back(std::move(task));
    }
    for (auto &[owner, begin] : begins)
      result.chunks.push_back(std::move(begin));
  }

  //===- Values
  //-----------------------------------------------------------------------------------------------------===//

  std::string uniqueName(const std::string &wanted) {
    unsigned &count = usedNames[{stage, wanted}];
    return count++ == 0 ? wanted : wanted + "#" + std::to_string(count - 1);
  }

  ValueId addValue(const std::string &name, ValueKind kind, RankedTensorType type, ShardingAttr sharding) {
    plan::Value value;
    value.name = name;
    value.stage = stage;
    value.kind = kind;
    value.dtype = dtypeOf(type);
    value.shape = type.getShape().vec();
    value.globalShape = value.shape;
    value.sharding.resize(value.shape.size());
    if (sharding && sharding.getDims().size() == value.shape.size())
      for (auto [dim, axis] : llvm::enumerate(sharding.getDims()))
        if (!axis.empty()) {
          value.sharding[dim] = axisOf(axis);
          value.globalShape[dim] *= options.mesh.sizeOf(*value.sharding[dim]);
        }
    value.bytes = uint64_t(type.getNumElements()) * uint64_t(plan::sizeOf(value.dtype));
    result.values.push_back(std::move(value));
    return ValueId(result.values.size() - 1);
  }

  ValueId inputValue(GraphOp graph, BlockArgument argument) {
    std::string name = graph.getInputName(argument.getArgNumber()).str();
    auto known = ports.find({stage, name});
    if (known != ports.end()) {
      outputs.erase({stage, name}); // read by a later chunk: not a result of the program
      return known->second;
    }
    auto type = tensorOf(argument);
    if (preparedAxes.contains({stage, name}))
      return preparedValue(name, type);
    SmallVector<StringAttr> dims(type.getRank(), StringAttr::get(graph.getContext(), ""));
    if (!dims.empty() && (options.batch > 0 || options.mesh.sizeOf(plan::Axis::data) > 1))
      dims[0] = StringAttr::get(graph.getContext(), "data");
    ValueId id = addValue(uniqueName(name), ValueKind::input, type, ShardingAttr::get(graph.getContext(), dims, {}));
    ports[{stage, name}] = id;
    plan::Port &port = portNamed(program.inputs, name);
    port.values.push_back(id);
    port.indexBound = indexBound(argument, port.indexBound);
    return id;
  }

  static plan::Port &portNamed(std::vector<plan::Port> &all, const std::string &name) {
    for (plan::Port &port : all)
      if (port.name == name)
        return port;
    all.push_back({name, {}});
    return all.back();
  }

  /// `bound`, and what the elements of an input must be to be places in each table and row that they are used for.
  static int64_t indexBound(Value value, int64_t bound) {
    for (OpOperand &use : value.getUses()) {
      // All of its elements under another shape. Indices that are computed are checked where they are used.
      if (isRearrangement(use.getOwner()))
        bound = indexBound(use.getOwner()->getResult(0), bound);
      auto indexing = dyn_cast<IndexOp>(use.getOwner());
      IndexBound found = indexing ? indexing.getIndexBound(use.getOperandNumber()) : IndexBound();
      if (found.places <= 0)
        continue;
      // Negative places count from the end where they do so everywhere.
      const int64_t places = bound == 0 ? found.places : std::min(found.places, std::abs(bound));
      bound = found.countsFromEnd && bound <= 0 ? -places : places;
    }
    return bound;
  }

  ValueId parameterValue(ParameterOp op) {
    auto [place, isNew] = parameters.try_emplace({stage, op.getParam().str()}, 0);
    if (!isNew)
      return place->second;
    ArrayRef<ShardingAttr> shardings = ::dg::ir::getPlace(op).getShardings();
    ValueId id = addValue(op.getParam().str(), op.getState() ? ValueKind::state : ValueKind::parameter,
                          tensorOf(op.getResult()), shardings.empty() ? ShardingAttr() : shardings.front());
    plan::Value &value = result.values[id];
    value.globalShape = cast<RankedTensorType>(op.getType()).getShape().vec();
    value.init.value = op.getInit().getValue().getValueAsDouble();
    switch (op.getInit().getKind()) {
    case InitKind::constant:
      value.init.kind = plan::Init::Kind::constant;
      break;
    case InitKind::uniform:
      value.init.kind = plan::Init::Kind::uniform;
      break;
    case InitKind::normal:
      value.init.kind = plan::Init::Kind::normal;
      break;
    case InitKind::file:
      value.init.kind = plan::Init::Kind::file;
      break;
    }
    return place->second = id;
  }

  ValueId constantValue(ConstantOp op) {
    auto type = tensorOf(op.getResult());
    double number = op.getValue().convertToDouble();
    auto [place, isNew] = constants.try_emplace({stage, type.getAsOpaquePointer(), number}, 0);
    if (!isNew)
      return place->second;
    ValueId id = addValue("constant#" + std::to_string(constants.size()), ValueKind::constant, type, {});
    result.values[id].init = {plan::Init::Kind::constant, number};
    return place->second = id;
  }

  /// Equal literals are one tensor of the package, and one buffer of a stage.
  ValueId literalValue(LiteralOp op) {
    auto elements = cast<DenseElementsAttr>(op.getValue());
    auto [known, isNew] = literalNames.try_emplace(elements, "literal#" + std::to_string(literals.size()));
    if (isNew)
      literals.push_back({known->second, elements});
    auto [place, isFirst] = literalValues.try_emplace({stage, known->second}, 0);
    if (!isFirst)
      return place->second;
    ValueId id = addValue(known->second, ValueKind::constant, tensorOf(op.getResult()), {});
    result.values[id].init.kind = plan::Init::Kind::file;
    return place->second = id;
  }

  /// What the program "prepare" computes once; it stays as it is.
  ValueId preparedValue(const std::string &name, RankedTensorType type) {
    auto [place, isNew] = prepared.try_emplace({stage, name}, 0);
    if (isNew)
      place->second = addValue(name, ValueKind::constant, type, preparedAxes.at({stage, name}));
    return place->second;
  }

  /// Over which axes the results of a chunk of "prepare" differ: those that cut the parameters they are made of. They
  /// are never joined, so it does not matter which dimension an axis stands at.
  void findPrepared(GraphOp graph) {
    llvm::DenseMap<Value, SetVector<StringAttr>> axes;
    for (Operation &op : graph.getBody().front()) {
      SetVector<StringAttr> own;
      for (Value operand : op.getOperands())
        own.insert(axes[operand].begin(), axes[operand].end());
      if (auto parameter = dyn_cast<ParameterOp>(op); parameter && !getPlace(&op).getShardings().empty())
        for (StringAttr axis : getPlace(&op).getShardings().front().getDims())
          if (!axis.empty())
            own.insert(axis);
      for (Value result : op.getResults())
        axes[result] = own;
    }
    ReturnOp end = graph.getReturn();
    for (auto [index, value] : llvm::enumerate(end.getOperands())) {
      SmallVector<StringAttr> dims(tensorOf(value).getRank(), StringAttr::get(graph.getContext(), ""));
      for (auto [dim, axis] : llvm::zip(dims, axes[value]))
        dim = axis;
      preparedAxes[{uint32_t(*graph.getStage()), end.getResultName(index)}] =
          ShardingAttr::get(graph.getContext(), dims, {});
    }
  }

  ValueId accumulatorValue(StringRef name, RankedTensorType type) {
    auto [place, isNew] = accumulators.try_emplace({stage, name.str()}, 0);
    if (isNew)
      place->second = addValue(uniqueName("sum " + name.str()), ValueKind::accumulator, type, {});
    return place->second;
  }

  ValueId freshResult(Operation *op, unsigned index) {
    if (auto known = kept.find(op->getResult(index)); known != kept.end())
      return known->second;
    ArrayRef<ShardingAttr> shardings = getPlace(op).getShardings();
    ShardingAttr sharding;
    if (shardings.size() >= op->getNumResults())
      sharding = shardings.take_back(op->getNumResults())[index];
    ValueKind kind = chunk.phase == plan::Phase::forward ? ValueKind::activation : ValueKind::gradient;
    return addValue(uniqueName(nameOf(op)), kind, tensorOf(op->getResult(index)), sharding);
  }

  //===- Tasks
  //------------------------------------------------------------------------------------------------------===//

  static std::string nameOf(Operation *op) {
    StringRef label = getPlace(op).getLabel().getValue();
    return label.empty() ? op->getName().stripDialect().str() : (label + "/" + op->getName().stripDialect()).str();
  }

  plan::Task makeTask(Operation *op, plan::Work work) {
    plan::Task task;
    task.name = nameOf(op);
    task.op = op->getName().getStringRef().str();
    task.source = sourceOf(op->getLoc());
    task.stage = stage;
    task.work = std::move(work);
    if (auto costed = dyn_cast<CostOp>(op)) {
      OpCost cost = costed.getCost();
      task.flops = cost.flops;
      task.bytes = cost.bytes;
    }
    return task;
  }

  TaskId append(plan::Task task) {
    TaskId id = TaskId(result.tasks.size());
    chunk.tasks.push_back(id);
    result.tasks.push_back(std::move(task));
    return id;
  }

  /// The buffer of an operand; what is still under way is finished first.
  ValueId read(Value value) {
    ValueId id = ids.lookup(value);
    finish(id);
    return id;
  }

  void finish(ValueId id) {
    auto open = unfinished.find(id);
    if (open == unfinished.end())
      return;
    const plan::Task &started = result.tasks[open->second];
    plan::Task task;
    task.name = started.name + " finish";
    task.op = started.op;
    task.source = started.source;
    task.stage = stage;
    task.work = plan::Finish{open->second};
    unfinished.erase(open);
    append(std::move(task));
  }

  LogicalResult addOp(Operation *op) {
    if (auto parameter = dyn_cast<ParameterOp>(op))
      return ids[parameter.getResult()] = parameterValue(parameter), success();
    if (auto constant = dyn_cast<ConstantOp>(op))
      return ids[constant.getResult()] = constantValue(constant), success();
    if (auto literal = dyn_cast<LiteralOp>(op))
      return ids[literal.getResult()] = literalValue(literal), success();
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      return ids[reshape.getResult()] = read(reshape.getInput()), success();
    if (auto accumulated = dyn_cast<AccumulatedOp>(op)) {
      ids[accumulated.getResult()] = accumulatorValue(accumulated.getAccumulator(), tensorOf(accumulated.getResult()));
      return success();
    }
    if (auto end = dyn_cast<ReturnOp>(op))
      return addResults(end), success();
    if (auto update = dyn_cast<UpdateOp>(op))
      return addUpdate(update), success();
    if (auto send = dyn_cast<SendOp>(op)) {
      ValueId value = read(send.getValue());
      plan::Task task = makeTask(op, plan::Send{value, uint32_t(send.getPeerStage()), uint32_t(send.getChannel())});
      task.bytes = double(result.values[value].bytes);
      append(std::move(task));
      return success();
    }
    if (auto receive = dyn_cast<ReceiveOp>(op)) {
      ValueId value = ids[receive.getResult()] = freshResult(op, 0);
      plan::Task task =
          makeTask(op, plan::Receive{value, uint32_t(receive.getPeerStage()), uint32_t(receive.getChannel())});
      task.bytes = double(result.values[value].bytes);
      start(std::move(task), value);
      return success();
    }
    if (auto reduce = dyn_cast<AllReduceOp>(op))
      return addAllReduce(reduce), success();
    if (auto gather = dyn_cast<AllGatherOp>(op))
      return addMove<plan::AllGather>(op, gather.getAxis(), gather.getDim()), success();
    if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      return addMove<plan::ReduceScatter>(op, scatter.getAxis(), scatter.getDim()), success();
    if (auto slice = dyn_cast<SliceShardOp>(op))
      return addMove<plan::Slice>(op, slice.getAxis(), slice.getDim()), success();
    return addKernel(op);
  }

  /// Communication that will be finished before its result is read.
  void start(plan::Task task, ValueId written) { unfinished[written] = append(std::move(task)); }

  /// After the split phase every axis is one of the mesh.
  static plan::Axis axisOf(StringRef name) { return *enumNamed<plan::Axis>(name); }

  void addCopy(Operation *op, ValueId from, ValueId to) {
    plan::Task copy = makeTask(op, plan::Copy{from, to});
    copy.op = "copy";
    append(std::move(copy));
  }

  void addAllReduce(AllReduceOp op) {
    ValueId from = read(op.getInput());
    ValueId target = from;
    // In place where nobody else looks at the summand.
    Operation *producer = op.getInput().getDefiningOp();
    ValueKind kind = result.values[from].kind;
    bool isOwned = op.getInput().hasOneUse() && producer && !isa<ReshapeOp>(producer) &&
                   (kind == ValueKind::activation || kind == ValueKind::gradient || kind == ValueKind::accumulator);
    if (!isOwned) {
      target = freshResult(op, 0);
      addCopy(op, from, target);
    }
    ids[op.getResult()] = target;
    plan::Task task = makeTask(op, plan::AllReduce{target, axisOf(op.getAxis()), numCollectives++, {}});
    task.bytes = double(result.values[target].bytes);
    start(std::move(task), target);
  }

  /// The buffer of `value`, copied where a reshape made it share another value's under another shape: blocks are cut,
  /// and results written, by shape.
  ValueId underOwnShape(Operation *op, Value value, ValueId from, StringRef what) {
    auto type = tensorOf(value);
    if (ArrayRef(result.values[from].shape) == type.getShape())
      return from;
    bool isGradient = result.values[from].kind == ValueKind::gradient;
    ValueId own = addValue(uniqueName(nameOf(op) + " " + what.str()),
                           isGradient ? ValueKind::gradient : ValueKind::activation, type, {});
    addCopy(op, from, own);
    return own;
  }

  /// All-gather, reduce-scatter and slice.
  template <typename Move> void addMove(Operation *op, StringRef axis, uint64_t dim) {
    ValueId from = underOwnShape(op, op->getOperand(0), read(op->getOperand(0)), "operand");
    // What becomes the parameter is gathered where it lies.
    auto update = op->hasOneUse() ? dyn_cast<UpdateOp>(*op->user_begin()) : UpdateOp();
    bool isUpdate = std::is_same_v<Move, plan::AllGather> && update;
    ValueId to = ids[op->getResult(0)] =
        isUpdate ? parameters.at({stage, update.getParam().str()}) : freshResult(op, 0);
    plan::Task task = makeTask(op, Move{from, to, axisOf(axis), int64_t(dim)});
    task.bytes = double(std::max(result.values[from].bytes, result.values[to].bytes));
    if constexpr (std::is_same_v<Move, plan::Slice>) {
      append(std::move(task));
    } else {
      task.as<Move>()->order = numCollectives++;
      start(std::move(task), to);
    }
  }

  LogicalResult addKernel(Operation *op) {
    FailureOr<KernelSpec> spec = kernels.addKernel(plan::nameOf(program.kind), op);
    if (failed(spec))
      return failure();
    // Nothing to compute, but every value is written once.
    if (spec->tiles == 0) {
      for (auto [index, result] : llvm::enumerate(op->getResults())) {
        ids[result] = freshResult(op, index);
        append(makeTask(op, plan::Zero{ids[result]}));
      }
      return success();
    }
    plan::Kernel kernel{spec->symbol, {}};
    for (Value operand : op->getOperands())
      kernel.buffers.push_back({read(operand), plan::Access::read});
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
      ValueId sum = accumulatorValue(accumulate.getAccumulator(), tensorOf(accumulate.getValue()));
      kernel.buffers.push_back({sum, plan::Access::readWrite});
    }
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      int aliased = spec->aliasedOperand.empty() ? -1 : spec->aliasedOperand[index];
      if (aliased >= 0)
        kernel.buffers[aliased].access = plan::Access::readWrite;
      else
        kernel.buffers.push_back({freshResult(op, index), plan::Access::write});
      ids[result] = aliased >= 0 ? kernel.buffers[aliased].value : kernel.buffers.back().value;
    }
    for (int64_t bytes : spec->scratchBytes) {
      auto type = RankedTensorType::get({(bytes + 3) / 4}, Float32Type::get(op->getContext()));
      ValueId id = addValue(uniqueName(nameOf(op) + " scratch"), ValueKind::scratch, type, {});
      kernel.buffers.push_back({id, plan::Access::write});
    }
    append(makeTask(op, std::move(kernel)));
    return success();
  }

  /// Optimizer kernels work in place, so the new value is where the parameter is; else it is copied there.
  void addUpdate(UpdateOp op) {
    ValueId value = read(op.getValue());
    ValueId parameter = parameters.at({stage, op.getParam().str()});
    if (value == parameter)
      return;
    append(makeTask(op, plan::Copy{value, parameter}));
  }

  void addResults(ReturnOp end) {
    if (program.kind == ProgramKind::prepare)
      return;
    for (auto [index, value] : llvm::enumerate(end.getOperands())) {
      std::pair<uint32_t, std::string> key{stage, end.getResultName(index)};
      ValueId id = read(value);
      if (program.kind == ProgramKind::infer || program.kind == ProgramKind::eval)
        id = underOwnShape(end, value, id, key.second);
      ports[key] = outputs[key] = id;
    }
  }

  ModuleOp module;
  const PlanOptions &options;
  KernelSet &kernels;
  std::vector<LiteralTensor> &literals;
  std::vector<plan::ChunkRole> &roles; ///< by chunk
  plan::Plan result;

  // Of the job.
  std::map<std::pair<uint32_t, std::string>, ValueId> parameters;
  std::map<std::tuple<uint32_t, const void *, double>, ValueId> constants;
  llvm::DenseMap<Attribute, std::string> literalNames;
  std::map<std::pair<uint32_t, std::string>, ValueId> literalValues; ///< by stage and name
  std::map<std::pair<uint32_t, std::string>, ValueId> prepared;      ///< by stage and name
  std::map<std::pair<uint32_t, std::string>, ShardingAttr> preparedAxes;
  uint32_t numCollectives = 0;

  // Of the program that is being built.
  plan::Program program;
  std::map<std::pair<uint32_t, std::string>, ValueId> ports, accumulators, outputs; ///< by stage and name
  std::map<std::pair<uint32_t, std::string>, unsigned> usedNames;

  // Of the chunk that is being built.
  uint32_t stage = 0;
  plan::Chunk chunk;
  llvm::DenseMap<Value, ValueId> ids;
  llvm::DenseMap<Value, ValueId> kept;  ///< results whose buffers another program reads
  std::map<ValueId, TaskId> unfinished; ///< communication under way, by the value it writes
};

} // namespace

FailureOr<plan::Plan> buildPlan(ModuleOp module, const PlanOptions &options, KernelSet &kernels,
                                std::vector<LiteralTensor> &literals, std::vector<plan::ChunkRole> &roles) {
  return PlanBuilder(module, options, kernels, literals, roles).run();
}

} // namespace dg::codegen
