// SPDX-License-Identifier: Apache-2.0
// Ops on tensors in a layout that kernels read in order, made by the layout passes after the split: images whose
// channels lie in blocks of 16, matrices in panels of 32 columns.
#ifndef DG_IR_BLOCKEDOPS_TD
#define DG_IR_BLOCKEDOPS_TD

include "ir/dialect/OpBase.td"

def DG_BlockedConvOp
    : Op<DG_Dialect, "blocked_conv",
         [Pure, SingleBlock, NoTerminator, IsolatedFromAbove, DeclareOpInterfaceMethods<DG_CostOp, ["getCost"]>,
          Evaluates]> {
  let summary = "Convolution of images with blocked channels, and what is computed of each element of its sums";
  let description = [{
    Made by `--dg-block-channels` after the split phase. Input [n, c / 16, h, w, 16], or [n, c, h, w] for a few channels; it is padded
    already. Weight [o / 16, c / 16, kh, kw, 16 (c), 16 (o)], or [o / 16, c, kh, kw, 16]. The region gets the sums
    [n, o / 16, rows, columns, 16] and the extra operands, which broadcast to them; its dg.return has the result's elements. `frame` rows
    and columns of zeros stand around the images of the result, for the convolution that reads it.
    Example: `%y = dg.blocked_conv %x, %w {strides = array<i64: 1, 1>} : … { ^bb0(%sums: …): dg.return %sums : … }`.
  }];
  let arguments = (ins DG_Tensor:$input, DG_Tensor:$weight, Variadic<DG_Tensor>:$extras, DenseI64ArrayAttr:$strides,
      DefaultValuedAttr<DenseI64ArrayAttr, "{0, 0}">:$frame, OptionalAttr<DG_PlaceAttr>:$place);
  let results = (outs DG_Tensor:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$input `,` $weight (`,` $extras^)? attr-dict `:` functional-type(operands, results) custom<Isolated>($body)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t blockSize = 16;
    /// The input has its channels one after the other: [n, c, h, w].
    bool isPlain();
    /// The type of the sums: the result's without its frame.
    mlir::RankedTensorType getSumsType();
    /// The type of the sums of a convolution of these operands.
    static mlir::RankedTensorType sumsTypeOf(mlir::RankedTensorType input, mlir::RankedTensorType weight, llvm::ArrayRef<int64_t> strides);
  }];
}

def DG_PanelProductOp : DG_Op<"panel_product", (ins DG_Tensor:$input, DG_Tensor:$panels, I64Attr:$columns),
    (outs DG_Tensor:$result), [Sharded, Cost]> {
  let summary = "Product of rows with a matrix that lies in panels of 32 columns";
  let precision = AsWritten;
  let description = [{
    Made by `--dg-pack-scan-weights` after the split phase. Input [rows, depth]; panels [panels, depth, 32], whose first `columns` columns
    count. What a step of a recurrent layer multiplies: the weights are packed once for all steps.
    Example: `%p = dg.panel_product %h, %w {columns = 512 : i64}`.
  }];
  let extraClassDeclaration = [{
    static constexpr int64_t panelColumns = 32;
  }];
}

#endif
