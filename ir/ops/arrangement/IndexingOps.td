// SPDX-License-Identifier: Apache-2.0
// Ops that read or write at places given by integers.
#ifndef DG_IR_INDEXINGOPS_TD
#define DG_IR_INDEXINGOPS_TD

include "ir/dialect/OpBase.td"

def DG_EmbeddingOp : DG_Op<"embedding", (ins DG_Tensor:$table, DG_Tensor:$indices, OptionalAttr<I64Attr>:$padding), (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "Rows of a table";
  let precision = Table;
  let description = [{
    Table [v, d], indices […] of integers, result […, d]. Reading row `padding` does not train it, as PyTorch's `padding_idx`.
    Example: `%e = dg.embedding %table, %tokens {padding = 0}`.
  }];
}
def DG_EmbeddingGradOp : DG_Op<"embedding_grad", (ins DG_Tensor:$grad, DG_Tensor:$indices, I64Attr:$rows), (outs DG_Tensor:$result), [Gradient, Sharded, CostPerElement<1>, Indices]> {
  let evaluation = Evaluates;
  let summary = "The gradient of embedding at its table of `rows` rows: sums of rows, in the order of the indices";
  let precision = AsWritten;
  let description = [{Example: `%dt = dg.embedding_grad %dy, %tokens {rows = 8192}`.}];
}
def DG_PickOp : DG_Op<"pick", (ins DG_Tensor:$input, DG_Tensor:$indices), (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "One element of each row (last dimension)";
  let precision = AsWritten;
  let description = [{Input […, c], indices […] of integers, result […]. Example: `%l = dg.pick %logp, %y`.}];
}
def DG_PickGradOp : DG_Op<"pick_grad", (ins DG_Tensor:$grad, DG_Tensor:$indices, I64Attr:$classes), (outs DG_Tensor:$result), [Gradient, Sharded, Cost, Indices]> {
  let evaluation = Evaluates;
  let summary = "The gradient of pick: the gradient at the picked class, 0 elsewhere";
  let precision = AsWritten;
  let description = [{Example: `%dx = dg.pick_grad %dy, %y {classes = 10}`.}];
}
def DG_PickLogSoftmaxOp : DG_Op<"pick_log_softmax", (ins DG_Tensor:$input, DG_Tensor:$indices), (outs DG_Tensor:$result, DG_Tensor:$logsumexp),
    [Gradient, Sharded, Cost, MixesWholeDims, Indices]> {
  let evaluation = Evaluates;
  let summary = "One element of each row's log-softmax, and the logarithm of the row's sum of exponentials";
  let precision = AsWritten;
  let description = [{
    What pick and log_softmax are together, without the matrix between them. Input […, c], indices […] of integers, results […],
    in f32 where the input has 16 bits.
    Example: `%l, %s = dg.pick_log_softmax %logits, %y`.
  }];
}
def DG_PickLogSoftmaxGradOp : DG_Op<"pick_log_softmax_grad", (ins DG_Tensor:$grad, DG_Tensor:$weight, DG_Tensor:$input, DG_Tensor:$indices,
    DG_Tensor:$logsumexp, UnitAttr:$overwrites), (outs DG_Tensor:$result), [Sharded, Cost, Indices, DG_OverwritingOp]> {
  let evaluation = Evaluates;
  let extraClassDeclaration = [{
    mlir::OpOperand &getOverwritable() { return getInputMutable(); }
  }];
  let summary = "The gradient of pick_log_softmax: weight · softmax(row), and the gradient added at the picked class";
  let precision = AsWritten;
  let description = [{
    With `overwrites` the result is written where the input was. Example: `%dx = dg.pick_log_softmax_grad %dy, %w, %logits, %y, %s`.
  }];
}
def DG_CorrectOp : DG_Op<"correct", (ins DG_Tensor:$scores, DG_Tensor:$indices), (outs DG_Tensor:$result), [Sharded, Cost, MixesWholeDims, Indices]> {
  let evaluation = Evaluates;
  let summary = "1 where the (first) largest element of a row is at the index, else 0";
  let precision = AsWritten;
  let description = [{Scores […, c], indices […], result […] in the type of the scores. Example: `%c = dg.correct %logits, %y`.}];
}

#endif
