// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/reference/SimulatedStep.h"
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"

using namespace mlir;

namespace dg::ir {

FailureOr<StepResults> SimulatedStep::run(StringRef program) {
  SmallVector<GraphOp> chunks;
  // What is prepared once for inference comes out the same in each step.
  for (auto chunk : ranks.module.getOps<GraphOp>())
    if (chunk.getProgram() == program || (program == "infer" && chunk.getProgram() == "prepare"))
      chunks.push_back(chunk);
  if (chunks.empty())
    return ranks.module.emitError() << "has no chunk of program '" << program
                                    << "': run the split passes, or ask for a program that was built";
  if (failed(countSamples(chunks)))
    return failure();
  for (GraphOp chunk : chunks) {
    if (!chunk.getStage() || !chunk.getPhase())
      return chunk.emitOpError("has no stage or no phase, expected both on a chunk");
    for (int64_t m = 0; m < (isOncePerStep(*chunk.getPhase()) ? 1 : numMicrobatches); ++m)
      runs.push_back({chunk, int64_t(*chunk.getStage()), *chunk.getPhase(), m});
  }
  for (bool isMoving = true; isMoving;) {
    isMoving = false;
    for (Run &run : runs) {
      FailureOr<bool> moved = advance(run);
      if (failed(moved))
        return failure();
      isMoving |= *moved;
    }
  }
  for (Run &run : runs)
    if (!run.isDone) {
      Operation *stuck = run.isStarted ? run.awaited.getOperation() : run.chunk.getOperation();
      return stuck->emitOpError() << "of program '" << program << "', stage " << run.stage << ", micro-batch "
                                  << run.microbatch << " waits for what nobody sends: the program has a deadlock";
    }
  if (!mailbox.empty())
    return ranks.module.emitError() << "sends on channel " << mailbox.begin()->first.first << " in micro-batch "
                                    << mailbox.begin()->first.second << " what nobody receives";
  for (auto &[name, update] : updates) {
    auto found = ranks.parameters.find(name);
    if (found == ranks.parameters.end())
      return update.first.emitOpError() << "sets '" << name << "', which no dg.parameter of the module reads";
    for (auto [present, next] : llvm::zip_equal(found->second.ranks, update.second)) {
      if (present.shape != next.shape)
        return update.first.emitOpError() << "sets '" << name << "' to " << update.first.getValue().getType()
                                          << ", expected " << found->second.op.getResult().getType();
      present = std::move(next);
    }
  }
  return std::move(results);
}

/// Every model input has one row for each sample of the step.
LogicalResult SimulatedStep::countSamples(ArrayRef<GraphOp> chunks) {
  std::optional<int64_t> count;
  for (const auto &[name, tensor] : inputs) {
    if (tensor.shape.empty() || (count && *count != tensor.shape[0]))
      return ranks.module.emitError() << "is fed input '" << name << "' with "
                                      << (tensor.shape.empty() ? 1 : tensor.shape[0]) << " rows, expected "
                                      << count.value_or(0) << " as for the others";
    count = tensor.shape[0];
  }
  numSamples = count.value_or(0);
  return success();
}

bool SimulatedStep::mayStart(const Run &run) const {
  // Micro-batches pass a chunk in order, so that sums have one bracketing; the update waits for its stage's last one.
  return llvm::all_of(runs, [&](const Run &other) {
    bool isEarlier = other.chunk == run.chunk && other.microbatch < run.microbatch;
    bool isBeforeUpdate = run.phase == Phase::update && other.stage == run.stage && other.phase != Phase::update;
    bool isBegin = other.phase == Phase::begin && other.stage == run.stage && run.phase != Phase::begin;
    return other.isDone || !(isEarlier || isBeforeUpdate || isBegin);
  });
}

/// The sample that a row of a rank holds. Padding repeats the rank's last sample, or the first of the step where it has
/// none: rows of zeros could make values infinite that real samples do not, and a weight of zero makes NaN of them.
static int64_t sampleAt(SampleRange mine, int64_t row) {
  return mine.count > 0 ? mine.start + std::min(row, mine.count - 1) : 0;
}

FailureOr<SimulatedStep::PerRank> SimulatedStep::modelInput(Run &run, StringRef name, RankedTensorType type) {
  PerRank locals;
  SampleRange microbatch = partOf({0, numSamples}, numMicrobatches, run.microbatch);
  for (int64_t rank = 0; rank < ranks.numRanks(); ++rank) {
    SampleRange mine = partOf(microbatch, ranks.mesh.data, rank / ranks.mesh.tensor);
    if (type.getRank() == 0 || mine.count > type.getDimSize(0))
      return run.chunk.emitOpError() << "has input '" << name << "' of type " << type << ", expected room for "
                                     << mine.count << " samples of micro-batch " << run.microbatch << " on rank "
                                     << rank;
    HostTensor local = zerosOf(type);
    if (name == "sample_weight") {
      std::fill_n(local.data.begin(), mine.count, 1.0 / double(numSamples));
    } else if (name == "sample_index") {
      for (auto [row, number] : llvm::enumerate(local.data))
        number = double(sampleAt(mine, int64_t(row)));
    } else {
      const HostTensor &whole = inputs.at(name.str());
      if (ArrayRef<int64_t>(whole.shape).drop_front() != type.getShape().drop_front())
        return run.chunk.emitOpError() << "has input '" << name << "' of type " << type
                                       << ", expected the tensor that is fed to have the same shape of a sample";
      pasteBlock(local, cutBlock(whole, 0, mine.start, mine.count), 0, 0);
      for (int64_t row = mine.count; row < type.getDimSize(0); ++row)
        pasteBlock(local, cutBlock(whole, 0, sampleAt(mine, row), 1), 0, row);
    }
    roundTo(ranks.precision, type, local);
    locals.push_back(std::move(local));
  }
  return locals;
}

FailureOr<bool> SimulatedStep::start(Run &run) {
  if (!mayStart(run))
    return false;
  llvm::DenseMap<Value, PerRank> values;
  for (BlockArgument argument : run.chunk.getBody().getArguments()) {
    StringRef name = run.chunk.getInputName(argument.getArgNumber());
    auto type = tensorOf(argument);
    auto made = named.find({run.stage, run.microbatch, name.str()});
    if (made == named.end())
      made = named.find({run.stage, -1, name.str()});
    if (made != named.end()) {
      if (ArrayRef<int64_t>(made->second[0].shape) != type.getShape())
        return run.chunk.emitOpError() << "has input '" << name << "' of type " << type
                                       << ", expected the shape in which an earlier chunk returns it";
      values[argument] = made->second;
    } else if (name == "sample_weight" || name == "sample_index" || inputs.count(name.str())) {
      FailureOr<PerRank> locals = modelInput(run, name, type);
      if (failed(locals))
        return failure();
      values[argument] = std::move(*locals);
    } else {
      bool isMade = llvm::any_of(runs, [&](Run &other) {
        return other.stage == run.stage && other.chunk != run.chunk &&
               llvm::is_contained(resultNames(other.chunk), name);
      });
      if (!isMade)
        return run.chunk.emitOpError() << "has an input '" << name
                                       << "' that is neither fed nor returned by another chunk of stage " << run.stage;
      return false;
    }
  }
  run.values = std::move(values);
  run.next = &run.chunk.getBody().front().front();
  run.isStarted = true;
  return true;
}

/// The receives whose messages an op needs, in its own operands or inside of it.
static SmallVector<ReceiveOp> receivesReadBy(Operation &op) {
  SmallVector<ReceiveOp> receives;
  op.walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (auto receive = operand.getDefiningOp<ReceiveOp>())
        receives.push_back(receive);
  });
  return receives;
}

FailureOr<bool> SimulatedStep::advance(Run &run) {
  if (run.isDone)
    return false;
  bool hasMoved = false;
  if (!run.isStarted) {
    FailureOr<bool> started = start(run);
    if (failed(started) || !*started)
      return started;
    hasMoved = true;
  }
  for (; run.next; run.next = run.next->getNextNode()) {
    if (isa<ReceiveOp>(run.next))
      continue;
    // The end of a chunk waits for all of its messages.
    auto awaited = isa<ReturnOp>(run.next) ? llvm::to_vector(run.chunk.getBody().front().getOps<ReceiveOp>())
                                           : receivesReadBy(*run.next);
    for (ReceiveOp receive : awaited) {
      if (run.values.count(receive.getResult()))
        continue;
      auto message = mailbox.extract({int64_t(receive.getChannel()), run.microbatch});
      if (message.empty()) {
        run.awaited = receive;
        return hasMoved;
      }
      if (failed(bindResult(run, receive.getResult(), std::move(message.mapped()))))
        return failure();
    }
    if (failed(execute(run, *run.next)))
      return failure();
    hasMoved = true;
  }
  finish(run);
  return true;
}

void SimulatedStep::finish(Run &run) {
  auto names = resultNames(run.chunk);
  for (auto [name, value] : llvm::zip_equal(names, run.chunk.getReturn().getOperands())) {
    results.entries.push_back({name, run.stage, run.microbatch, run.values[value]});
    // What is made once a step is there for each of its micro-batches.
    named[{run.stage, run.phase == Phase::begin ? -1 : run.microbatch, name}] = run.values[value];
  }
  run.values.clear();
  run.isDone = true;
}

LogicalResult SimulatedStep::bindResult(Run &run, Value result, PerRank tensors) {
  for (HostTensor &tensor : tensors) {
    if (ArrayRef<int64_t>(tensor.shape) != tensorOf(result).getShape())
      return result.getDefiningOp()->emitOpError()
             << "is declared to give " << result.getType() << " but gives " << tensor.data.size() << " elements in "
             << tensor.shape.size() << " dimensions, expected the declared shape";
    roundTo(ranks.precision, tensorOf(result), tensor);
  }
  run.values[result] = std::move(tensors);
  return success();
}

LogicalResult SimulatedStep::execute(Run &run, Operation &op) {
  if (isa<ReturnOp>(op))
    return success();
  if (auto parameter = dyn_cast<ParameterOp>(op)) {
    auto found = ranks.parameterAt(parameter, run.stage);
    return failed(found) ? failure() : bindResult(run, parameter.getResult(), (*found)->ranks);
  }
  if (auto update = dyn_cast<UpdateOp>(op)) {
    if (!updates.try_emplace(update.getParam().str(), update, run.values[update.getValue()]).second)
      return op.emitOpError() << "sets '" << update.getParam() << "' a second time in one step, expected one update";
    return success();
  }
  if (auto send = dyn_cast<SendOp>(op)) {
    auto key = std::make_pair(int64_t(send.getChannel()), run.microbatch);
    if (!mailbox.try_emplace(key, run.values[send.getValue()]).second)
      return op.emitOpError() << "sends on channel " << key.first << " a second time in micro-batch " << key.second
                              << ", expected one receive for each send";
    return success();
  }
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
    PerRank &value = run.values[accumulate.getValue()];
    PerRank &sums = accumulators[{run.stage, accumulate.getAccumulator().str()}];
    if (sums.empty()) {
      sums = value;
      return success();
    }
    for (auto [sum, summand] : llvm::zip_equal(sums, value)) {
      for (auto [total, element] : llvm::zip_equal(sum.data, summand.data))
        total += element;
      roundTo(ranks.precision, tensorOf(accumulate.getValue()), sum);
    }
    return success();
  }
  if (auto accumulated = dyn_cast<AccumulatedOp>(op)) {
    auto found = accumulators.find({run.stage, accumulated.getAccumulator().str()});
    if (found == accumulators.end())
      return op.emitOpError() << "reads '" << accumulated.getAccumulator() << "', to which nothing was added on stage "
                              << run.stage;
    return bindResult(run, accumulated.getResult(), found->second);
  }
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return executeCollective(run, op, reduce.getAxis(), std::nullopt);
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return executeCollective(run, op, gather.getAxis(), gather.getDim());
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    return executeCollective(run, op, scatter.getAxis(), scatter.getDim());
  if (auto slice = dyn_cast<SliceShardOp>(op))
    return executeCollective(run, op, slice.getAxis(), slice.getDim());

  SmallVector<PerRank> perResult(op.getNumResults());
  for (int64_t rank = 0; rank < ranks.numRanks(); ++rank) {
    SmallVector<HostTensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(run.values[operand][rank]);
    FailureOr<SmallVector<HostTensor>> outputs = evaluateOp(&op, operands, scalars, ranks.precision);
    if (failed(outputs))
      return failure();
    for (auto [tensors, output] : llvm::zip_equal(perResult, *outputs))
      tensors.push_back(std::move(output));
  }
  for (auto [result, tensors] : llvm::zip_equal(op.getResults(), perResult))
    run.values[result] = std::move(tensors);
  return success();
}

LogicalResult SimulatedStep::executeCollective(Run &run, Operation &op, StringRef axis, std::optional<int64_t> dim) {
  const PerRank &inputsOf = run.values[op.getOperand(0)];
  auto type = tensorOf(op.getResult(0));
  if (dim && (*dim < 0 || *dim >= type.getRank()))
    return op.emitOpError() << "works along dimension " << *dim << " of " << type << ", expected one that exists";
  PerRank outputs;
  for (int64_t rank = 0; rank < ranks.numRanks(); ++rank) {
    auto at = ranks.coordinate(&op, axis, rank);
    if (failed(at))
      return failure();
    auto [coordinate, size] = *at;
    // The group: ranks that differ from this one along the axis only, in the order of their coordinates.
    int64_t step = axis == "data" ? ranks.mesh.tensor : 1, first = rank - coordinate * step;
    HostTensor output;
    if (isa<AllGatherOp>(op)) {
      output = zerosOf(type);
      for (int64_t peer = 0; peer < size; ++peer) {
        const HostTensor &shard = inputsOf[first + peer * step];
        pasteBlock(output, shard, *dim, peer * shard.shape[*dim]);
      }
    } else if (isa<SliceShardOp>(op)) {
      output = inputsOf[rank];
    } else {
      output = inputsOf[first];
      for (int64_t peer = 1; peer < size; ++peer) {
        for (auto [total, element] : llvm::zip_equal(output.data, inputsOf[first + peer * step].data))
          total += element;
        roundTo(ranks.precision, type, output);
      }
    }
    if (isa<SliceShardOp, ReduceScatterOp>(op)) {
      int64_t block = (output.shape[*dim] + size - 1) / size;
      output = cutBlock(output, *dim, coordinate * block, block);
    }
    outputs.push_back(std::move(output));
  }
  return bindResult(run, op.getResult(0), std::move(outputs));
}

} // namespace dg::ir
