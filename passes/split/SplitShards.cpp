// SPDX-License-Identifier: Apache-2.0
// Makes every type local to one rank. Where a value lies otherwise than its user needs it, the collective between the
// two shardings is inserted, once for each value and need: so each partial sum is reduced exactly once.
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/partition/Decisions.h"
#include "passes/partition/Sharding.h"

#include <map>

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_SPLITSHARDS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

class Splitter {
public:
  Splitter(GraphOp graph, const plan::Mesh &mesh, int64_t zero) : graph(graph), mesh(mesh), zero(zero) {}

  LogicalResult run() {
    SmallVector<Attribute> types;
    for (BlockArgument argument : graph.getBody().getArguments()) {
      auto type = tensorOf(argument);
      lie[argument] = inputSharding(type, mesh);
      argument.setType(localType(type, lie[argument], mesh));
      types.push_back(TypeAttr::get(argument.getType()));
    }
    graph.setInputTypesAttr(ArrayAttr::get(graph.getContext(), types));
    for (Operation &op : llvm::make_early_inc_range(graph.getBody().front()))
      if (failed(split(&op)))
        return failure();
    return success();
  }

private:
  LogicalResult split(Operation *op) {
    OpShardings shardings = getShardings(op);
    if (shardings.operands.size() != op->getNumOperands() || shardings.results.size() != op->getNumResults())
      return op->emitOpError("has no shardings: run --dg-assign-shardings first");
    for (auto [operand, needed] : llvm::zip_equal(op->getOpOperands(), shardings.operands))
      operand.set(reshard(operand.get(), needed, op));
    SmallVector<Type> types;
    for (auto [result, sharding] : llvm::zip_equal(op->getResults(), shardings.results)) {
      types.push_back(localType(tensorOf(result), sharding, mesh));
      lie[result] = sharding;
    }
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    if (auto ruled = dyn_cast<ShardingRuleOp>(op))
      ruled.localize(types);
    return success();
  }

  Value reshard(Value value, ShardingAttr needed, Operation *user) {
    ShardingAttr present = lie.lookup(value);
    if (present == needed)
      return value;
    Operation *producer = value.getDefiningOp();
    bool isUpdate = getPlace(user).getPhase() == Phase::update;
    Phase reader = readerOf(producer, present, user);
    Value &cached = made[{value, needed, reader}];
    if (cached)
      return cached;

    // The change belongs to the op that made the value, so that it is on its stage; sums over a whole step to the
    // update. Results of inference belong to their micro-batch.
    OpBuilder builder(user);
    PlaceAttr place = withShardings(getPlace(producer ? producer : user), {});
    bool isTotal = isa<ReturnOp>(user) && !present.getPartial().empty() && !isOfMicrobatch(graph, value);
    // Scattered with each micro-batch, a gradient never lies whole from one to the next.
    bool isScatteredAtOnce = zero >= 2 && llvm::any_of(present.getPartial(), [&](StringAttr axis) {
                               return scatteredDim(present, needed, axis) && axis == "data";
                             });
    if ((isUpdate && !isScatteredAtOnce) || isTotal)
      place = withOrigin(place, place.getOrigin(), Phase::update);
    else if (reader == Phase::backward)
      place = withOrigin(place, place.getOrigin(), reader);
    if (isUpdate)
      place = withLabel(place, getPlace(user).getLabel());

    Location location = value.getLoc();
    Value current = value;
    SmallVector<StringAttr> dims(present.getDims());
    for (StringAttr axis : present.getPartial()) {
      if (llvm::is_contained(needed.getPartial(), axis))
        continue;
      if (std::optional<unsigned> dim = scatteredDim(present, needed, axis)) {
        current = builder.create<ReduceScatterOp>(location, scaled(current, *dim, 1, mesh.sizeOf(axis.str())), current,
                                                  axis, builder.getI64IntegerAttr(*dim), place);
        dims[*dim] = axis;
        continue;
      }
      current = builder.create<AllReduceOp>(location, current.getType(), current, axis, place);
    }
    for (auto [dim, axes] : llvm::enumerate(llvm::zip_equal(dims, needed.getDims()))) {
      auto [from, to] = axes;
      if (from != to && !from.empty())
        current = builder.create<AllGatherOp>(location, scaled(current, dim, mesh.sizeOf(from.str()), 1), current, from,
                                              builder.getI64IntegerAttr(dim), place);
    }
    // Only now, when no other dimension is cut over the same axis any more.
    for (auto [dim, axes] : llvm::enumerate(llvm::zip_equal(dims, needed.getDims()))) {
      auto [from, to] = axes;
      if (from != to && !to.empty())
        current = builder.create<SliceShardOp>(location, scaled(current, dim, 1, mesh.sizeOf(to.str())), current, to,
                                               builder.getI64IntegerAttr(dim), place);
    }
    lie[current] = needed;
    return cached = current;
  }

  /// Which phase a value is brought for where each phase brings it for itself, else forward. An update reads its
  /// parameter itself: what a forward op made of it would come once for each micro-batch. What lies cut over data
  /// (ZeRO 3) is gathered again for the backward pass, or it would be kept until then.
  static Phase readerOf(Operation *producer, ShardingAttr present, Operation *user) {
    if (!isa_and_present<ParameterOp>(producer))
      return Phase::forward;
    Phase phase = getPlace(user).getPhase();
    bool isCutByData = llvm::any_of(present.getDims(), [](StringAttr axis) { return axis == "data"; });
    bool isAtHome = getPlace(producer).getStage() == getPlace(user).getStage();
    return phase == Phase::update || (phase == Phase::backward && isCutByData && isAtHome) ? phase : Phase::forward;
  }

  /// The dimension along which a partial sum over `axis` is needed cut over it: each rank then sums its own part only.
  static std::optional<unsigned> scatteredDim(ShardingAttr present, ShardingAttr needed, StringAttr axis) {
    for (auto [dim, axes] : llvm::enumerate(llvm::zip_equal(present.getDims(), needed.getDims())))
      if (std::get<0>(axes).empty() && std::get<1>(axes) == axis)
        return unsigned(dim);
    return std::nullopt;
  }

  static RankedTensorType scaled(Value value, unsigned dim, int64_t times, int64_t by) {
    auto type = tensorOf(value);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = shape[dim] * times / by;
    return RankedTensorType::get(shape, type.getElementType());
  }

  GraphOp graph;
  const plan::Mesh &mesh;
  const int64_t zero;
  llvm::DenseMap<Value, ShardingAttr> lie; ///< how each value lies over the mesh
  struct Need {
    Value value;
    ShardingAttr sharding;
    Phase reader;
    auto key() const { return std::make_tuple(value.getAsOpaquePointer(), sharding.getAsOpaquePointer(), reader); }
    bool operator<(const Need &other) const { return key() < other.key(); }
  };
  std::map<Need, Value> made;
};

struct SplitShardsPass : impl::SplitShardsBase<SplitShardsPass> {
  using SplitShardsBase::SplitShardsBase;

  void runOnOperation() override {
    const plan::Mesh mesh = getMesh(getOperation());
    for (auto graph : getOperation().getOps<GraphOp>())
      if (failed(Splitter(graph, mesh, zero).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace dg::passes
