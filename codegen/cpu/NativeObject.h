// SPDX-License-Identifier: Apache-2.0
// From an LLVM module to machine code: -O3 for the target's processor, position-independent object, shared object by
// lld.
#pragma once

#include "codegen/cpu/Target.h"

#include "mlir/Support/LogicalResult.h"
#include "llvm/ADT/ArrayRef.h"

#include <shared_mutex>
#include <string>

namespace llvm {
class Module;
}

namespace dg::codegen {

enum class CodeForm { object, assembly };

// Any thread may call these. lld keeps its state in globals, and resets those of LLVM's options: a link runs alone.

/// Held by whoever uses LLVM or MLIR in other ways than by the functions below while another thread may link.
std::shared_lock<std::shared_mutex> useLlvm();

/// Runs LLVM's -O3 pipeline for the target.
void optimize(llvm::Module &module, const Target &target);

/// Machine code as an object file's bytes or as text.
mlir::FailureOr<std::string> generate(llvm::Module &module, const Target &target, CodeForm form);

/// Links object files into a shared object, in process. Files it needs stand in a folder of its own in the temporary
/// directory and are gone when it returns.
mlir::FailureOr<std::string> linkShared(llvm::ArrayRef<std::string> objects, std::string &error);

} // namespace dg::codegen
