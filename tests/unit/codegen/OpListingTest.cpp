// SPDX-License-Identifier: Apache-2.0
// Proves that no op lacks a part of the contract without a reason in words, and that the printed table names every op.
#include "codegen/plan/OpListing.h"
#include "ir/dialect/Dialect.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

TEST(OpListing, EveryCellIsFilledOrExplained) {
  mlir::MLIRContext context;
  context.loadDialect<dg::ir::DGDialect>();
  std::vector<OpListingRow> rows = listOps(context);
  EXPECT_GT(rows.size(), 100u);
  for (const OpListingRow &row : rows)
    for (size_t part = 0; part < contractParts.size(); ++part)
      EXPECT_FALSE(row.cells[part].empty()) << row.name << " has no " << contractParts[part]
                                            << ": bring it, or say in codegen/plan/OpListing.cpp why there is none";
}

TEST(OpListing, PrintsEveryOp) {
  mlir::MLIRContext context;
  context.loadDialect<dg::ir::DGDialect>();
  std::string text;
  llvm::raw_string_ostream os(text);
  printOps(context, os);
  for (const OpListingRow &row : listOps(context))
    EXPECT_NE(text.find("\n" + row.name + " "), std::string::npos) << row.name;
  EXPECT_EQ(text.find("MISSING"), std::string::npos);
}
