// SPDX-License-Identifier: Apache-2.0
// Lets the channels of images lie in blocks of 16 through a whole chunk: [n, c, h, w] becomes [n, c / 16, h, w, 16]. A
// block is a vector for every kernel, and a convolution needs no copy of its input. Layouts change only where a value
// enters or leaves the part of the graph that knows blocks: convolutions, pools, elementwise ops, sums over places.
// Pattern of Conv2dOp, MaxPoolOp, MaxPool2dOp, AvgPoolOp, ReduceSumOp, BlockedConvOp: they have kernels for blocks.
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/product/BlockedOps.h"
#include "ir/ops/product/ConvolutionOps.h"
#include "ir/ops/reduction/PoolingOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_BLOCKCHANNELS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

constexpr int64_t blockSize = BlockedConvOp::blockSize;

/// What the layout of one graph becomes.
class GraphLayout {
public:
  explicit GraphLayout(GraphOp graph) : graph(graph), builder(graph.getContext()) {}

  void run() {
    for (Operation &op : llvm::make_early_inc_range(graph.getBody().front())) {
      builder.setInsertionPoint(&op);
      location = op.getLoc();
      PlaceAttr present = getPlace(&op);
      // Shardings speak of dimensions that are no more.
      place = PlaceAttr::get(op.getContext(), present.getLabel(), present.getOrigin(), present.getPhase(),
                             present.getStage(), {});
      if (Value result = blockedResult(&op)) {
        blocked[op.getResult(0)] = result;
        replaced.push_back(&op);
      } else if (Value sum = sumOverPlaces(&op)) {
        op.getResult(0).replaceAllUsesWith(sum);
        replaced.push_back(&op);
      }
    }
    llvm::SmallPtrSet<Operation *, 32> gone(replaced.begin(), replaced.end());
    for (Operation *op : replaced) {
      Value plain;
      for (OpOperand &use : llvm::make_early_inc_range(op->getResult(0).getUses()))
        if (!gone.contains(use.getOwner())) {
          plain = plain ? plain : plainForm(op);
          use.set(plain);
        }
    }
    for (Operation *op : llvm::reverse(replaced))
      op->erase();
  }

private:
  static bool isImage(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 4 && type.hasStaticShape() && type.getNumElements() > 0;
  }
  static bool hasBlocks(Value value) { return isImage(value) && tensorOf(value).getDimSize(1) % blockSize == 0; }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    if (tensorOf(value).getShape() == shape)
      return value;
    return builder.create<ReshapeOp>(location, value, shape, place);
  }
  Value transpose(Value value, ArrayRef<int64_t> permutation) {
    return builder.create<TransposeOp>(location, value, permutation, place);
  }

  /// An image whose channels are cut into blocks.
  Value blockedForm(Value value) {
    if (Value known = blocked.lookup(value))
      return known;
    ArrayRef<int64_t> s = tensorOf(value).getShape();
    Value cut = reshape(value, {s[0], s[1] / blockSize, blockSize, s[2], s[3]});
    if (s[2] * s[3] == 1)
      return reshape(cut, {s[0], s[1] / blockSize, 1, 1, blockSize});
    return blocked[value] = transpose(cut, {0, 1, 3, 4, 2});
  }

  /// The result of a replaced op as its other users know it, computed once, behind the op that makes it.
  Value plainForm(Operation *op) {
    Value value = blocked.lookup(op->getResult(0));
    builder.setInsertionPointAfterValue(value);
    location = op->getLoc();
    place = getPlace(value.getDefiningOp());
    return reshape(transpose(value, {0, 1, 4, 2, 3}), tensorOf(op->getResult(0)).getShape());
  }

  Value blockedResult(Operation *op) {
    if (auto conv = dyn_cast<Conv2dOp>(op))
      return blockedConv(conv);
    if (auto pool = dyn_cast<MaxPoolOp>(op))
      return blockedPool(pool, pool.getPadding(), pool.getDilation(), [&](auto... attributes) {
        return builder.create<MaxPoolOp>(location, attributes..., pool.getCeil(), place);
      });
    if (auto pool = dyn_cast<MaxPool2dOp>(op))
      return blockedPool(pool, {}, {}, [&](auto... attributes) {
        return builder.create<MaxPoolOp>(location, attributes..., /*ceil=*/false, place);
      });
    if (auto pool = dyn_cast<AvgPoolOp>(op))
      return blockedPool(pool, pool.getPadding(), pool.getDilation(), [&](auto... attributes) {
        return builder.create<AvgPoolOp>(location, attributes..., pool.getCeil(), pool.getCountIncludePad(),
                                         pool.getSum(), place);
      });
    if (isa<ElementwiseOp>(op))
      return blockedElementwise(op);
    return {};
  }

  Value blockedConv(Conv2dOp conv) {
    if (conv.getBias() || !isImage(conv.getInput()) || !hasBlocks(conv.getResult()) ||
        !tensorOf(conv.getInput()).getElementType().isF32())
      return {};
    ArrayRef<int64_t> weight = tensorOf(conv.getWeight()).getShape();
    int64_t outputs = weight[0], channels = weight[1];
    bool isPlain = channels < blockSize;
    if (!isPlain && channels % blockSize != 0)
      return {};
    Value input = isPlain ? conv.getInput() : blockedForm(conv.getInput());
    if (ArrayRef<int64_t> padding = conv.getPadding(); padding[0] || padding[1]) {
      SmallVector<int64_t> border(isPlain ? 4 : 5);
      border[2] = padding[0], border[3] = padding[1];
      input = builder.create<PadConstantOp>(location, input, Value(), border, border, DenseI64ArrayAttr(), place);
    }
    Value packed;
    if (isPlain)
      packed = transpose(reshape(conv.getWeight(), {outputs / blockSize, blockSize, channels, weight[2], weight[3]}),
                         {0, 2, 3, 4, 1});
    else
      packed = transpose(reshape(conv.getWeight(), {outputs / blockSize, blockSize, channels / blockSize, blockSize,
                                                    weight[2], weight[3]}),
                         {0, 2, 4, 5, 3, 1});
    auto sums = BlockedConvOp::sumsTypeOf(tensorOf(input), tensorOf(packed), conv.getStrides());
    auto result = builder.create<BlockedConvOp>(location, sums, input, packed, ValueRange(), conv.getStrides(),
                                                ArrayRef<int64_t>{0, 0}, place);
    Block &body = result.getBody().emplaceBlock();
    Value argument = body.addArgument(sums, location);
    OpBuilder::atBlockEnd(&body).create<ReturnOp>(location, ValueRange{argument}, ArrayAttr(), PlaceAttr());
    return result.getResult();
  }

  /// Pools of images with blocks are pools over one dimension more, with windows of one element.
  template <typename Op, typename Create>
  Value blockedPool(Op pool, ArrayRef<int64_t> padding, ArrayRef<int64_t> dilation, Create create) {
    Value input = blocked.lookup(pool.getInput());
    if (!input || pool.getKernel().size() != 2 || !isImage(pool.getResult()))
      return {};
    auto with = [](ArrayRef<int64_t> sizes, int64_t last) {
      SmallVector<int64_t> more(sizes);
      more.push_back(last);
      return more;
    };
    SmallVector<int64_t> borders;
    if (padding.size() == 2)
      borders = with(padding, 0);
    else if (padding.size() == 4)
      borders = {padding[0], padding[1], 0, padding[2], padding[3], 0};
    DenseI64ArrayAttr strides;
    if (pool.getStridesAttr())
      strides = builder.getDenseI64ArrayAttr(with(*pool.getStrides(), 1));
    return create(input, builder.getDenseI64ArrayAttr(with(pool.getKernel(), 1)), strides,
                  builder.getDenseI64ArrayAttr(borders),
                  builder.getDenseI64ArrayAttr(dilation.empty() ? SmallVector<int64_t>() : with(dilation, 1)))
        .getResult();
  }

  /// An elementwise op on images of which one has blocks already; the others follow.
  Value blockedElementwise(Operation *op) {
    Value result = op->getResult(0);
    if (!hasBlocks(result) || llvm::none_of(op->getOperands(), [&](Value operand) {
          return blocked.contains(operand) && tensorOf(operand).getShape() == tensorOf(result).getShape();
        }))
      return {};
    IRMapping mapping;
    for (Value operand : op->getOperands()) {
      auto type = tensorOf(operand);
      if (type.getNumElements() == 1 && type.getRank() <= 4)
        continue;
      SmallVector<int64_t> shape(4 - type.getRank(), 1);
      llvm::append_range(shape, type.getShape());
      Value image = type.getRank() == 4 ? operand : reshape(operand, shape);
      mapping.map(operand, shape[1] == 1 ? reshape(image, {shape[0], 1, shape[2], shape[3], 1}) : blockedForm(image));
    }
    Operation *copy = builder.clone(*op, mapping);
    setPlace(copy, place);
    ArrayRef<int64_t> s = tensorOf(result).getShape();
    copy->getResult(0).setType(
        RankedTensorType::get({s[0], s[1] / blockSize, s[2], s[3], blockSize}, tensorOf(result).getElementType()));
    return copy->getResult(0);
  }

  /// A sum over all places leaves one number for each channel, in order.
  Value sumOverPlaces(Operation *op) {
    auto sum = dyn_cast<ReduceSumOp>(op);
    Value input = sum ? blocked.lookup(sum.getInput()) : Value();
    const int64_t places[] = {2, 3};
    if (!input || sum.getDims() != ArrayRef(places))
      return {};
    Value sums = builder.create<ReduceSumOp>(location, input, places, /*keep=*/false, place);
    return reshape(sums, tensorOf(sum.getResult()).getShape());
  }

  GraphOp graph;
  OpBuilder builder;
  Location location = UnknownLoc::get(builder.getContext());
  PlaceAttr place;
  DenseMap<Value, Value> blocked; ///< from [n, c, h, w] to the value with blocks
  SmallVector<Operation *> replaced;
};

struct BlockChannelsPass : impl::BlockChannelsBase<BlockChannelsPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      if (graph.getProgram() == "infer")
        GraphLayout(graph).run();
  }
};

} // namespace
} // namespace dg::passes
