// SPDX-License-Identifier: Apache-2.0
// Optimizer steps. They work in place on the parameter and its state; learning rate and step number come with the call.
#include "codegen/emit/LoopNest.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/training/OptimizerOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace dg::codegen {

namespace {
Value isNumber(KernelBuilder &k, Value number) {
  return k.create<arith::CmpFOp>(arith::CmpFPredicate::ORD, number, number);
}

/// The last operand: NaN where the step is skipped, else how many were skipped before.
Value loadGuard(KernelBuilder &k, Operation *op) {
  return k.loadScalar(k.buffer(op->getNumOperands() - 1), k.index(0));
}

/// The number of this step among those that were not skipped.
Value stepOf(KernelBuilder &k, Operation *op, Value guard) {
  if (!guard)
    return k.step();
  Value number = loadGuard(k, op);
  number = k.select(isNumber(k, number), number, k.constant(0, number));
  return k.sub(k.step(), k.create<arith::FPToSIOp>(k.getI64Type(), number));
}

/// The elements of the parameter; none of them where `guard` is there and NaN.
void loopElements(KernelBuilder &k, Operation *op, Value guard, KernelBuilder::VectorBody body) {
  int64_t count = numElements(op->getOperand(0));
  loopRowsOfTile(k, 1, count, elementsPerTile / 2, [&](Value, Value from, Value to) {
    if (!guard)
      return k.loopVectors(from, to, count, body);
    k.ifThen(isNumber(k, loadGuard(k, op)), [&] { k.loopVectors(from, to, count, body); });
  });
}

/// The learning rate of this op's parameter.
template <typename Op> Value rateOf(KernelBuilder &k, Op op) {
  std::optional<APFloat> factor = op.getLrFactor();
  return factor ? k.fmul(k.lr(), k.number(factor->convertToDouble())) : k.lr();
}

/// The vector of one f32 scalar.
Value spread(KernelBuilder &k, Value scalar, Lanes lanes) { return k.splat(scalar, lanes.width); }

void emitSgd(KernelBuilder &k, ir::SgdOp sgd) {
  double decay = sgd.getWeightDecay().convertToDouble();
  Value rate = rateOf(k, sgd);
  loopElements(k, sgd, sgd.getGuard(), [&](Value at, Lanes lanes) {
    Value param = k.load(k.buffer(0), at, lanes), grad = k.load(k.buffer(1), at, lanes);
    if (decay != 0)
      grad = k.fma(param, k.constant(decay, param), grad);
    k.store(k.fsub(param, k.fmul(spread(k, rate, lanes), grad)), k.buffer(0), at, lanes);
  });
}

void emitMomentum(KernelBuilder &k, ir::MomentumOp momentum) {
  double decay = momentum.getWeightDecay().convertToDouble(), factor = momentum.getMomentum().convertToDouble();
  Value rate = rateOf(k, momentum);
  loopElements(k, momentum, momentum.getGuard(), [&](Value at, Lanes lanes) {
    Value param = k.load(k.buffer(0), at, lanes), grad = k.load(k.buffer(1), at, lanes),
          velocity = k.load(k.buffer(2), at, lanes);
    if (decay != 0)
      grad = k.fma(param, k.constant(decay, param), grad);
    velocity = k.fma(velocity, k.constant(factor, velocity), grad);
    Value direction = momentum.getNesterov() ? k.fma(velocity, k.constant(factor, velocity), grad) : velocity;
    k.store(k.fsub(param, k.fmul(spread(k, rate, lanes), direction)), k.buffer(0), at, lanes);
    k.store(velocity, k.buffer(2), at, lanes);
  });
}

/// base^step in f64 by squaring: 63 rounds, about 0.1 µs a tile, and no call into a library.
Value powerOfStep(KernelBuilder &k, double base, Value step) {
  Type f64 = k.getF64Type();
  auto number = [&](double value) -> Value { return k.create<arith::ConstantOp>(k.getFloatAttr(f64, value)); };
  Value one = k.create<arith::ConstantOp>(k.getI64IntegerAttr(1));
  KernelBuilder::Values start = {number(1), number(base), step};
  return k.loop(k.index(0), k.index(63), 1, start, [&](Value, ValueRange v) -> KernelBuilder::Values {
    Value bit = k.create<arith::AndIOp>(v[2], one);
    Value isSet = k.create<arith::CmpIOp>(arith::CmpIPredicate::eq, bit, one);
    Value product = k.create<arith::MulFOp>(v[0], v[1]);
    return {k.select(isSet, product, v[0]), k.create<arith::MulFOp>(v[1], v[1]), k.create<arith::ShRUIOp>(v[2], one)};
  })[0];
}

void emitAdam(KernelBuilder &k, ir::AdamOp adam) {
  double beta1 = adam.getBeta1().convertToDouble(), beta2 = adam.getBeta2().convertToDouble();
  double decay = adam.getWeightDecay().convertToDouble(), epsilon = adam.getEpsilon().convertToDouble();
  Type f64 = k.getF64Type();
  bool isWide = k.real.isF64();
  auto toReal = [&](Value number) -> Value { return isWide ? number : k.create<arith::TruncFOp>(k.real, number); };
  Value one = k.create<arith::ConstantOp>(k.getFloatAttr(f64, 1));
  Value lr = k.toDouble(rateOf(k, adam));
  Value step = stepOf(k, adam, adam.getGuard());
  Value correction1 = k.create<arith::SubFOp>(one, powerOfStep(k, beta1, step));
  Value correction2 = k.create<arith::SubFOp>(one, powerOfStep(k, beta2, step));
  // p - (lr / c1) · m / (√v · (1 / √c2) + ε), and p · (1 - lr · decay): what depends on the step only is computed once,
  // in f64.
  Value rate = toReal(k.create<arith::DivFOp>(lr, correction1));
  Value root = toReal(k.create<arith::DivFOp>(one, k.create<math::SqrtOp>(correction2)));
  Value shrink = toReal(k.create<arith::SubFOp>(
      one, k.create<arith::MulFOp>(lr, k.create<arith::ConstantOp>(k.getFloatAttr(f64, decay)))));
  loopElements(k, adam, adam.getGuard(), [&](Value at, Lanes lanes) {
    Value param = k.load(k.buffer(0), at, lanes), grad = k.load(k.buffer(1), at, lanes);
    Value first = k.load(k.buffer(2), at, lanes), second = k.load(k.buffer(3), at, lanes);
    if (decay != 0 && !adam.getDecoupled())
      grad = k.fma(param, k.constant(decay, param), grad);
    if (decay != 0 && adam.getDecoupled())
      param = k.fmul(param, spread(k, shrink, lanes));
    first = k.fma(first, k.constant(beta1, first), k.scale(grad, 1 - beta1));
    second = k.fma(second, k.constant(beta2, second), k.scale(k.fmul(grad, grad), 1 - beta2));
    Value denominator = k.fma(k.sqrt(second), spread(k, root, lanes), k.constant(epsilon, second));
    k.store(k.fsub(param, k.fmul(spread(k, rate, lanes), k.fdiv(first, denominator))), k.buffer(0), at, lanes);
    k.store(first, k.buffer(2), at, lanes);
    k.store(second, k.buffer(3), at, lanes);
  });
}

void emitAdagrad(KernelBuilder &k, ir::AdagradOp adagrad) {
  double decay = adagrad.getWeightDecay().convertToDouble(), epsilon = adagrad.getEpsilon().convertToDouble();
  auto number = [&](double value) -> Value {
    return k.create<arith::ConstantOp>(k.getFloatAttr(k.getF64Type(), value));
  };
  // lr / (1 + (step - 1) · lr_decay), once for the tile.
  Value step = k.create<arith::SIToFPOp>(k.getF64Type(), stepOf(k, adagrad, adagrad.getGuard()));
  Value slowed =
      k.create<arith::MulFOp>(k.create<arith::SubFOp>(step, number(1)), number(adagrad.getLrDecay().convertToDouble()));
  Value rate =
      k.fromDouble(k.create<arith::DivFOp>(k.toDouble(rateOf(k, adagrad)), k.create<arith::AddFOp>(number(1), slowed)));
  loopElements(k, adagrad, adagrad.getGuard(), [&](Value at, Lanes lanes) {
    Value param = k.load(k.buffer(0), at, lanes), grad = k.load(k.buffer(1), at, lanes);
    if (decay != 0)
      grad = k.fma(param, k.constant(decay, param), grad);
    Value sum = k.fma(grad, grad, k.load(k.buffer(2), at, lanes));
    Value step = k.fdiv(grad, k.fadd(k.sqrt(sum), k.constant(epsilon, sum)));
    k.store(k.fsub(param, k.fmul(spread(k, rate, lanes), step)), k.buffer(0), at, lanes);
    k.store(sum, k.buffer(2), at, lanes);
  });
}

void emitRmsprop(KernelBuilder &k, ir::RmspropOp rmsprop) {
  double decay = rmsprop.getWeightDecay().convertToDouble(), epsilon = rmsprop.getEpsilon().convertToDouble();
  double alpha = rmsprop.getAlpha().convertToDouble(), momentum = rmsprop.getMomentum().convertToDouble();
  Value rate = rateOf(k, rmsprop);
  loopElements(k, rmsprop, rmsprop.getGuard(), [&](Value at, Lanes lanes) {
    Value param = k.load(k.buffer(0), at, lanes), grad = k.load(k.buffer(1), at, lanes);
    if (decay != 0)
      grad = k.fma(param, k.constant(decay, param), grad);
    Value square = k.load(k.buffer(2), at, lanes), velocity = k.load(k.buffer(3), at, lanes);
    square = k.fma(square, k.constant(alpha, square), k.scale(k.fmul(grad, grad), 1 - alpha));
    Value quotient = k.fdiv(grad, k.fadd(k.sqrt(square), k.constant(epsilon, square)));
    velocity = k.fma(velocity, k.constant(momentum, velocity), quotient);
    k.store(k.fsub(param, k.fmul(spread(k, rate, lanes), velocity)), k.buffer(0), at, lanes);
    k.store(square, k.buffer(2), at, lanes);
    k.store(velocity, k.buffer(3), at, lanes);
  });
}

void emitLion(KernelBuilder &k, ir::LionOp lion) {
  double decay = lion.getWeightDecay().convertToDouble();
  double beta1 = lion.getBeta1().convertToDouble(), beta2 = lion.getBeta2().convertToDouble();
  Value rate = rateOf(k, lion);
  loopElements(k, lion, lion.getGuard(), [&](Value at, Lanes lanes) {
    Value param = k.load(k.buffer(0), at, lanes), grad = k.load(k.buffer(1), at, lanes),
          first = k.load(k.buffer(2), at, lanes), lr = spread(k, rate, lanes);
    Value direction = k.fma(first, k.constant(beta1, first), k.scale(grad, 1 - beta1)), zero = k.constant(0, first);
    Value negative = k.select(k.greater(zero, direction), k.constant(-1, first), zero);
    Value sign = k.select(k.greater(direction, zero), k.constant(1, first), negative);
    if (decay != 0)
      sign = k.fma(param, k.constant(decay, param), sign);
    k.store(k.fsub(param, k.fmul(lr, sign)), k.buffer(0), at, lanes);
    k.store(k.fma(first, k.constant(beta2, first), k.scale(grad, 1 - beta2)), k.buffer(2), at, lanes);
  });
}

void emitLambDirection(KernelBuilder &k, ir::LambDirectionOp lamb) {
  double beta1 = lamb.getBeta1().convertToDouble(), beta2 = lamb.getBeta2().convertToDouble();
  double decay = lamb.getWeightDecay().convertToDouble(), epsilon = lamb.getEpsilon().convertToDouble();
  Value one = k.create<arith::ConstantOp>(k.getFloatAttr(k.getF64Type(), 1));
  Value step = stepOf(k, lamb, lamb.getGuard());
  auto inverse = [&](double beta) -> Value {
    return k.create<arith::DivFOp>(one, k.create<arith::SubFOp>(one, powerOfStep(k, beta, step)));
  };
  Value scale1 = k.fromDouble(inverse(beta1)), scale2 = k.fromDouble(k.create<math::SqrtOp>(inverse(beta2)));
  loopElements(k, lamb, lamb.getGuard(), [&](Value at, Lanes lanes) {
    Value param = k.load(k.buffer(0), at, lanes), grad = k.load(k.buffer(1), at, lanes);
    Value first = k.load(k.buffer(2), at, lanes), second = k.load(k.buffer(3), at, lanes);
    first = k.fma(first, k.constant(beta1, first), k.scale(grad, 1 - beta1));
    second = k.fma(second, k.constant(beta2, second), k.scale(k.fmul(grad, grad), 1 - beta2));
    Value denominator = k.fma(k.sqrt(second), spread(k, scale2, lanes), k.constant(epsilon, second));
    Value direction = k.fdiv(k.fmul(first, spread(k, scale1, lanes)), denominator);
    k.store(k.fma(param, k.constant(decay, param), direction), k.buffer(lamb->getNumOperands()), at, lanes);
    k.store(first, k.buffer(2), at, lanes);
    k.store(second, k.buffer(3), at, lanes);
  });
}

void emitLambStep(KernelBuilder &k, ir::LambStepOp op) {
  Value zero = k.number(0), param = k.loadScalar(k.buffer(2), k.index(0)),
        direction = k.loadScalar(k.buffer(3), k.index(0));
  Value hasNorms = k.create<arith::AndIOp>(k.greater(param, zero), k.greater(direction, zero));
  Value ratio = k.sqrt(k.fdiv(param, k.select(hasNorms, direction, k.number(1))));
  Value rate = k.fmul(rateOf(k, op), k.select(hasNorms, ratio, k.number(1)));
  loopElements(k, op, op.getGuard(), [&](Value at, Lanes lanes) {
    Value step = k.fmul(spread(k, rate, lanes), k.load(k.buffer(1), at, lanes));
    k.store(k.fsub(k.load(k.buffer(0), at, lanes), step), k.buffer(0), at, lanes);
  });
}

void emitClipGradient(KernelBuilder &k, ir::ClipGradientOp clip) {
  double limit = clip.getMaxValue().convertToDouble();
  Value factor, result = k.buffer(clip.getSquare() ? 2 : 1);
  if (clip.getSquare()) {
    Value norm = k.fadd(k.sqrt(k.loadScalar(k.buffer(1), k.index(0))), k.number(1e-6));
    factor = k.fdiv(k.number(clip.getMaxNorm().convertToDouble()), norm);
    // Not above 1, and a norm that is NaN makes every gradient NaN, where it is found.
    factor = k.select(k.greater(factor, k.number(1)), k.number(1), factor);
  }
  loopElements(k, clip, Value(), [&](Value at, Lanes lanes) {
    Value grad = k.load(k.buffer(0), at, lanes);
    if (factor)
      grad = k.fmul(grad, spread(k, factor, lanes));
    if (limit > 0) {
      Value most = k.constant(limit, grad), least = k.constant(-limit, grad);
      grad = k.select(k.greater(grad, most), most, k.select(k.greater(least, grad), least, grad));
    }
    k.store(grad, result, at, lanes);
  });
}
} // namespace

void addOptimizerKernels(KernelTable &table) {
  table.add(emitSgd).aliasedOperand = {0};
  table.add(emitMomentum).aliasedOperand = {0, 2};
  table.add(emitAdam).aliasedOperand = {0, 2, 3};
  table.add(emitAdagrad).aliasedOperand = {0, 2};
  table.add(emitRmsprop).aliasedOperand = {0, 2, 3};
  table.add(emitLion).aliasedOperand = {0, 2};
  table.add(emitLambDirection).aliasedOperand = {-1, 2, 3};
  table.add(emitLambStep).aliasedOperand = {0};
  table.add(emitClipGradient);
}

} // namespace dg::codegen
