// SPDX-License-Identifier: Apache-2.0
// The processor that kernels are generated for.
#pragma once

#include "mlir/Support/LogicalResult.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace dg::codegen {

struct Target {
  std::string name;     ///< as the user gave it: "native", "x86-64-v3", "x86-64-v4", "sapphirerapids"
  std::string cpu;      ///< as LLVM names it: "znver3"
  std::string features; ///< LLVM feature string: "+avx2,+fma,…"; empty: what the cpu has
  int64_t vectorBytes = 16;
  int64_t vectorRegisters = 16;
  int64_t realBytes = 4; ///< of the elements that a kernel computes with: 8 in a kernel of f64

  /// `native` asks the host for its name and features. On failure `error` says what was found and what is known.
  static mlir::FailureOr<Target> parse(llvm::StringRef name, std::string &error);

  /// The instruction sets that the objects use, by the names that cpuid checks know ("avx2", "fma", "avx512f"); a host
  /// that lacks one of them cannot run the objects.
  llvm::SmallVector<std::string> requiredFeatures() const;

  /// Whether one instruction adds products of pairs of bf16 to sums in f32.
  bool multipliesPairs() const;

  /// Whether there are registers of 16 × 16 sums for that (AMX).
  bool multipliesTiles() const;

  /// Elements of `realBytes` in one vector register.
  int64_t lanes() const { return vectorBytes / realBytes; }
};

} // namespace dg::codegen
