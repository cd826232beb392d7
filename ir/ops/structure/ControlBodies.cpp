// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/structure/ControlBodies.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/rules/PartsGradient.h"
#include "ir/rules/TypeDeduction.h"
#include "ir/rules/TypeInference.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dg::ir {

ReturnOp returnOf(Region &body) { return cast<ReturnOp>(body.front().back()); }

LogicalResult deduceBody(Region &body, ArrayRef<Type> arguments) {
  for (auto [argument, type] : llvm::zip_equal(body.getArguments(), arguments))
    argument.setType(type);
  for (Operation &op : body.front()) {
    if (!isa<ReturnOp, InferTypeOpInterface>(op))
      return op.emitOpError("is in a graph inside another, expected an op that computes; pass it in as an operand");
    if (failed(deduceResults(&op)))
      return failure();
  }
  return success();
}

FailureOr<SmallVector<HostTensor>> evaluateBody(Region &body, ArrayRef<HostTensor> arguments,
                                                const RunScalars &scalars) {
  llvm::DenseMap<Value, HostTensor> values;
  for (auto [argument, tensor] : llvm::zip_equal(body.getArguments(), arguments))
    values[argument] = tensor;
  for (Operation &op : body.front()) {
    SmallVector<HostTensor> inputs, outputs;
    for (Value operand : op.getOperands())
      inputs.push_back(values.lookup(operand));
    if (isa<ReturnOp>(op))
      return inputs;
    for (Value result : op.getResults()) {
      HostTensor output{tensorOf(result).getShape().vec(), {}};
      output.data.resize(output.numElements());
      outputs.push_back(std::move(output));
    }
    if (failed(cast<ReferenceOp>(op).evaluate(inputs, outputs, scalars)))
      return failure();
    for (auto [result, output] : llvm::zip_equal(op.getResults(), outputs)) {
      wrapIntegers(tensorOf(result), output);
      values[result] = std::move(output);
    }
  }
  return failure();
}

OpCost bodyCost(Region &body, double times) {
  OpCost total;
  for (Operation &op : body.front())
    if (auto costed = dyn_cast<CostOp>(op)) {
      OpCost cost = costed.getCost();
      total.flops += times * cost.flops;
      total.bytes += times * cost.bytes;
    }
  return total;
}

FailureOr<SmallVector<Value>> differentiateBody(OpBuilder &builder, ValueRange arguments, ArrayRef<Operation *> ops,
                                                ValueRange returned, ArrayRef<Value> grads) {
  llvm::DenseMap<Value, Value> sums;
  auto add = [&](Value value, Value grad) {
    Value &sum = sums[value];
    sum = sum ? Value(create<AddOp>(builder, value.getLoc(), sum, grad)) : grad;
  };
  for (auto [value, grad] : llvm::zip_equal(returned, grads))
    if (grad)
      add(value, grad);
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Value> outputGrads;
    for (Value result : op->getResults())
      outputGrads.push_back(sums.lookup(result));
    if (llvm::none_of(outputGrads, [](Value grad) { return bool(grad); }) || op->getNumOperands() == 0)
      continue;
    auto differentiable = dyn_cast<GradientOp>(op);
    if (!differentiable)
      return op->emitOpError("has no gradient, but is between the loss and what is trained");
    FailureOr<SmallVector<Value>> operandGrads = differentiable.buildGradients(builder, outputGrads);
    if (failed(operandGrads))
      return failure();
    for (auto [operand, grad] : llvm::zip_equal(op->getOperands(), *operandGrads))
      if (grad)
        add(operand, grad);
  }
  SmallVector<Value> result;
  for (Value argument : arguments)
    result.push_back(sums.lookup(argument));
  return result;
}

bool isReal(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

SmallVector<Value> cloneBody(OpBuilder &builder, Region &body, ValueRange arguments,
                             SmallVectorImpl<Operation *> &ops) {
  IRMapping mapping;
  mapping.map(body.getArguments(), arguments);
  for (Operation &op : body.front().without_terminator())
    ops.push_back(builder.clone(op, mapping));
  SmallVector<Value> returned;
  for (Value value : returnOf(body).getOperands())
    returned.push_back(mapping.lookup(value));
  return returned;
}

FailureOr<SmallVector<Value>> differentiateParts(OpBuilder &builder, Operation *op, ValueRange grads,
                                                 llvm::function_ref<SmallVector<Value>(OpBuilder &)> build) {
  // Ops are told by where they stand: behind what was before the builder's place.
  Operation *before =
      builder.getInsertionPoint() == builder.getBlock()->begin() ? nullptr : &*std::prev(builder.getInsertionPoint());
  SmallVector<Value> results = build(builder);
  SmallVector<Operation *> ops;
  Block *block = builder.getBlock();
  for (auto at = before ? std::next(Block::iterator(before)) : block->begin(); at != builder.getInsertionPoint(); ++at)
    ops.push_back(&*at);
  return differentiateBody(builder, op->getOperands(), ops, results, llvm::to_vector(grads));
}

} // namespace dg::ir
