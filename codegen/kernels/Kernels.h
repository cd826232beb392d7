// SPDX-License-Identifier: Apache-2.0
// From dg ops with static types to native kernels in one shared object. A kernel follows runtime/abi/KernelAbi.h; its
// tile grid depends on shapes only, so that the same plan gives the same bits on any number of threads.
#pragma once

#include "codegen/cpu/CompileKernels.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <string>

namespace mlir {
class DialectRegistry;
}

namespace dg::codegen {

/// How one op becomes one kernel call. The call's buffers are: the operands in order (for dg.accumulate then its
/// accumulator), the results that are not in place, the scratch buffers.
struct KernelSpec {
  std::string symbol;
  uint32_t tiles = 1; ///< 0: every result is empty, and there is no kernel to call
  llvm::SmallVector<int64_t> scratchBytes;
  /// What the scratch buffers hold.
  llvm::SmallVector<mlir::RankedTensorType> workspaces;
  /// For each result the operand whose buffer it overwrites, or -1.
  llvm::SmallVector<int> aliasedOperand;
};

/// Registers the dialects that KernelModule builds and translates. Call it on the registry of the context.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// True where the op becomes a kernel; false for ops that are memory, set-up or communication (reshape, parameter,
/// all_reduce, …).
bool needsKernel(mlir::Operation *op);

/// The kernels of one program for one target. Not for use by several threads at once.
class KernelModule {
public:
  KernelModule(mlir::MLIRContext &context, const Target &target);
  KernelModule(KernelModule &&);
  ~KernelModule();

  /// Adds the kernel of the op, or finds the equal one: same op, attributes (`place` does not count), types and region.
  /// Emits an error on the op where it has no kernel.
  mlir::FailureOr<KernelSpec> addKernel(mlir::Operation *op);

  /// The kernel of an equal op, if it was added before.
  const KernelSpec *find(mlir::Operation *op) const;

  /// The bytes of a shared object that exports every kernel, its tiles and dg_abi_version.
  mlir::FailureOr<std::string> emitObject(const CodeOptions &options = {});

  /// The kernels as loops and vectors, as optimised LLVM IR, as assembly.
  mlir::LogicalResult emitLinalg(llvm::raw_ostream &os);
  mlir::LogicalResult emitLlvmIr(llvm::raw_ostream &os);
  mlir::LogicalResult emitAsm(llvm::raw_ostream &os);

  size_t size() const { return kernels.size(); }

private:
  mlir::FailureOr<KernelSpec> makeKernel(mlir::Operation *op);
  std::vector<std::string> units();
  Target target;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::StringMap<KernelSpec> kernels; ///< by what makes kernels equal
  llvm::StringSet<> exported;          ///< symbols; only kernels call the others
};

} // namespace dg::codegen
