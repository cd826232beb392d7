// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, as ONNX defines them, on top of dg.scan.
#ifndef DG_IR_RECURRENTOPS_TD
#define DG_IR_RECURRENTOPS_TD

include "ir/dialect/OpBase.td"

/// `extra` names the operands after the first three, in their order.
class DG_Recurrent<string mnemonic, dag attributes, dag outputs> : DG_Op<mnemonic, !con((ins DG_Tensor:$input, DG_Tensor:$weight, DG_Tensor:$recurrent,
    Variadic<DG_Tensor>:$extras, OptionalAttr<StrArrayAttr>:$extra, DefaultValuedAttr<StrAttr, "\"forward\"">:$direction,
    OptionalAttr<StrArrayAttr>:$activations, OptionalAttr<F64Attr>:$clip), attributes), outputs, [Composite]> {
  let precision = AsWritten;
}

def DG_RnnOp : DG_Recurrent<"rnn", (ins), (outs DG_Tensor:$result, DG_Tensor:$last)> {
  let summary = "h' = tanh(x · Wᵀ + h · Rᵀ + b) over time";
  let description = [{
    Input [time, batch, in], weight [directions, hidden, in], recurrent [directions, hidden, hidden]; `extra` operands: "bias" [directions, 2 · hidden] (of the input, then of the
    recurrent product), "lengths" [batch] (steps after a sequence's end give 0 and change nothing), "initial_h" [directions, batch, hidden]. `direction`: forward, reverse,
    bidirectional. `activations` (tanh, sigmoid, relu, softsign, softplus) are given for each direction or once; `clip` bounds what they get. Results: all states
    [time, directions, batch, hidden] and the last [directions, batch, hidden].
    Example: `%y, %h = dg.rnn %x, %w, %r, %b {extra = ["bias"]}`.
  }];
}
def DG_LstmOp : DG_Recurrent<"lstm", (ins UnitAttr:$input_forget), (outs DG_Tensor:$result, DG_Tensor:$last, DG_Tensor:$last_cell)> {
  let summary = "Long short-term memory over time";
  let description = [{
    As dg.rnn, with gates input, output, forget and cell side by side in weight and recurrent [directions, 4 · hidden, …] and bias [directions, 8 · hidden]; more `extra` operands:
    "initial_c" [directions, batch, hidden] and "peephole" [directions, 3 · hidden] (input, output, forget). `activations` are three: of the gates, of the cell, of the output.
    With `input_forget` the forget gate is 1 - the input gate. A third result is the last cell.
    Example: `%y, %h, %c = dg.lstm %x, %w, %r, %b, %h0 {extra = ["bias", "initial_h"]}`.
  }];
}
def DG_GruOp : DG_Recurrent<"gru", (ins UnitAttr:$linear_before_reset), (outs DG_Tensor:$result, DG_Tensor:$last)> {
  let summary = "Gated recurrent units over time";
  let description = [{
    As dg.rnn, with gates update, reset and hidden side by side in weight and recurrent [directions, 3 · hidden, …] and bias [directions, 6 · hidden]. `activations` are two: of the gates
    and of the hidden state. With `linear_before_reset` the reset gate weighs the recurrent product instead of the state.
    Example: `%y, %h = dg.gru %x, %w, %r {direction = "bidirectional"}`.
  }];
}

#endif
