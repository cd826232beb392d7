// SPDX-License-Identifier: Apache-2.0
// Functions of one float, element by element.
#ifndef DG_IR_MATHOPS_TD
#define DG_IR_MATHOPS_TD

include "ir/ops/elementwise/ElementwiseBase.td"

class DG_Math<string mnemonic, string what, Trait kind> : DG_Elementwise<mnemonic, (ins DG_Tensor:$input), Reals, [Gradient]> {
  let precision = kind;
  let summary = what;
  let description = "Example: `%y = dg." # mnemonic # " %x`.";
}

def DG_ReciprocalOp : DG_Math<"reciprocal", "1 / x", Steep>;
def DG_SqrtOp : DG_Math<"sqrt", "√x", Steep>;
def DG_RsqrtOp : DG_Math<"rsqrt", "1 / √x", Steep>;
def DG_ExpOp : DG_Math<"exp", "e^x", Steep>;
def DG_Expm1Op : DG_Math<"expm1", "e^x - 1, also where x is small", Steep>;
def DG_LogOp : DG_Math<"log", "The natural logarithm", Steep>;
def DG_Log1pOp : DG_Math<"log1p", "log(1 + x), also where x is small", Steep>;
def DG_SinOp : DG_Math<"sin", "The sine", AsWritten>;
def DG_CosOp : DG_Math<"cos", "The cosine", AsWritten>;
def DG_TanOp : DG_Math<"tan", "The tangent", Steep>;
def DG_AsinOp : DG_Math<"asin", "The inverse of sin", AsWritten>;
def DG_AcosOp : DG_Math<"acos", "The inverse of cos", AsWritten>;
def DG_AtanOp : DG_Math<"atan", "The inverse of tan", AsWritten>;
def DG_SinhOp : DG_Math<"sinh", "The hyperbolic sine", Steep>;
def DG_CoshOp : DG_Math<"cosh", "The hyperbolic cosine", Steep>;
def DG_TanhOp : DG_Math<"tanh", "The hyperbolic tangent", Follows>;
def DG_AsinhOp : DG_Math<"asinh", "The inverse of sinh", AsWritten>;
def DG_AcoshOp : DG_Math<"acosh", "The inverse of cosh", AsWritten>;
def DG_AtanhOp : DG_Math<"atanh", "The inverse of tanh", AsWritten>;
def DG_ErfOp : DG_Math<"erf", "The error function", AsWritten>;
def DG_FloorOp : DG_Math<"floor", "The largest whole number that is not above x; its gradient is 0", AsWritten>;
def DG_CeilOp : DG_Math<"ceil", "The smallest whole number that is not below x; its gradient is 0", AsWritten>;
def DG_RoundOp : DG_Math<"round", "The nearest whole number, the even one of two; its gradient is 0", AsWritten>;
def DG_TruncOp : DG_Math<"trunc", "The whole number towards 0; its gradient is 0", AsWritten>;
def DG_SigmoidOp : DG_Math<"sigmoid", "1 / (1 + e^-x)", Follows>;
def DG_SoftplusOp : DG_Math<"softplus", "log(1 + e^x), also where x is large", Steep>;

#endif
