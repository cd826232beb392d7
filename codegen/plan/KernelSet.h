// SPDX-License-Identifier: Apache-2.0
// The kernels of a whole job: an object for each program and target. A kernel that several programs call stands in the
// object of the first of them.
#pragma once

#include "codegen/kernels/Kernels.h"

#include <list>
#include <vector>

namespace dg::codegen {

class KernelSet {
public:
  /// One object to be.
  struct Object {
    std::string program;
    const Target &target;
    KernelModule kernels;
  };

  KernelSet(mlir::MLIRContext &context, std::vector<Target> targets);

  /// Adds the kernel of the op for every target, where no equal one is known yet. The spec is the first target's;
  /// every object exports its own grid.
  mlir::FailureOr<KernelSpec> addKernel(llvm::StringRef program, mlir::Operation *op);

  /// In the order of programs, then of targets.
  std::list<Object> &objects() { return all; }
  const std::vector<Target> &targets() const { return known; }

private:
  mlir::FailureOr<KernelSpec> addKernel(llvm::StringRef program, const Target &target, mlir::Operation *op);
  mlir::MLIRContext &context;
  const std::vector<Target> known;
  std::list<Object> all;
};

} // namespace dg::codegen
