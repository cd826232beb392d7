// SPDX-License-Identifier: Apache-2.0
// Reductions of dimensions to one element; the sum is in ShapeOps.td.
#ifndef DG_IR_REDUCTIONOPS_TD
#define DG_IR_REDUCTIONOPS_TD

include "ir/dialect/OpBase.td"

class DG_Reduction<string mnemonic, string what, list<Trait> traits>
    : DG_Op<mnemonic, (ins DG_Tensor:$input, DenseI64ArrayAttr:$dims, UnitAttr:$keep), (outs DG_Tensor:$result), traits> {
  let precision = Statistics;
  let summary = what # " over `dims`, which vanish, or stay with size 1 with `keep`";
  let description = "Example: `%y = dg." # mnemonic # " %x {dims = array<i64: 1>, keep}`.";
}

def DG_ReduceMaxOp : DG_Reduction<"reduce_max", "The largest element (NaN where there is one; the smallest number of none)", [Gradient, Sharded, Cost, MixesWholeDims]>;
def DG_ReduceMinOp : DG_Reduction<"reduce_min", "The smallest element (NaN where there is one; the largest number of none)", [Gradient, Sharded, Cost, MixesWholeDims]>;
def DG_ReduceProdOp : DG_Reduction<"reduce_prod", "The product (1 of none)", [Gradient, Sharded, Cost, MixesWholeDims]>;
def DG_ReduceMeanOp : DG_Reduction<"reduce_mean", "The mean", [Composite]>;
def DG_ReduceL1Op : DG_Reduction<"reduce_l1", "The sum of |x|", [Composite]>;
def DG_ReduceL2Op : DG_Reduction<"reduce_l2", "√ of the sum of x²", [Composite]>;
def DG_ReduceSumSquareOp : DG_Reduction<"reduce_sum_square", "The sum of x²", [Composite]>;
def DG_ReduceLogSumOp : DG_Reduction<"reduce_log_sum", "The logarithm of the sum", [Composite]>;
def DG_ReduceLogSumExpOp : DG_Reduction<"reduce_log_sum_exp", "The logarithm of the sum of e^x, also where e^x is too large", [Composite]>;

#endif
