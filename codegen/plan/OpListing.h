// SPDX-License-Identifier: Apache-2.0
// What each op of the dialect has of the op contract: the table that `dgc --list-ops` prints and a test holds complete.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <string>
#include <vector>

namespace dg::codegen {

/// The parts of the contract, one column each.
inline constexpr std::array<const char *, 8> contractParts = {"inference", "verifier",  "gradient", "sharding",
                                                              "cost",      "reference", "lowering", "precision"};

/// One op: for each part "yes", "parts" (its parts have it), the reason in words why it has none, or nothing, which is
/// a defect.
struct OpListingRow {
  std::string name;
  std::array<std::string, contractParts.size()> cells;
};

/// All ops of the context's dg dialect, by name.
std::vector<OpListingRow> listOps(mlir::MLIRContext &context);
/// The table as text: marks in the columns, reasons below.
void printOps(mlir::MLIRContext &context, llvm::raw_ostream &os);

} // namespace dg::codegen
