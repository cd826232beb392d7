// SPDX-License-Identifier: Apache-2.0
// Lets a convolution with blocked channels compute what follows it (batch norm, residual, relu) on the sums that it
// still holds in registers, and leave the zeros around its result that the next convolution wants as padding.
// Pattern of BlockedConvOp, PadConstantOp: what a blocked convolution takes in.
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/product/BlockedOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_FUSECONVOLUTION
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// The only user of a value, however often it reads it.
Operation *onlyUser(Value value) {
  if (value.use_empty())
    return nullptr;
  Operation *first = *value.getUsers().begin();
  return llvm::all_of(value.getUsers(), [&](Operation *user) { return user == first; }) ? first : nullptr;
}

/// A copy of the convolution at `user`, with more operands, another type or frame; the region is still empty.
BlockedConvOp copyAt(Operation *user, BlockedConvOp conv, Type type, ValueRange extras, ArrayRef<int64_t> frame) {
  OpBuilder builder(user);
  auto copy = builder.create<BlockedConvOp>(conv.getLoc(), type, conv.getInput(), conv.getWeight(), extras,
                                            conv.getStrides(), frame, getPlace(conv));
  copy.getBody().emplaceBlock();
  return copy;
}

/// Takes an elementwise op on the result into the region; null where `user` is none.
BlockedConvOp absorbElementwise(BlockedConvOp conv, Operation *user) {
  auto type = conv.getType();
  if (!isa<ElementwiseOp>(user) || user->getResult(0).getType() != type || conv.getSumsType() != type)
    return nullptr;
  // Numbers live in the region; everything else is read.
  SetVector<Value> extras(conv.getExtras().begin(), conv.getExtras().end()), numbers;
  for (Value operand : user->getOperands()) {
    if (operand == conv.getResult())
      continue;
    bool isNumber = operand.getDefiningOp<ConstantOp>() && tensorOf(operand).getNumElements() == 1;
    (isNumber ? numbers : extras).insert(operand);
  }
  BlockedConvOp fused = copyAt(user, conv, type, extras.getArrayRef(), conv.getFrame());
  Block &from = conv.getBody().front(), &body = fused.getBody().front();
  IRMapping inside, outside;
  inside.map(from.getArgument(0), body.addArgument(from.getArgument(0).getType(), conv.getLoc()));
  for (Value extra : extras)
    outside.map(extra, body.addArgument(extra.getType(), extra.getLoc()));
  for (auto [argument, extra] : llvm::zip_equal(from.getArguments().drop_front(), conv.getExtras()))
    inside.map(argument, outside.lookup(extra));
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  for (Operation &op : from.without_terminator())
    builder.clone(op, inside);
  outside.map(conv.getResult(), inside.lookup(from.back().getOperand(0)));
  for (Value number : numbers)
    builder.clone(*number.getDefiningOp(), outside);
  Value result = builder.clone(*user, outside)->getResult(0);
  create<ReturnOp>(builder, user->getLoc(), ValueRange{result}, ArrayAttr());
  return fused;
}

/// Takes a border of zeros around the images into the result; null where `user` is none.
BlockedConvOp absorbPadding(BlockedConvOp conv, Operation *user) {
  auto pad = dyn_cast<PadConstantOp>(user);
  if (!pad || pad.getFill() || pad.getLow() != pad.getHigh() || conv.getSumsType() != conv.getType() ||
      (pad.getInterior() && llvm::any_of(*pad.getInterior(), [](int64_t size) { return size != 0; })))
    return nullptr;
  ArrayRef<int64_t> low = pad.getLow();
  if (low[0] || low[1] || low[4])
    return nullptr;
  BlockedConvOp framed = copyAt(user, conv, pad.getType(), conv.getExtras(), {low[2], low[3]});
  framed.getBody().takeBody(conv.getBody());
  return framed;
}

struct FuseConvolutionPass : impl::FuseConvolutionBase<FuseConvolutionPass> {
  void runOnOperation() override {
    SmallVector<BlockedConvOp> worklist;
    getOperation().walk([&](BlockedConvOp conv) { worklist.push_back(conv); });
    for (size_t next = 0; next < worklist.size(); ++next) {
      BlockedConvOp conv = worklist[next];
      Operation *user = onlyUser(conv.getResult());
      if (!user)
        continue;
      BlockedConvOp fused = absorbElementwise(conv, user);
      if (!fused)
        fused = absorbPadding(conv, user);
      if (!fused)
        continue;
      user->replaceAllUsesWith(fused);
      user->erase();
      conv.erase();
      // At once, so that the first of two convolutions that are added up takes the sum.
      worklist[next--] = fused;
    }
  }
};

} // namespace
} // namespace dg::passes
