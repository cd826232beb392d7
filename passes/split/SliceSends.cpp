// SPDX-License-Identifier: Apache-2.0
// Values that are whole on every tensor rank cross to another stage in parts, one from each rank, and are gathered
// there, where the links between stages are so much slower than those between tensor ranks that this is faster
// (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", 2021, section 4.1).
#include "passes/split/SliceSends.h"
#include "ir/ops/structure/CommunicationOps.h"
#include "partitioner/model/CostModel.h"
#include "partitioner/schedule/Schedule.h"
#include "passes/partition/Decisions.h"
#include "passes/partition/Sharding.h"
#include "passes/split/ValueMemory.h"

#include <map>

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_SLICESENDS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Whether each tensor rank has the same value. Collectives say by themselves what they make of their operand.
bool isWhole(Value value) {
  const auto tensor = StringAttr::get(value.getContext(), "tensor");
  Operation *producer = value.getDefiningOp();
  if (!producer)
    return true; // an input
  const auto axis = producer->getAttrOfType<StringAttr>("axis");
  if (isa<AllReduceOp, AllGatherOp>(producer))
    return axis == tensor || isWhole(producer->getOperand(0));
  if (isa<ReduceScatterOp, SliceShardOp>(producer))
    return axis != tensor && isWhole(producer->getOperand(0));
  ArrayRef<ShardingAttr> results = getShardings(producer).results;
  if (results.empty())
    return false;
  ShardingAttr own = results[cast<OpResult>(value).getResultNumber()];
  return !llvm::is_contained(own.getDims(), tensor) && !llvm::is_contained(own.getPartial(), tensor);
}

struct SliceSendsPass : impl::SliceSendsBase<SliceSendsPass> {
  using SliceSendsBase::SliceSendsBase;
  SliceSendsPass(SliceSendsOptions options, std::optional<partitioner::Cluster> cluster)
      : SliceSendsBase(std::move(options)), given(std::move(cluster)) {}

  void runOnOperation() override {
    const plan::Mesh mesh = getMesh(getOperation());
    tensor = mesh.sizeOf(plan::Axis::tensor);
    if (tensor == 1 || mesh.sizeOf(plan::Axis::pipe) == 1)
      return;
    ranksPerStage = mesh.numRanks() / mesh.sizeOf(plan::Axis::pipe);
    Result<partitioner::Cluster> machines = partitioner::hostCluster(uint32_t(mesh.numRanks()));
    if (given || !cluster.empty())
      machines = given ? std::move(*given) : partitioner::findCluster(cluster);
    if (!machines) {
      getOperation().emitError() << machines.status().message();
      return signalPassFailure();
    }
    const partitioner::CostModel costs(std::move(*machines));
    for (auto graph : getOperation().getOps<GraphOp>())
      for (Operation &op : llvm::make_early_inc_range(graph.getBody().front()))
        if (!isa<ReturnOp>(op) && !isMemoryOfTheJob(&op))
          for (Value result : op.getResults())
            sliceSends(result, costs);
  }

private:
  /// A part of the model, and the phase in which a value of another comes to it.
  using Landing = std::pair<int64_t, Phase>;

  void sliceSends(Value value, const partitioner::CostModel &costs) {
    const PlaceAttr place = getPlace(value.getDefiningOp());
    std::map<Landing, SmallVector<OpOperand *>> landings;
    for (OpOperand &use : value.getUses()) {
      const PlaceAttr there = getPlace(use.getOwner());
      if (isa<ReturnOp>(use.getOwner()) || there.getPhase() == Phase::update || place.getPhase() == Phase::update ||
          stageOf(there) == stageOf(place))
        continue;
      // As SplitStages: down the pipeline in the phase that makes it, so that later phases find it saved.
      landings[{there.getStage(), place.getStage() < there.getStage() ? place.getPhase() : there.getPhase()}].push_back(
          &use);
    }
    const auto type = tensorOf(value);
    const auto *cut = llvm::find_if(type.getShape(), [&](int64_t size) { return size % tensor == 0; });
    if (landings.empty() || cut == type.getShape().end() || !isWhole(value))
      return;
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    const auto axis = builder.getStringAttr("tensor");
    const auto dim = builder.getI64IntegerAttr(cut - type.getShape().begin());
    Value part;
    for (auto &[landing, uses] : landings) {
      const PlaceAttr there =
          withOrigin(withStage(withShardings(place, {}), landing.first), place.getOrigin(), landing.second);
      const double bytes = double(bytesOf(value));
      const auto &link = costs.linkBetweenStages(stageOf(place), stageOf(there), ranksPerStage);
      if (!costs.isSentInParts(bytes, link, costs.neighbours(uint32_t(tensor))))
        continue;
      if (!part) {
        SmallVector<int64_t> shape(type.getShape());
        shape[size_t(dim.getInt())] /= tensor;
        part = builder.create<SliceShardOp>(value.getLoc(), RankedTensorType::get(shape, type.getElementType()), value,
                                            axis, dim, withShardings(place, {}));
      }
      Value whole = builder.create<AllGatherOp>(value.getLoc(), type, part, axis, dim, there);
      for (OpOperand *use : uses)
        use->set(whole);
    }
  }

  /// Until SplitStages `stage` counts parts.
  uint32_t stageOf(PlaceAttr place) const {
    return stages == 0 ? uint32_t(place.getStage())
                       : partitioner::stageOfChunk(uint32_t(place.getStage()), uint32_t(stages), folded);
  }

  std::optional<partitioner::Cluster> given;
  int64_t tensor = 1, ranksPerStage = 1;
};

} // namespace

std::unique_ptr<Pass> createSliceSends(SliceSendsOptions options, std::optional<partitioner::Cluster> cluster) {
  return std::make_unique<SliceSendsPass>(std::move(options), std::move(cluster));
}

} // namespace dg::passes
