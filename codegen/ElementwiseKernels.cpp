// SPDX-License-Identifier: Apache-2.0
// Elementwise ops, broadcasting, and regions of them: one loop nest over the elements of the result.
#include "codegen/ElementwiseKernels.h"

#include "codegen/ElementArithmetic.h"
#include "codegen/KernelTable.h"
#include "codegen/LoopNest.h"
#include "ir/ElementwiseOps.h"
#include "ir/GraphOps.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using ElementFunction = Value (*)(KernelBuilder &, Operation *, ValueRange);

Type elementTypeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

/// gelu(x) = x · s with s = 1 / (1 + e^-2u), u = √(2/π) (x + 0.044715 x³): the same as the tanh form, without its
/// cancellation.
struct GeluParts {
  Value sigmoid;    ///< s
  Value complement; ///< 1 - s, exact where s is nearly 1
};
GeluParts geluParts(KernelBuilder &k, Value x) {
  constexpr double a = 0.7978845608028654, b = 0.044715; // √(2/π)
  Value square = k.fmul(x, x);
  Value u = k.fmul(x, k.fma(square, k.constant(-2 * a * b, x), k.constant(-2 * a, x)));
  // Beyond this the result is 0 to the last bit, and e^-2u stays finite.
  u = k.select(k.greater(u, k.constant(80, u)), k.constant(80, u), u);
  Value e = k.exp(u);
  Value sigmoid = k.fdiv(k.constant(1, e), k.fadd(k.constant(1, e), e));
  return {sigmoid, k.fmul(e, sigmoid)};
}

Value geluGrad(KernelBuilder &k, Operation *, ValueRange v) {
  constexpr double a = 0.7978845608028654, b = 0.044715;
  Value x = v[1];
  auto [s, t] = geluParts(k, x);
  // d(x·s)/dx = s + x · s · (1-s) · 2u'
  Value slope = k.fma(k.fmul(x, x), k.constant(6 * a * b, x), k.constant(2 * a, x));
  return k.fmul(v[0], k.fma(k.fmul(x, k.fmul(s, t)), slope, s));
}

const llvm::StringMap<ElementFunction> &elementFunctions() {
  static const llvm::StringMap<ElementFunction> functions = {
      {"dg.add", [](KernelBuilder &k, Operation *, ValueRange v) { return addElements(k, v[0], v[1]); }},
      {"dg.sub", [](KernelBuilder &k, Operation *, ValueRange v) { return subElements(k, v[0], v[1]); }},
      {"dg.mul", [](KernelBuilder &k, Operation *, ValueRange v) { return mulElements(k, v[0], v[1]); }},
      {"dg.div", [](KernelBuilder &k, Operation *op,
                    ValueRange v) { return divElements(k, elementTypeOf(op->getOperand(0)), v[0], v[1]); }},
      {"dg.scale", [](KernelBuilder &k, Operation *op,
                      ValueRange v) { return k.scale(v[0], cast<ir::ScaleOp>(op).getFactor().convertToDouble()); }},
      {"dg.relu", [](KernelBuilder &k, Operation *, ValueRange v) { return k.fmax(k.constant(0, v[0]), v[0]); }},
      {"dg.relu_grad",
       [](KernelBuilder &k, Operation *, ValueRange v) {
         Value zero = k.constant(0, v[0]);
         return k.select(k.greater(v[1], zero), v[0], zero);
       }},
      {"dg.gelu", [](KernelBuilder &k, Operation *, ValueRange v) { return k.fmul(v[0], geluParts(k, v[0]).sigmoid); }},
      {"dg.gelu_grad", geluGrad},
      {"dg.expand", [](KernelBuilder &, Operation *, ValueRange v) { return v[0]; }},
  };
  return functions;
}

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

LogicalResult emitFused(KernelBuilder &k, Operation *op) {
  Block &body = op->getRegion(0).front();
  return emitLoops(k, op, [&](ValueRange operands) -> FailureOr<SmallVector<Value>> {
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
        result = elementConstant(k, elementTypeOf(constant.getResult()), constant.getValue().convertToDouble(),
                                 operands.front());
      else
        result = emitElementFunction(k, &inner, arguments);
      if (!result)
        return inner.emitOpError() << "stands in a fused region, but is not computed element by element";
      values[inner.getResult(0)] = result;
    }
    return op->emitOpError() << "has a region without dg.return";
  });
}

LogicalResult emitAccumulate(KernelBuilder &k, Operation *op) {
  int64_t count = numElements(op->getOperand(0));
  loopRowsOfTile(k, 1, count, elementsPerTile, [&](Value, Value from, Value to) {
    k.loopVectors(from, to, count, [&](Value at, Lanes lanes) {
      k.store(addElements(k, k.load(k.buffer(1), at, lanes), k.load(k.buffer(0), at, lanes)), k.buffer(1), at, lanes);
    });
  });
  return success();
}
} // namespace

Value emitElementFunction(KernelBuilder &kernel, Operation *op, ValueRange operands) {
  auto function = elementFunctions().find(op->getName().getStringRef());
  return function == elementFunctions().end() ? Value() : function->second(kernel, op, operands);
}

void addElementwiseKernels(KernelTable &table) {
  for (auto &function : elementFunctions())
    table[function.first()] = {emitElementwise};
  table["dg.fused"] = {emitFused};
  table["dg.accumulate"] = {emitAccumulate, {}, /*accumulates=*/true};
}

} // namespace dg::codegen
