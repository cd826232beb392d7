// SPDX-License-Identifier: Apache-2.0
// Optimizer steps. The learning rate and the number of the step are scalars of the run, not operands. Each takes a last
// operand `guard`, an f32 scalar: where it is NaN the step is skipped, and parameter and state stay as they were; else it
// is the number of steps that were skipped before, which t, the number of the step, does not count. `lr_factor` makes the
// learning rate of one parameter another: lr in the formulas is the run's rate times it.
#ifndef DG_IR_OPTIMIZEROPS_TD
#define DG_IR_OPTIMIZEROPS_TD

include "ir/dialect/OpBase.td"

class DG_Step<string mnemonic, dag inputs, dag outputs> : DG_Op<mnemonic, inputs, outputs, [ShardedAsBroadcast, DefaultCost]> {
  let precision = AsWritten;
  let evaluation = Evaluates;
}

def DG_SgdOp : DG_Step<"sgd", (ins DG_Tensor:$param, DG_Tensor:$grad, Optional<DG_Tensor>:$guard, DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, OptionalAttr<F64Attr>:$lr_factor), (outs DG_Tensor:$result)> {
  let summary = "p - lr · (g + decay · p)";
  let description = [{Example: `%p1 = dg.sgd %p, %g`.}];
}
def DG_MomentumOp : DG_Step<"momentum", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$velocity, Optional<DG_Tensor>:$guard, F64Attr:$momentum, UnitAttr:$nesterov,
      DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, OptionalAttr<F64Attr>:$lr_factor), (outs DG_Tensor:$new_param, DG_Tensor:$new_velocity)> {
  let summary = "v' = momentum · v + (g + decay · p); p' = p - lr · v' (nesterov: lr · (g + momentum · v'))";
  let description = [{As PyTorch: the first v' is g. Example: `%p1, %v1 = dg.momentum %p, %g, %v {momentum = 0.5}`.}];
}
def DG_AdamOp : DG_Step<"adam", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$first, DG_Tensor:$second, Optional<DG_Tensor>:$guard,
      DefaultValuedAttr<F64Attr, "0.9">:$beta1, DefaultValuedAttr<F64Attr, "0.999">:$beta2, DefaultValuedAttr<F64Attr, "1.0e-8">:$epsilon,
      DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, OptionalAttr<F64Attr>:$lr_factor, UnitAttr:$decoupled), (outs DG_Tensor:$new_param, DG_Tensor:$new_first, DG_Tensor:$new_second)> {
  let summary = "Adam; with `decoupled` AdamW";
  let description = [{
    As PyTorch: g += decay · p unless decoupled (then p *= 1 - lr · decay first); m' = β1 m + (1-β1) g; v' = β2 v + (1-β2) g²;
    p' = p - lr / (1-β1^t) · m' / (√v' / √(1-β2^t) + ε), t from 1. Example: `%p1, %m1, %v1 = dg.adam %p, %g, %m, %v`.
  }];
}
def DG_AdagradOp : DG_Step<"adagrad", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$sum, Optional<DG_Tensor>:$guard, DefaultValuedAttr<F64Attr, "1.0e-10">:$epsilon,
      DefaultValuedAttr<F64Attr, "0.0">:$lr_decay, DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, OptionalAttr<F64Attr>:$lr_factor), (outs DG_Tensor:$new_param, DG_Tensor:$new_sum)> {
  let summary = "s' = s + g²; p' = p - lr / (1 + (t-1) lr_decay) · g / (√s' + ε)";
  let description = [{As PyTorch: g += decay · p first, t from 1. Example: `%p1, %s1 = dg.adagrad %p, %g, %s`.}];
}
def DG_RmspropOp : DG_Step<"rmsprop", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$square, DG_Tensor:$velocity, Optional<DG_Tensor>:$guard, DefaultValuedAttr<F64Attr, "0.99">:$alpha,
      DefaultValuedAttr<F64Attr, "0.0">:$momentum, DefaultValuedAttr<F64Attr, "1.0e-8">:$epsilon, DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, OptionalAttr<F64Attr>:$lr_factor),
    (outs DG_Tensor:$new_param, DG_Tensor:$new_square, DG_Tensor:$new_velocity)> {
  let summary = "s' = α s + (1-α) g²; v' = momentum · v + g / (√s' + ε); p' = p - lr · v'";
  let description = [{As PyTorch: g += decay · p first. Example: `%p1, %s1, %v1 = dg.rmsprop %p, %g, %s, %v`.}];
}
def DG_LionOp : DG_Step<"lion", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$first, Optional<DG_Tensor>:$guard, DefaultValuedAttr<F64Attr, "0.9">:$beta1,
      DefaultValuedAttr<F64Attr, "0.99">:$beta2, DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, OptionalAttr<F64Attr>:$lr_factor), (outs DG_Tensor:$new_param, DG_Tensor:$new_first)> {
  let summary = "p' = p (1 - lr · decay) - lr · sign(β1 m + (1-β1) g); m' = β2 m + (1-β2) g";
  let description = [{Chen et al., arXiv 2302.06675. Example: `%p1, %m1 = dg.lion %p, %g, %m`.}];
}
def DG_LambDirectionOp : DG_Step<"lamb_direction", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$first, DG_Tensor:$second, Optional<DG_Tensor>:$guard,
      DefaultValuedAttr<F64Attr, "0.9">:$beta1, DefaultValuedAttr<F64Attr, "0.999">:$beta2, DefaultValuedAttr<F64Attr, "1.0e-6">:$epsilon,
      DefaultValuedAttr<F64Attr, "0.0">:$weight_decay), (outs DG_Tensor:$direction, DG_Tensor:$new_first, DG_Tensor:$new_second)> {
  let summary = "The step of LAMB before its length is set: Adam's quotient + decay · p";
  let description = [{You et al., arXiv 1904.00962. Example: `%r, %m1, %v1 = dg.lamb_direction %p, %g, %m, %v`.}];
}
def DG_LambStepOp : DG_Step<"lamb_step", (ins DG_Tensor:$param, DG_Tensor:$direction, DG_Tensor:$param_square, DG_Tensor:$direction_square, Optional<DG_Tensor>:$guard, OptionalAttr<F64Attr>:$lr_factor), (outs DG_Tensor:$result)> {
  let summary = "p - lr · ‖p‖ / ‖r‖ · r, or lr · r where one of the norms is 0";
  let description = [{The squares of the norms are scalars, over the whole parameter. Example: `%p1 = dg.lamb_step %p, %r, %pp, %rr`.}];
}
def DG_ClipGradientOp : DG_Op<"clip_gradient", (ins DG_Tensor:$grad, Optional<DG_Tensor>:$square, DefaultValuedAttr<F64Attr, "0.0">:$max_norm,
      DefaultValuedAttr<F64Attr, "0.0">:$max_value), (outs DG_Tensor:$result), [ShardedAsBroadcast, DefaultCost]> {
  let summary = "The gradient, shorter where the norm of all gradients is above max_norm, each element within ±max_value";
  let precision = AsWritten;
  let description = [{
    `square` is the sum of the squares of all gradients, a scalar; the factor is max_norm / (√square + 1e-6) where below 1, as PyTorch has it.
    What is 0 or left out does not clip. Example: `%c = dg.clip_gradient %g, %square {max_norm = 1.0}`.
  }];
}

#endif
