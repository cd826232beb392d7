// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm: ops that look at the whole last dimension of each row.
#ifndef DG_IR_NORMALIZATIONOPS_TD
#define DG_IR_NORMALIZATIONOPS_TD

include "ir/dialect/OpBase.td"

def DG_SoftmaxOp : DG_Op<"softmax", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "1.0">:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$axis), (outs DG_Tensor:$result),
    [Gradient, Sharded, CostPerElement<5>, Composite, MixesWholeDims]> {
  let summary = "Softmax of scale · x over the last dimension, or over `axis`";
  let precision = Statistics;
  let builders = [OpBuilder<(ins "mlir::Value":$input, "llvm::APFloat":$scale, "bool":$causal, "::dg::ir::PlaceAttr":$place), [{
    build($_builder, $_state, input, scale, causal, mlir::IntegerAttr(), place);
  }]>];
  let description = [{
    Another axis than the last is moved there and back.
    With `causal` the last two dimensions are (token, seen token) and tokens after the present one get 0.
    Example: `%p = dg.softmax %scores {scale = 0.125, causal}`.
  }];
}
def DG_SoftmaxGradOp : DG_Op<"softmax_grad", (ins DG_Tensor:$grad, DG_Tensor:$output, DefaultValuedAttr<F64Attr, "1.0">:$scale), (outs DG_Tensor:$result),
    [Gradient, Sharded, CostPerElement<5>, MixesWholeDims]> {
  let summary = "scale · y · (dy - Σ dy · y)";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.softmax_grad %dy, %y {scale = 0.125}`.}];
}
def DG_LogSoftmaxOp : DG_Op<"log_softmax", (ins DG_Tensor:$input, OptionalAttr<I64Attr>:$axis), (outs DG_Tensor:$result), [Gradient, Sharded, CostPerElement<5>, Composite, MixesWholeDims]> {
  let summary = "Logarithm of softmax over the last dimension, or over `axis`";
  let precision = Statistics;
  let builders = [OpBuilder<(ins "mlir::Value":$input, "::dg::ir::PlaceAttr":$place), [{
    build($_builder, $_state, input, mlir::IntegerAttr(), place);
  }]>];
  let description = [{Example: `%p = dg.log_softmax %x`.}];
}
def DG_LogSoftmaxGradOp : DG_Op<"log_softmax_grad", (ins DG_Tensor:$grad, DG_Tensor:$output), (outs DG_Tensor:$result), [Gradient, Sharded, CostPerElement<4>, MixesWholeDims]> {
  let summary = "dy - exp(y) · Σ dy";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.log_softmax_grad %dy, %y`.}];
}
def DG_LayerNormOp : DG_Op<"layer_norm", (ins DG_Tensor:$input, DG_Tensor:$weight, DG_Tensor:$bias, DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon,
      OptionalAttr<I64Attr>:$axis), (outs DG_Tensor:$result), [Gradient, Sharded, CostPerElement<8>, Composite, MixesWholeDims]> {
  let summary = "(x - mean) / √(variance + ε) · weight + bias over the last dimension, or over all from `axis` on";
  let precision = Rows;
  let builders = [OpBuilder<(ins "mlir::Value":$input, "mlir::Value":$weight, "mlir::Value":$bias, "mlir::FloatAttr":$epsilon,
      "::dg::ir::PlaceAttr":$place), [{
    build($_builder, $_state, input, weight, bias, epsilon, mlir::IntegerAttr(), place);
  }]>];
  let description = [{
    Weight and bias have the sizes of the dimensions that are normalized together; of rows in f16 or bf16 they may be f32.
    Examples: `%n = dg.layer_norm %x, %w, %b`, `%n = dg.layer_norm %x, %w, %b {axis = 1 : i64}`.
  }];
}
def DG_LayerNormGradOp : DG_Op<"layer_norm_grad", (ins DG_Tensor:$grad, DG_Tensor:$input, DG_Tensor:$weight, DefaultValuedAttr<F64Attr, "1.0e-5">:$epsilon),
    (outs DG_Tensor:$input_grad, DG_Tensor:$weight_grad, DG_Tensor:$bias_grad), [Gradient, Sharded, CostPerElement<16>, MixesWholeDims]> {
  let summary = "The gradients of layer_norm at input, weight and bias";
  let precision = AsWritten;
  let description = [{Example: `%dx, %dw, %db = dg.layer_norm_grad %dy, %x, %w`.}];
}

#endif
