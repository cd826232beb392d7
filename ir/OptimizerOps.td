// SPDX-License-Identifier: Apache-2.0
// Optimizer steps. The learning rate and the number of the step are scalars of the run, not operands.
#ifndef DG_IR_OPTIMIZEROPS_TD
#define DG_IR_OPTIMIZEROPS_TD

include "ir/OpBase.td"

def DG_SgdOp : DG_Op<"sgd", (ins DG_Tensor:$param, DG_Tensor:$grad, DefaultValuedAttr<F64Attr, "0.0">:$weight_decay), (outs DG_Tensor:$result),
    [Sharded, DefaultCost]> {
  let summary = "p - lr · (g + decay · p)";
  let description = [{Example: `%p1 = dg.sgd %p, %g`.}];
}
def DG_MomentumOp : DG_Op<"momentum", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$velocity, F64Attr:$momentum, UnitAttr:$nesterov,
      DefaultValuedAttr<F64Attr, "0.0">:$weight_decay), (outs DG_Tensor:$new_param, DG_Tensor:$new_velocity), [Sharded, DefaultCost]> {
  let summary = "v' = momentum · v + (g + decay · p); p' = p - lr · v' (nesterov: lr · (g + momentum · v'))";
  let description = [{As PyTorch: the first v' is g. Example: `%p1, %v1 = dg.momentum %p, %g, %v {momentum = 0.5}`.}];
}
def DG_AdamOp : DG_Op<"adam", (ins DG_Tensor:$param, DG_Tensor:$grad, DG_Tensor:$first, DG_Tensor:$second,
      DefaultValuedAttr<F64Attr, "0.9">:$beta1, DefaultValuedAttr<F64Attr, "0.999">:$beta2, DefaultValuedAttr<F64Attr, "1.0e-8">:$epsilon,
      DefaultValuedAttr<F64Attr, "0.0">:$weight_decay, UnitAttr:$decoupled), (outs DG_Tensor:$new_param, DG_Tensor:$new_first, DG_Tensor:$new_second),
    [Sharded, DefaultCost]> {
  let summary = "Adam; with `decoupled` AdamW";
  let description = [{
    As PyTorch: g += decay · p unless decoupled (then p *= 1 - lr · decay first); m' = β1 m + (1-β1) g; v' = β2 v + (1-β2) g²;
    p' = p - lr / (1-β1^t) · m' / (√v' / √(1-β2^t) + ε), t from 1. Example: `%p1, %m1, %v1 = dg.adam %p, %g, %m, %v`.
  }];
}

#endif
