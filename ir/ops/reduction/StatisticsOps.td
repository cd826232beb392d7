// SPDX-License-Identifier: Apache-2.0
// Normalization by statistics over any dimensions, rows weighed: batch norm and what it is made of. Sums over a cut dimension are
// partial sums, so statistics are those of all ranks without any pass knowing of them.
#ifndef DG_IR_STATISTICSOPS_TD
#define DG_IR_STATISTICSOPS_TD

include "ir/dialect/OpBase.td"

def DG_MomentsOp : DG_Op<"moments", (ins DG_Tensor:$input, DG_Tensor:$weight, DG_Tensor:$shift, DenseI64ArrayAttr:$dims,
      DefaultValuedAttr<F64Attr, "1.0">:$scale), (outs DG_Tensor:$first, DG_Tensor:$second), [Gradient, Sharded, Cost]> {
  let summary = "scale · Σ w (x - s) and scale · Σ w (x - s)² over `dims`, which stay with size 1";
  let precision = AsWritten;
  let description = [{
    Weight and shift broadcast to the input. One pass gives mean and variance; a shift near the mean keeps the digits that x² would
    lose. Example: `%m, %q = dg.moments %x, %w, %s {dims = array<i64: 0, 2, 3>}`.
  }];
}
def DG_NormalizeOp : DG_Op<"normalize", (ins DG_Tensor:$input, DG_Tensor:$mean, DG_Tensor:$scale, DG_Tensor:$bias), (outs DG_Tensor:$result),
    [Gradient, ShardedAsBroadcast, DefaultCost, DeclareOpInterfaceMethods<DG_ElementwiseOp>]> {
  let summary = "(x - mean) · scale + bias";
  let precision = AsWritten;
  let description = [{
    Mean, scale and bias have one shape: the input's, or 1 where they are repeated.
    Example: `%n = dg.normalize %x, %m, %s, %b` with shapes 8x4x5x5 and 1x4x1x1.
  }];
}
def DG_NormalizeSumsOp : DG_Op<"normalize_sums", (ins DG_Tensor:$grad, DG_Tensor:$input, DG_Tensor:$mean), (outs DG_Tensor:$first, DG_Tensor:$second),
    [Gradient, Sharded, Cost]> {
  let summary = "Σ dy and Σ dy (x - mean) where the mean is repeated: the gradients of normalize at bias and scale";
  let precision = AsWritten;
  let description = [{Example: `%db, %ds = dg.normalize_sums %dy, %x, %m`.}];
}
def DG_BatchNormOp : DG_Op<"batch_norm", (ins DG_Tensor:$input, DG_Tensor:$weight, DG_Tensor:$bias, DG_Tensor:$mean, DG_Tensor:$variance,
      DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon, DefaultValuedAttr<F64Attr, "0.1">:$momentum), (outs DG_Tensor:$result),
    [Composite, DeclareOpInterfaceMethods<DG_TrainingOp>]> {
  let summary = "(x - mean) / √(variance + ε) · weight + bias by channel (dimension 1)";
  let precision = Statistics;
  let description = [{
    While training, mean and (biased) variance are those of the samples of the micro-batch over all data ranks, and the given ones,
    parameters with `state`, are moved towards them once a step: running += momentum · (mean over the step's micro-batches - running),
    with the unbiased variance, as PyTorch does. Evaluation and inference take the running ones.
    Example: `%n = dg.batch_norm %x, %w, %b, %mean, %var`.
  }];
}
def DG_MeanVarianceNormOp : DG_Op<"mean_variance_norm", (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims, DefaultValuedAttr<F64Attr, "1.0e-9">:$epsilon),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "(x - mean) / √(variance + ε) over `dims`";
  let precision = Statistics;
  let description = [{Example: `%n = dg.mean_variance_norm %x {dims = array<i64: 0, 2, 3>}`.}];
}
def DG_GroupNormOp : DG_Op<"group_norm", (ins DG_Tensor:$input, DG_Tensor:$weight, DG_Tensor:$bias, I64Attr:$groups, DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "Each sample's channels (dimension 1) normalized in `groups`, then · weight + bias by channel";
  let precision = Statistics;
  let description = [{Wu and He, arXiv 1803.08494. Example: `%n = dg.group_norm %x, %w, %b {groups = 32}`.}];
}
def DG_InstanceNormOp : DG_Op<"instance_norm", (ins DG_Tensor:$input, DG_Tensor:$weight, DG_Tensor:$bias, DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "Each channel of each sample normalized, then · weight + bias by channel";
  let precision = Statistics;
  let description = [{Example: `%n = dg.instance_norm %x, %w, %b`.}];
}
def DG_RmsNormOp : DG_Op<"rms_norm", (ins DG_Tensor:$input, DG_Tensor:$weight, DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon),
    (outs DG_Tensor:$result), [Composite]> {
  let summary = "x / √(mean of x² + ε) · weight over the last dimensions, which the weight has";
  let precision = Statistics;
  let description = [{Zhang and Sennrich, arXiv 1910.07467. Example: `%n = dg.rms_norm %x, %w`.}];
}
def DG_LrnOp : DG_Op<"lrn", (ins DG_Tensor:$input, I64Attr:$size, DefaultValuedAttr<F64Attr, "1.0e-4">:$alpha, DefaultValuedAttr<F64Attr, "0.75">:$beta,
      DefaultValuedAttr<F64Attr, "1.0">:$bias), (outs DG_Tensor:$result), [Composite]> {
  let summary = "x / (bias + alpha / size · Σ x² over `size` neighbouring channels)^beta";
  let precision = Statistics;
  let description = [{Channel c sees those from c - (size-1)/2 to c + size/2. Example: `%n = dg.lrn %x {size = 5}`.}];
}

#endif
