// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: elementwise in all their operands, with the learning rate and the number of the step from the run.
#include "ir/OptimizerOps.h"
#include "ir/ShardingRules.h"
#include "ir/TypeInference.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

template <typename Op>
static LogicalResult inferStep(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                               unsigned numResults, SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, operands, numResults, inferred))
    return success();
  for (Value operand : operands.drop_front())
    if (operand.getType() != operands[0].getType())
      return reject<Op>(location, "has parameter ", operands[0].getType(), " and operand ", operand.getType(),
                        ", expected gradient and state of the parameter's type");
  inferred.assign(numResults, operands[0].getType());
  return success();
}

//===- SgdOp -----------------------------------------------------------------------------------------------------===//

LogicalResult SgdOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                      SmallVectorImpl<Type> &inferred) {
  return inferStep<SgdOp>(context, location, op.getOperands(), 1, inferred);
}

ShardingRule SgdOp::getShardingRule() { return broadcastRule(*this); }

LogicalResult SgdOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                              const RunScalars &scalars) {
  double decay = getWeightDecay().convertToDouble();
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i];
    results[0].data[i] = param - scalars.lr * (operands[1].data[i] + decay * param);
  }
  return success();
}

//===- MomentumOp ------------------------------------------------------------------------------------------------===//

LogicalResult MomentumOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                           SmallVectorImpl<Type> &inferred) {
  return inferStep<MomentumOp>(context, location, op.getOperands(), 2, inferred);
}

ShardingRule MomentumOp::getShardingRule() { return broadcastRule(*this); }

LogicalResult MomentumOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const RunScalars &scalars) {
  double decay = getWeightDecay().convertToDouble(), momentum = getMomentum().convertToDouble();
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i];
    double grad = operands[1].data[i] + decay * param;
    double velocity = momentum * operands[2].data[i] + grad;
    results[0].data[i] = param - scalars.lr * (getNesterov() ? grad + momentum * velocity : velocity);
    results[1].data[i] = velocity;
  }
  return success();
}

//===- AdamOp ----------------------------------------------------------------------------------------------------===//

LogicalResult AdamOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                       SmallVectorImpl<Type> &inferred) {
  return inferStep<AdamOp>(context, location, op.getOperands(), 3, inferred);
}

ShardingRule AdamOp::getShardingRule() { return broadcastRule(*this); }

LogicalResult AdamOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                               const RunScalars &scalars) {
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  double epsilon = getEpsilon().convertToDouble(), decay = getWeightDecay().convertToDouble();
  double step = double(scalars.step);
  double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i], grad = operands[1].data[i];
    if (getDecoupled())
      param *= 1 - scalars.lr * decay;
    else
      grad += decay * param;
    double first = beta1 * operands[2].data[i] + (1 - beta1) * grad;
    double second = beta2 * operands[3].data[i] + (1 - beta2) * grad * grad;
    results[0].data[i] =
        param - scalars.lr / correction1 * first / (std::sqrt(second) / std::sqrt(correction2) + epsilon);
    results[1].data[i] = first;
    results[2].data[i] = second;
  }
  return success();
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addOptimizerOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/OptimizerOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/OptimizerOps.cpp.inc"
