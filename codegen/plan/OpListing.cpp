// SPDX-License-Identifier: Apache-2.0
// The table of ops, read from their interfaces and from the kernel table, and the reasons for what an op lacks.
#include "codegen/plan/OpListing.h"

#include "codegen/kernels/KernelTable.h"
#include "ir/dialect/Dialect.h"

#include "llvm/ADT/StringSwitch.h"

#include <map>

using namespace mlir;

namespace dg::codegen {

namespace {

enum Part { inference, verifier, gradient, sharding, cost, reference, lowering, precision };

/// Ops that are not computed from operands: what a graph is made of, and what the compiler puts into it.
std::string structureReason(StringRef name, Part part) {
  std::string what =
      llvm::StringSwitch<std::string>(name)
          .Case("dg.graph", "a graph is not an op on tensors")
          .Case("dg.return", "it names results and makes none")
          .Case("dg.parameter", "memory: its type is written, its start is a recipe")
          .Case("dg.update", "it names the next value and makes none")
          .Cases("dg.all_reduce", "dg.all_gather", "dg.reduce_scatter", "dg.slice_shard",
                 "made by the split phase, on local types; the runtime does it")
          .Cases("dg.send", "dg.receive", "made by the split phase, on local types; the runtime does it")
          .Cases("dg.accumulate", "dg.accumulated", "made by the split phase for micro-batches")
          .Cases("dg.fused", "dg.blocked_conv", "made of ops that have it, after gradients and the split")
          .Default("");
  return part == verifier && !what.empty() ? "yes" : what;
}

std::string gradientReason(StringRef name) {
  if (name.ends_with("_grad"))
    return "the gradient of another op, written for speed; second derivatives of it are not offered";
  return llvm::StringSwitch<std::string>(name)
      .Cases("dg.compare", "dg.is_nan", "dg.is_inf", "dg.logical_and", "dg.logical_or", "dg.logical_xor",
             "dg.logical_not", "its result is a bool")
      .Cases("dg.bit_and", "dg.bit_or", "dg.bit_xor", "dg.bit_not", "dg.shift", "its result is an integer")
      .Cases("dg.arg_max", "dg.arg_min", "its result is a place")
      .Case("dg.correct", "it counts, for reports")
      .Case("dg.one_hot", "its operand is a place")
      .Case("dg.while", "it is forward only: how often it runs is known only then; dg.scan has one")
      .Cases("dg.iota", "dg.random_key", "it has no operand")
      .Case("dg.random_bits", "its operands are places")
      .Cases("dg.sgd", "dg.momentum", "dg.adam", "dg.adagrad", "dg.rmsprop", "dg.lion", "dg.lamb_direction",
             "dg.lamb_step", "dg.clip_gradient", "a step of the optimizer, behind which nothing is trained")
      .Case("dg.max_pool_indices", "its result is a place")
      .Case("dg.panel_product", "made by the layout passes, after gradients")
      .Default("");
}

std::string loweringReason(StringRef name) {
  return llvm::StringSwitch<std::string>(name)
      .Case("dg.reshape", "the same memory under another shape")
      .Cases("dg.constant", "dg.literal", "memory that is written at set-up")
      .Cases("dg.scan", "dg.if", "dg.while", "its kernel calls those of its body")
      .Default("");
}

std::string precisionReason(StringRef name) {
  return llvm::StringSwitch<std::string>(name)
      .Cases("dg.constant", "dg.literal", "dg.iota", "dg.eye", "dg.random_key", "it has no operand")
      .Cases("dg.scan", "dg.if", "dg.while", "its body is computed as it is written")
      .Default("");
}

OpListingRow rowOf(RegisteredOperationName name) {
  OpListingRow row;
  row.name = name.getStringRef().str();
  bool hasParts = name.hasInterface<ir::CompositeOp>() || name.hasInterface<ir::LossOp>();
  bool isInferred = name.hasInterface<InferTypeOpInterface>();
  auto fill = [&](Part part, bool hasIt, bool mayInherit, const std::string &reason) {
    row.cells[part] = hasIt ? "yes" : mayInherit && hasParts ? "parts" : reason;
    if (row.cells[part].empty())
      row.cells[part] = structureReason(row.name, part);
  };
  fill(inference, isInferred, false, "");
  // An op whose types are inferred is verified against them, with the messages of its inference.
  fill(verifier, isInferred, false, "");
  fill(gradient, name.hasInterface<ir::GradientOp>(), true, gradientReason(row.name));
  fill(sharding, name.hasInterface<ir::ShardingRuleOp>(), true, "");
  fill(cost, name.hasInterface<ir::CostOp>(), true, "");
  fill(reference, name.hasInterface<ir::ReferenceOp>(), true, "");
  fill(lowering, kernelTable().contains(row.name), true, loweringReason(row.name));
  fill(precision, name.hasInterface<ir::PrecisionOp>(), false, precisionReason(row.name));
  return row;
}

} // namespace

std::vector<OpListingRow> listOps(MLIRContext &context) {
  std::vector<OpListingRow> rows;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == ir::DGDialect::getDialectNamespace())
      rows.push_back(rowOf(name));
  llvm::sort(rows, [](const OpListingRow &a, const OpListingRow &b) { return a.name < b.name; });
  return rows;
}

void printOps(MLIRContext &context, llvm::raw_ostream &os) {
  std::vector<OpListingRow> rows = listOps(context);
  size_t width = 0;
  for (const OpListingRow &row : rows)
    width = std::max(width, row.name.size());
  auto printRow = [&](StringRef name, auto cellOf) {
    os << name << std::string(width - name.size(), ' ');
    for (size_t part = 0; part < contractParts.size(); ++part) {
      std::string cell = cellOf(part);
      os << "  " << cell << std::string(9 - std::min<size_t>(9, cell.size()), ' ');
    }
    os << '\n';
  };
  printRow("op", [](size_t part) { return std::string(contractParts[part]); });
  std::map<std::string, unsigned> numbers;
  for (const OpListingRow &row : rows)
    printRow(row.name, [&](size_t part) -> std::string {
      const std::string &cell = row.cells[part];
      if (cell == "yes" || cell == "parts" || cell.empty())
        return cell.empty() ? "MISSING" : cell;
      unsigned number = numbers.try_emplace(cell, unsigned(numbers.size()) + 1).first->second;
      return "(" + std::to_string(number) + ")";
    });
  os << "\nparts: the op is taken apart, and its parts have it\n";
  std::map<unsigned, std::string> reasons;
  for (auto &[reason, number] : numbers)
    reasons[number] = reason;
  for (auto &[number, reason] : reasons)
    os << '(' << number << ") " << reason << '\n';
  os << rows.size() << " ops\n";
}

} // namespace dg::codegen
