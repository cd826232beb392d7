// SPDX-License-Identifier: Apache-2.0
// Random numbers by the counter-based generator: a number depends on the seed of the run, the step, the op that the author wrote and the
// element's place in the global tensor, never on rank, micro-batch or thread. The generator is one elementwise op of places; everything
// else here is made of it.
#ifndef DG_IR_RANDOMOPS_TD
#define DG_IR_RANDOMOPS_TD

include "ir/ops/elementwise/ElementwiseBase.td"

def DG_RandomKeyOp : DG_OpBase<"random_key", (ins I64Attr:$stream), (outs DG_Tensor:$result),
    [Pure, OwnTypes, Evaluates, Sharded, Cost]> {
  let summary = "The key of one source of random numbers in this step: 53 bits of the seed, the step and the stream";
  let description = [{Example: `%k = dg.random_key {stream = 7}`.}];
}
def DG_RandomBitsOp : DG_Elementwise<"random_bits", (ins DG_Tensor:$key, DG_Tensor:$index, DefaultValuedAttr<I64Attr, "0">:$word,
    TypeAttr:$to), OwnDomain> {
  let summary = "Uniform numbers from 0 to 1 (below 1, 24 bits) for (key, index): word 0 to 3 of Philox4x32-10";
  let precision = AsWritten;
  let description = [{
    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC'11). Key and index are i64 and not negative; equal ones give equal numbers.
    Example: `%u = dg.random_bits %k, %i {to = f32}`.
  }];
}

/// An op that draws one number for each element of its result: a tensor of `type`, or one like the operand. `batch_dim` is the dimension of
/// the samples, or of several rows for each, with which numbers do not depend on how samples are dealt to ranks and micro-batches while
/// training; -1: there is none. Without it, 0 where there is an operand, else -1.
class DG_Drawn<string mnemonic, dag inputs> : DG_OpBase<mnemonic, !con((ins Optional<DG_Tensor>:$like, OptionalAttr<TypeAttr>:$type), inputs,
    (ins OptionalAttr<I64Attr>:$batch_dim)), (outs DG_Tensor:$result), [Pure, OwnTypes,
    Evaluates, Composite, DeclareOpInterfaceMethods<DG_TrainingOp>]> {
  let precision = AsWritten;
  let extraClassDeclaration = [{
    int64_t getSampleDim() { return getBatchDim() ? int64_t(*getBatchDim()) : getLike() ? 0 : -1; }
  }];
  let hasVerifier = 1;
}
def DG_RandomUniformOp : DG_Drawn<"random_uniform", (ins DefaultValuedAttr<F64Attr, "0.0">:$low, DefaultValuedAttr<F64Attr, "1.0">:$high)> {
  let summary = "Uniform numbers from low to high (below high)";
  let description = [{
    Each step of training, and each inference with another seed, draws others.
    Examples: `%u = dg.random_uniform {type = tensor<4x3xf32>, low = -1.0}`, `%u = dg.random_uniform %x`.
  }];
}
def DG_RandomNormalOp : DG_Drawn<"random_normal", (ins DefaultValuedAttr<F64Attr, "0.0">:$mean, DefaultValuedAttr<F64Attr, "1.0">:$deviation)> {
  let summary = "Normal numbers of this mean and standard deviation, by the transform of Box and Muller";
  let description = [{Examples: `%n = dg.random_normal {type = tensor<4x3xf32>, deviation = 0.5}`, `%n = dg.random_normal %x`.}];
}
def DG_DropoutOp : DG_Op<"dropout", (ins DG_Tensor:$input, DefaultValuedAttr<F64Attr, "0.5">:$rate, DefaultValuedAttr<I64Attr, "0">:$batch_dim),
    (outs DG_Tensor:$result), [Composite, DeclareOpInterfaceMethods<DG_TrainingOp>]> {
  let summary = "While training each element is 0 with probability `rate`, and the others are divided by 1 - rate; else x";
  let precision = Follows;
  let description = [{
    `batch_dim` is the dimension of the samples, or of several rows for each; -1 where the input does not depend on samples, as a weight.
    Example: `%y = dg.dropout %x {rate = 0.1}`.
  }];
  let hasVerifier = 1;
}

#endif
