// SPDX-License-Identifier: Apache-2.0
// Comparison, logic, bits, choice and conversion, element by element.
#ifndef DG_IR_LOGICOPS_TD
#define DG_IR_LOGICOPS_TD

include "ir/ops/elementwise/ElementwiseBase.td"

class DG_BinaryLogic<string mnemonic, Trait domain, string what> : DG_Elementwise<mnemonic, (ins DG_Tensor:$lhs, DG_Tensor:$rhs), domain> {
  let precision = AsWritten;
  let summary = what;
  let description = "Example: `%y = dg." # mnemonic # " %a, %b`.";
}
class DG_UnaryLogic<string mnemonic, Trait domain, string what> : DG_Elementwise<mnemonic, (ins DG_Tensor:$input), domain> {
  let precision = AsWritten;
  let summary = what;
  let description = "Example: `%y = dg." # mnemonic # " %x`.";
}

def DG_CompareOp : DG_Elementwise<"compare", (ins DG_Tensor:$lhs, DG_Tensor:$rhs, StrAttr:$predicate), OwnDomain> {
  let summary = "A bool: a and b compared by `predicate`";
  let precision = AsWritten;
  let description = [{`predicate` is eq, ne, lt, le, gt or ge. NaN is unequal to everything. Example: `%c = dg.compare %a, %b {predicate = "lt"}`.}];
}
def DG_LogicalAndOp : DG_BinaryLogic<"logical_and", Bools, "Whether both bools are true">;
def DG_LogicalOrOp : DG_BinaryLogic<"logical_or", Bools, "Whether one of two bools is true">;
def DG_LogicalXorOp : DG_BinaryLogic<"logical_xor", Bools, "Whether exactly one of two bools is true">;
def DG_LogicalNotOp : DG_UnaryLogic<"logical_not", Bools, "Whether a bool is false">;
def DG_BitAndOp : DG_BinaryLogic<"bit_and", Integers, "The bits that both integers have">;
def DG_BitOrOp : DG_BinaryLogic<"bit_or", Integers, "The bits that one of two integers has">;
def DG_BitXorOp : DG_BinaryLogic<"bit_xor", Integers, "The bits that exactly one of two integers has">;
def DG_BitNotOp : DG_UnaryLogic<"bit_not", Integers, "The bits that an integer does not have">;
def DG_ShiftOp : DG_Elementwise<"shift", (ins DG_Tensor:$lhs, DG_Tensor:$rhs, UnitAttr:$right), Integers> {
  let summary = "The bits of integer a moved by b places to the left, or to the right";
  let precision = AsWritten;
  let description = [{Bits that move in are 0, or the sign of a signed number that moves to the right. Example: `%s = dg.shift %a, %b {right}`.}];
}
def DG_IsNanOp : DG_UnaryLogic<"is_nan", TestedReals, "A bool: whether x is not a number">;
def DG_IsInfOp : DG_Elementwise<"is_inf", (ins DG_Tensor:$input, DefaultValuedAttr<BoolAttr, "true">:$positive,
                                         DefaultValuedAttr<BoolAttr, "true">:$negative), TestedReals> {
  let summary = "A bool: whether x is infinite, with one of the signs that are asked for";
  let precision = AsWritten;
  let description = [{Example: `%y = dg.is_inf %x {negative = false}`.}];
}
def DG_SelectOp : DG_Elementwise<"select", (ins DG_Tensor:$condition, DG_Tensor:$lhs, DG_Tensor:$rhs), OwnDomain, [Gradient]> {
  let summary = "a where the bool is true, else b";
  let precision = Follows;
  let description = [{All three broadcast. Example: `%y = dg.select %c, %a, %b`.}];
}
def DG_CastOp : DG_Elementwise<"cast", (ins DG_Tensor:$input, TypeAttr:$to), OwnDomain, [Gradient]> {
  let summary = "The same numbers with elements of type `to`";
  let precision = AsWritten;
  let description = [{
    Floats that become integers are cut toward 0 and held at the ends of the type, NaN is 0; integers wrap; a bool is x != 0; floats
    round to nearest even. Example: `%h = dg.cast %x {to = f16}`.
  }];
}

#endif
