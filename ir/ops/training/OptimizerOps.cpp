// SPDX-License-Identifier: Apache-2.0
// Optimizer steps: elementwise in all their operands, with the learning rate and the number of the step from the run.
#include "ir/ops/training/OptimizerOps.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

/// The type of the parameter, which gradient and state have too. `guard` may be null; else it is the last operand.
static FailureOr<Type> inferStep(const Rejection &reject, ValueRange operands, Value guard) {
  if (guard && (tensorOf(guard).getRank() != 0 || !tensorOf(guard).getElementType().isF32()))
    return reject("has the guard ", guard.getType(), ", expected an f32 scalar");
  for (Value operand : (guard ? operands.drop_back() : operands).drop_front())
    if (operand.getType() != operands[0].getType())
      return reject("has parameter ", operands[0].getType(), " and operand ", operand.getType(),
                    ", expected gradient and state of the parameter's type");
  return operands[0].getType();
}

/// The learning rate of the op's parameter.
template <typename Op> static double rateOf(Op op, const RunScalars &scalars) {
  std::optional<APFloat> factor = op.getLrFactor();
  return factor ? scalars.lr * factor->convertToDouble() : scalars.lr;
}

/// A step whose results, the new parameter and `numResults` - 1 states, have that type.
#define DG_STEP(Op, numResults)                                                                                        \
  FailureOr<SmallVector<Type>> Op::inferTypes(Adaptor op, const Rejection &reject) {                                   \
    FailureOr<Type> type = inferStep(reject, op.getOperands(), op.getGuard());                                         \
    if (failed(type))                                                                                                  \
      return failure();                                                                                                \
    return SmallVector<Type>(numResults, *type);                                                                       \
  }
DG_STEP(MomentumOp, 2)
DG_STEP(AdamOp, 3)
DG_STEP(AdagradOp, 2)
DG_STEP(RmspropOp, 3)
DG_STEP(LionOp, 2)
DG_STEP(LambDirectionOp, 3)
#undef DG_STEP

/// Whether the guard asks for a step that changes nothing; the results then are the operands that they replace.
static bool isSkipped(Value guard, HostOperands operands, HostResults results, ArrayRef<int> replaced) {
  if (!guard || !std::isnan(operands.back().data[0]))
    return false;
  for (auto [result, operand] : llvm::zip_equal(results, replaced))
    if (operand >= 0)
      result.data = operands[operand].data;
  return true;
}

/// The number of this step among those that were not skipped.
static double stepOf(Value guard, HostOperands operands, const RunScalars &scalars) {
  return double(scalars.step) - (guard ? std::trunc(operands.back().data[0]) : 0);
}

//===- SgdOp -----------------------------------------------------------------------------------------------------===//

FailureOr<Type> SgdOp::inferType(Adaptor op, const Rejection &reject) {
  return inferStep(reject, op.getOperands(), op.getGuard());
}

LogicalResult SgdOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {0}))
    return success();
  double decay = getWeightDecay().convertToDouble();
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i];
    results[0].data[i] = param - rateOf(*this, scalars) * (operands[1].data[i] + decay * param);
  }
  return success();
}

//===- MomentumOp ------------------------------------------------------------------------------------------------===//

LogicalResult MomentumOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {0, 2}))
    return success();
  double decay = getWeightDecay().convertToDouble(), momentum = getMomentum().convertToDouble();
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i];
    double grad = operands[1].data[i] + decay * param;
    double velocity = momentum * operands[2].data[i] + grad;
    results[0].data[i] = param - rateOf(*this, scalars) * (getNesterov() ? grad + momentum * velocity : velocity);
    results[1].data[i] = velocity;
  }
  return success();
}

//===- AdamOp ----------------------------------------------------------------------------------------------------===//

LogicalResult AdamOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {0, 2, 3}))
    return success();
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  double epsilon = getEpsilon().convertToDouble(), decay = getWeightDecay().convertToDouble();
  double step = stepOf(getGuard(), operands, scalars);
  double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i], grad = operands[1].data[i];
    if (getDecoupled())
      param *= 1 - rateOf(*this, scalars) * decay;
    else
      grad += decay * param;
    double first = beta1 * operands[2].data[i] + (1 - beta1) * grad;
    double second = beta2 * operands[3].data[i] + (1 - beta2) * grad * grad;
    results[0].data[i] =
        param - rateOf(*this, scalars) / correction1 * first / (std::sqrt(second) / std::sqrt(correction2) + epsilon);
    results[1].data[i] = first;
    results[2].data[i] = second;
  }
  return success();
}

//===- AdagradOp -------------------------------------------------------------------------------------------------===//

LogicalResult AdagradOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {0, 2}))
    return success();
  double decay = getWeightDecay().convertToDouble(), epsilon = getEpsilon().convertToDouble();
  double rate =
      rateOf(*this, scalars) / (1 + (stepOf(getGuard(), operands, scalars) - 1) * getLrDecay().convertToDouble());
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i], grad = operands[1].data[i] + decay * param;
    double sum = results[1].data[i] = operands[2].data[i] + grad * grad;
    results[0].data[i] = param - rate * grad / (std::sqrt(sum) + epsilon);
  }
  return success();
}

//===- RmspropOp -------------------------------------------------------------------------------------------------===//

LogicalResult RmspropOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {0, 2, 3}))
    return success();
  double decay = getWeightDecay().convertToDouble(), epsilon = getEpsilon().convertToDouble();
  double alpha = getAlpha().convertToDouble(), momentum = getMomentum().convertToDouble();
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double param = operands[0].data[i], grad = operands[1].data[i] + decay * param;
    double square = results[1].data[i] = alpha * operands[2].data[i] + (1 - alpha) * grad * grad;
    double velocity = results[2].data[i] = momentum * operands[3].data[i] + grad / (std::sqrt(square) + epsilon);
    results[0].data[i] = param - rateOf(*this, scalars) * velocity;
  }
  return success();
}

//===- LionOp ----------------------------------------------------------------------------------------------------===//

LogicalResult LionOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {0, 2}))
    return success();
  double decay = getWeightDecay().convertToDouble();
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double grad = operands[1].data[i], first = operands[2].data[i];
    double direction = beta1 * first + (1 - beta1) * grad;
    double sign = double(direction > 0) - double(direction < 0);
    results[0].data[i] = operands[0].data[i] * (1 - rateOf(*this, scalars) * decay) - rateOf(*this, scalars) * sign;
    results[1].data[i] = beta2 * first + (1 - beta2) * grad;
  }
  return success();
}

//===- LambDirectionOp and LambStepOp ----------------------------------------------------------------------------===//

LogicalResult LambDirectionOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {-1, 2, 3}))
    return success();
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  double epsilon = getEpsilon().convertToDouble(), decay = getWeightDecay().convertToDouble();
  double step = stepOf(getGuard(), operands, scalars);
  double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double grad = operands[1].data[i];
    double first = results[1].data[i] = beta1 * operands[2].data[i] + (1 - beta1) * grad;
    double second = results[2].data[i] = beta2 * operands[3].data[i] + (1 - beta2) * grad * grad;
    results[0].data[i] =
        first / correction1 / (std::sqrt(second / correction2) + epsilon) + decay * operands[0].data[i];
  }
  return success();
}

/// A scalar of the type of what it belongs to.
static LogicalResult checkSquare(const Rejection &reject, Value square, Value tensor) {
  if (tensorOf(square).getRank() == 0 && tensorOf(square).getElementType() == tensorOf(tensor).getElementType())
    return success();
  return reject("has the square of a norm of type ", square.getType(), ", expected a scalar for ", tensor.getType());
}

FailureOr<Type> LambStepOp::inferType(Adaptor op, const Rejection &reject) {
  FailureOr<Type> type = inferStep(reject, op.getOperands().take_front(2), Value());
  if (failed(type) || failed(checkSquare(reject, op.getParamSquare(), op.getParam())) ||
      failed(checkSquare(reject, op.getDirectionSquare(), op.getParam())))
    return failure();
  return type;
}

LogicalResult LambStepOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  if (isSkipped(getGuard(), operands, results, {0}))
    return success();
  double param = std::sqrt(operands[2].data[0]), direction = std::sqrt(operands[3].data[0]);
  double rate = rateOf(*this, scalars) * (param > 0 && direction > 0 ? param / direction : 1);
  for (size_t i = 0; i < results[0].data.size(); ++i)
    results[0].data[i] = operands[0].data[i] - rate * operands[1].data[i];
  return success();
}

//===- ClipGradientOp --------------------------------------------------------------------------------------------===//

FailureOr<Type> ClipGradientOp::inferType(Adaptor op, const Rejection &reject) {
  if (bool(op.getSquare()) != (op.getMaxNorm().convertToDouble() > 0))
    return reject("has max_norm ", op.getMaxNormAttr(), " and ",
                  op.getSquare() ? "the square of a norm" : "no square of a norm", ", expected both or none");
  if (op.getSquare() && failed(checkSquare(reject, op.getSquare(), op.getGrad())))
    return failure();
  return op.getGrad().getType();
}

void ClipGradientOp::compute(HostOperands operands, HostResults results) {
  double limit = getMaxValue().convertToDouble(), factor = 1;
  if (getSquare())
    factor = std::min(1.0, getMaxNorm().convertToDouble() / (std::sqrt(operands[1].data[0]) + 1e-6));
  for (size_t i = 0; i < results[0].data.size(); ++i) {
    double grad = operands[0].data[i] * factor;
    results[0].data[i] = limit > 0 ? std::clamp(grad, -limit, limit) : grad;
  }
}

} // namespace dg::ir

#define DG_OPS "ir/ops/training/OptimizerOps.cpp.inc"
#define DG_ADD_OPS addOptimizerOps
#include "ir/ops/Family.inc"
