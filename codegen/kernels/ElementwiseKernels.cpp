// SPDX-License-Identifier: Apache-2.0
// The loops of elementwise ops and of regions of them: one nest over the elements of the result. What an op computes is
// in ElementFunctions.cpp.
#include "codegen/kernels/ElementwiseKernels.h"

#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// Where an operand of the loops is read: broadcast along the columns it is one number for the row.
Value loadOperand(KernelBuilder &k, Value buffer, Value rowOffset, int64_t columnStride, Value column, Lanes lanes) {
  if (columnStride == 0)
    return k.loadSplat(buffer, rowOffset, lanes);
  return k.load(buffer, k.add(rowOffset, column), lanes);
}

/// The loops of an op whose operands broadcast to its results, which all have the same shape.
LogicalResult emitLoops(KernelBuilder &k, Operation *op,
                        llvm::function_ref<FailureOr<SmallVector<Value>>(ValueRange operands)> compute) {
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  SmallVector<SmallVector<int64_t>> strides;
  for (Value operand : op->getOperands())
    strides.push_back(broadcastStrides(shapeOf(operand), shape));
  for (Value result : op->getResults()) {
    if (shapeOf(result) != shape)
      return op->emitOpError() << "has results of the types " << op->getResult(0).getType() << " and "
                               << result.getType() << "; one kernel needs results of one shape";
    strides.push_back(rowMajorStrides(shape));
  }
  LoopNest nest = LoopNest::collapse(shape, strides);
  unsigned numOperands = op->getNumOperands();
  LogicalResult outcome = success();
  loopRowsOfTile(k, nest.rows(), nest.columns(), elementsPerTile, [&](Value row, Value from, Value to) {
    SmallVector<Value> offsets;
    for (unsigned i = 0; i < nest.strides.size(); ++i)
      offsets.push_back(nest.rowOffset(k, i, row));
    k.loopVectors(from, to, nest.columns(), [&](Value column, Lanes lanes) {
      SmallVector<Value> operands;
      for (unsigned i = 0; i < numOperands; ++i)
        operands.push_back(loadOperand(k, k.buffer(i), offsets[i], nest.columnStride(i), column, lanes));
      FailureOr<SmallVector<Value>> results = compute(operands);
      if (failed(results)) {
        outcome = failure();
        return;
      }
      for (auto [i, result] : llvm::enumerate(*results))
        k.store(result, k.buffer(numOperands + i), k.add(offsets[numOperands + i], column), lanes);
    });
  });
  return outcome;
}

LogicalResult emitElementwise(KernelBuilder &k, Operation *op) {
  return emitLoops(k, op, [&](ValueRange operands) -> FailureOr<SmallVector<Value>> {
    return SmallVector<Value>{emitElementFunction(k, op, operands)};
  });
}

LogicalResult emitExpand(KernelBuilder &k, ir::ExpandOp op) {
  return emitLoops(
      k, op, [&](ValueRange operands) -> FailureOr<SmallVector<Value>> { return SmallVector<Value>{operands[0]}; });
}

LogicalResult emitFused(KernelBuilder &k, ir::FusedOp op) {
  return emitLoops(k, op, [&](ValueRange operands) { return emitElementBody(k, op, operands); });
}

void emitAccumulate(KernelBuilder &k, ir::AccumulateOp op) {
  int64_t count = numElements(op->getOperand(0));
  loopRowsOfTile(k, 1, count, elementsPerTile, [&](Value, Value from, Value to) {
    k.loopVectors(from, to, count, [&](Value at, Lanes lanes) {
      k.store(addElements(k, k.load(k.buffer(1), at, lanes), k.load(k.buffer(0), at, lanes)), k.buffer(1), at, lanes);
    });
  });
}
} // namespace

FailureOr<SmallVector<Value>> emitElementBody(KernelBuilder &k, Operation *op, ValueRange operands) {
  Block &body = op->getRegion(0).front();
  DenseMap<Value, Value> values;
  for (auto [argument, operand] : llvm::zip_equal(body.getArguments(), operands))
    values[argument] = operand;
  for (Operation &inner : body) {
    SmallVector<Value> arguments;
    for (Value operand : inner.getOperands())
      arguments.push_back(values.lookup(operand));
    if (isa<ir::ReturnOp>(inner))
      return arguments;
    Value result;
    if (auto constant = dyn_cast<ir::ConstantOp>(inner))
      result = elementConstant(k, cast<RankedTensorType>(constant.getResult().getType()).getElementType(),
                               constant.getValue().convertToDouble(), operands.front());
    else
      result = emitElementFunction(k, &inner, arguments);
    if (!result)
      return inner.emitOpError() << "is in a fused region, but is not computed element by element";
    values[inner.getResult(0)] = result;
  }
  return op->emitOpError() << "has a region without dg.return";
}

void addElementwiseKernels(KernelTable &table) {
  for (StringRef name : elementFunctionNames())
    table[name].emit = emitElementwise;
  table.add(emitExpand);
  table.add(emitFused);
  table.add(emitAccumulate).accumulates = true;
}

} // namespace dg::codegen
