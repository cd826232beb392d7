// SPDX-License-Identifier: Apache-2.0
// Kernels against the reference evaluation of their ops. Cases are collected, compiled into one object, loaded from
// memory, and each is run three times with its tiles in different orders: the bits must not differ, and no byte outside
// a buffer may change.
#pragma once

#include "codegen/kernels/Kernels.h"
#include "ir/dialect/Dialect.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace dg::codegen {

/// A shared object loaded without a file.
class LoadedObject {
public:
  explicit LoadedObject(const std::string &bytes);
  ~LoadedObject();
  void *find(const std::string &symbol) const;
  bool isLoaded() const { return handle != nullptr; }

private:
  void *handle = nullptr;
};

struct CaseOptions {
  double tolerance = 2e-6; ///< of the largest element of the result, besides the rounding of f16 and bf16
  bool positive = false;   ///< operands in [0.5, 2) instead of normally distributed
  int64_t indexBound = 1;  ///< integer operands are below it
  bool wholeRange = false; ///< or have any number of bits, and both signs
  double lr = 0.125;
  int64_t step = 3;
  uint64_t seed = 0;
  bool relative = false; ///< the tolerance is of each element, down to 1e-30
  double spread = 1;     ///< deviation of the operands
  bool specials = false; ///< the first floats are infinities, NaN, zeros and whole numbers
  bool stored = false;   ///< the expected floats are rounded to their type, and the tolerance is all
};

class KernelCases {
public:
  explicit KernelCases(const char *target = "native");

  /// Adds `op` on operands of these types ("3x4xf32", "5xi64"), with attributes in MLIR's text form; result types are
  /// inferred.
  void add(const std::string &op, const std::vector<std::string> &operandTypes, const std::string &attributes = "",
           CaseOptions options = {});
  /// Adds the first op of this name in a module in text form.
  void addText(const std::string &op, const std::string &text, CaseOptions options = {});
  /// Adds an op of a module in `context`, which outlives the cases.
  void addOp(mlir::Operation *op, CaseOptions options, const std::string &name);
  /// Compiles and compares everything. Fails the present test at each case that differs.
  void check();

  mlir::MLIRContext context;
  KernelModule &kernels() { return *module; }
  /// The op, or null where its types cannot be inferred.
  mlir::Operation *make(const std::string &op, const std::vector<std::string> &operandTypes,
                        const std::string &attributes);

private:
  struct Case {
    mlir::Operation *op;
    KernelSpec spec;
    CaseOptions options;
    std::string name;
  };
  void run(const Case &one, const LoadedObject &object);

  std::unique_ptr<KernelModule> module;
  mlir::OwningOpRef<mlir::ModuleOp> holder;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> texts;
  std::vector<Case> cases;
  std::mt19937 random{20261116};
};

} // namespace dg::codegen
