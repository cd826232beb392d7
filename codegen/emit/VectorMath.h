// SPDX-License-Identifier: Apache-2.0
// Functions of floats on vectors or scalars of f32 and f64, without a call: the same object gives the same bits on
// every host. exp, log, tanh, erf and sigmoid of f32 are computed in f32; the others in f64, so that the result is the
// nearest float or its neighbour. Methods and polynomials are those of Cephes (S. Moshier), erf of f32 N. Juffa's.
//
// Largest errors over random arguments, in units of the last place (tests/unit/codegen/VectorMathTest.cpp holds them to
// these): f32 exp, log, tanh and erf 2, sigmoid 3, the others 1. f64 exp, log, erf, sigmoid, atan and cosh 4; sin, cos
// and tan 16; the others 8.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace dg::codegen::vmath {

Value exp(KernelBuilder &kernel, Value x);
Value expm1(KernelBuilder &kernel, Value x);
Value log(KernelBuilder &kernel, Value x);
Value log1p(KernelBuilder &kernel, Value x);
Value sin(KernelBuilder &kernel, Value x);
Value cos(KernelBuilder &kernel, Value x);
Value tan(KernelBuilder &kernel, Value x);
Value asin(KernelBuilder &kernel, Value x);
Value acos(KernelBuilder &kernel, Value x);
Value atan(KernelBuilder &kernel, Value x);
Value sinh(KernelBuilder &kernel, Value x);
Value cosh(KernelBuilder &kernel, Value x);
Value tanh(KernelBuilder &kernel, Value x);
Value asinh(KernelBuilder &kernel, Value x);
Value acosh(KernelBuilder &kernel, Value x);
Value atanh(KernelBuilder &kernel, Value x);
Value erf(KernelBuilder &kernel, Value x);
Value sigmoid(KernelBuilder &kernel, Value x);
Value softplus(KernelBuilder &kernel, Value x);
/// x^y; for f64 a call of the C library's pow.
Value pow(KernelBuilder &kernel, Value x, Value y);

} // namespace dg::codegen::vmath
