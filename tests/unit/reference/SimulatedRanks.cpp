// SPDX-License-Identifier: Apache-2.0
// What lives longer than a step: the ranks' shards of the parameters, and the results that a step leaves.
#include "tests/unit/reference/SimulatedRanks.h"

#include "ir/ops/structure/GraphOps.h"
#include "tests/unit/reference/SimulatedStep.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- Results ---------------------------------------------------------------------------------------------------===//

std::optional<double> StepResults::total(StringRef name) const {
  std::optional<double> sum;
  for (const Entry &entry : entries)
    if (entry.name == name && entry.ranks[0].data.size() == 1)
      sum = sum.value_or(0) + entry.ranks[0].data[0];
  return sum;
}

std::optional<HostTensor> StepResults::rows(StringRef name, int64_t numSamples, int64_t numMicrobatches,
                                            SimulatedMesh mesh) const {
  std::optional<HostTensor> all;
  for (const Entry &entry : entries) {
    if (entry.name != name || entry.ranks[0].shape.empty())
      continue;
    SampleRange microbatch = partOf({0, numSamples}, numMicrobatches, entry.microbatch);
    for (int64_t data = 0; data < mesh.data; ++data) {
      const HostTensor &local = entry.ranks[data * mesh.tensor];
      if (!all) {
        all = HostTensor{local.shape, {}};
        all->shape[0] = numSamples;
        all->data.resize(all->numElements());
      }
      SampleRange mine = partOf(microbatch, mesh.data, data);
      pasteBlock(*all, cutBlock(local, 0, 0, mine.count), 0, mine.start);
    }
  }
  return all;
}

//===- Parameters ------------------------------------------------------------------------------------------------===//

SimulatedRanks::SimulatedRanks(ModuleOp module, SimulatedMesh mesh, ParameterStore parameters, Precision precision)
    : module(module), mesh(mesh), initial(std::move(parameters)), precision(precision) {}

FailureOr<std::pair<int64_t, int64_t>> SimulatedRanks::coordinate(Operation *op, StringRef axis, int64_t rank) const {
  if (axis == "data")
    return std::make_pair(rank / mesh.tensor, mesh.data);
  if (axis == "tensor")
    return std::make_pair(rank % mesh.tensor, mesh.tensor);
  return op->emitOpError() << "speaks of mesh axis '" << axis << "', expected 'data' or 'tensor'";
}

/// The axes that cut a parameter's dimensions; all "" where nothing is said.
static SmallVector<StringRef> axesOf(ParameterOp op) {
  SmallVector<StringRef> axes(cast<RankedTensorType>(op.getType()).getRank());
  ArrayRef<ShardingAttr> shardings = getPlace(op).getShardings();
  if (!shardings.empty())
    for (auto [axis, dim] : llvm::zip(axes, shardings[0].getDims()))
      axis = dim.getValue();
  return axes;
}

FailureOr<SimulatedRanks::ShardedParameter *> SimulatedRanks::parameterAt(ParameterOp op, int64_t stage) {
  auto [found, isNew] = parameters.try_emplace(op.getParam().str());
  ShardedParameter &parameter = found->second;
  auto local = cast<RankedTensorType>(op.getResult().getType());
  if (!isNew) {
    if (parameter.stage != stage)
      return op.emitOpError() << "'" << op.getParam() << "' is read on stage " << stage << " and on stage "
                              << parameter.stage << ", expected one stage that owns it";
    if (parameter.op.getResult().getType() != local || axesOf(parameter.op) != axesOf(op))
      return op.emitOpError() << "'" << op.getParam() << "' lies over the mesh in two ways, as " << local << " and as "
                              << parameter.op.getResult().getType() << ", expected one";
    return &parameter;
  }
  parameter = {op, stage, {}};
  FailureOr<const HostTensor *> whole = initial.get(op);
  if (failed(whole))
    return failure();
  for (int64_t rank = 0; rank < numRanks(); ++rank) {
    HostTensor shard = **whole;
    for (auto [dim, axis] : llvm::enumerate(axesOf(op))) {
      if (axis.empty())
        continue;
      auto at = coordinate(op, axis, rank);
      if (failed(at))
        return failure();
      shard = cutBlock(shard, dim, at->first * local.getDimSize(dim), local.getDimSize(dim));
    }
    if (ArrayRef<int64_t>(shard.shape) != local.getShape())
      return op.emitOpError() << "'" << op.getParam() << "' has the local type " << local
                              << ", expected its declared type " << op.getType() << " cut as its sharding says";
    roundTo(precision, local, shard);
    parameter.ranks.push_back(std::move(shard));
  }
  return &parameter;
}

FailureOr<TensorMap> SimulatedRanks::gatherParameters() {
  TensorMap all;
  for (auto &[name, parameter] : parameters) {
    HostTensor whole = zerosOf(cast<RankedTensorType>(parameter.op.getType()));
    SmallVector<StringRef> axes = axesOf(parameter.op);
    // Each rank's shard is grown to the whole tensor one dimension at a time, and later ranks must agree with earlier
    // ones.
    std::vector<bool> isWritten(whole.data.size(), false);
    for (int64_t rank = 0; rank < numRanks(); ++rank) {
      HostTensor grown = parameter.ranks[rank], mask = grown;
      std::fill(mask.data.begin(), mask.data.end(), 1.0);
      for (auto [dim, axis] : llvm::enumerate(axes)) {
        if (axis.empty())
          continue;
        auto at = coordinate(parameter.op, axis, rank);
        if (failed(at))
          return failure();
        int64_t start = at->first * grown.shape[dim];
        for (HostTensor *tensor : {&grown, &mask}) {
          HostTensor wider{tensor->shape, {}};
          wider.shape[dim] = whole.shape[dim];
          wider.data.resize(wider.numElements());
          pasteBlock(wider, *tensor, dim, start);
          *tensor = std::move(wider);
        }
      }
      for (size_t i = 0; i < whole.data.size(); ++i) {
        if (mask.data[i] == 0)
          continue;
        bool agrees = whole.data[i] == grown.data[i] || (std::isnan(whole.data[i]) && std::isnan(grown.data[i]));
        if (isWritten[i] && !agrees)
          return parameter.op.emitOpError() << "'" << name << "' has element " << i << " = " << grown.data[i]
                                            << " on rank " << rank << " of stage " << parameter.stage << " and "
                                            << whole.data[i] << " on an earlier one, expected equal copies";
        whole.data[i] = grown.data[i];
        isWritten[i] = true;
      }
    }
    all[name] = std::move(whole);
  }
  return all;
}

FailureOr<StepResults> SimulatedRanks::run(StringRef program, const TensorMap &inputs, int64_t numMicrobatches,
                                           const RunScalars &scalars) {
  return SimulatedStep(*this, inputs, numMicrobatches, scalars).run(program);
}

} // namespace dg::ir
