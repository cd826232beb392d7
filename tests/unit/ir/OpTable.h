// SPDX-License-Identifier: Apache-2.0
// One table of op instances with random shapes, on which the suites of this folder check each part of the op contract.
#pragma once

#include "ir/ops/structure/GraphOps.h"
#include "ir/reference/ReferenceExecutor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <random>

namespace dg::ir::test {

/// What the elements of an operand may be.
enum class Elements { real, positive, small, aboveOne, index, boolean };

struct OperandSpec {
  /// Sizes, each a product of letters and numbers: "n 3 h*w". A letter is drawn once for the whole instance.
  std::string shape;
  Elements elements = Elements::real;
  /// For indices: the size that bounds them.
  std::string bound = "";
};

/// `text` is an op on %a, %b, … with $x, or ${h*w}, for the size of a letter.
struct OpSpec {
  std::string text;
  std::vector<OperandSpec> operands;
  size_t numResults = 1;
};

/// Every op of the dialect with a reference evaluation, in the forms that matter.
const std::vector<OpSpec> &opTable();

/// A graph of one op, with types, and random operands for it.
struct OpInstance {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string text;
  std::vector<HostTensor> operands;

  GraphOp graph();
  mlir::Operation *op();
  /// Operands by the names of the graph's inputs.
  TensorMap inputs();
};

/// Draws sizes from `sizes` and elements from [-1, 1], away from 0 (where relu has a corner).
OpInstance instantiate(const OpSpec &spec, llvm::ArrayRef<int64_t> sizes, std::mt19937_64 &random,
                       mlir::MLIRContext &context);

/// The same without a module: of sizes, as 0, that the op may refuse.
OpInstance draw(const OpSpec &spec, llvm::ArrayRef<int64_t> sizes, std::mt19937_64 &random);

/// Parses a module of untyped graphs.
mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context, const std::string &text);

/// Gives arguments the types that the graph declares and infers every other type, as far as types go.
mlir::LogicalResult deduce(GraphOp graph);

HostTensor randomTensor(llvm::ArrayRef<int64_t> shape, std::mt19937_64 &random);

/// A context with the dialect.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// The seed of a suite: DG_TEST_SEED where it is set. Printed, so that a failure can be repeated.
uint64_t suiteSeed();

/// The largest difference of two tensors, relative to the larger of 1 and the largest element.
double difference(const HostTensor &a, const HostTensor &b);

} // namespace dg::ir::test
