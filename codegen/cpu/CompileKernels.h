// SPDX-License-Identifier: Apache-2.0
// Kernels to machine code, each by itself: on all cores, and not at all where the cache has it.
#pragma once

#include "codegen/cpu/ObjectCache.h"

#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <vector>

namespace dg::codegen {

/// What generating code took; seconds are those of processors.
struct CodeTimes {
  size_t kernels = 0, cached = 0;
  double lowering = 0, optimizing = 0, generating = 0;
};

struct CodeOptions {
  const ObjectCache *cache = nullptr;
  /// Is called now and then, by the thread that asked for the code.
  std::function<void(size_t done, size_t all)> progress;
  CodeTimes *times = nullptr; ///< is added to
};

/// An object file for each unit, which is a module of loops and vectors as bytecode. Fails with `error`, which is a
/// mistake of an emitter.
mlir::FailureOr<std::vector<std::string>> compileKernels(llvm::ArrayRef<std::string> units, const Target &target,
                                                         const CodeOptions &options, std::string &error);

} // namespace dg::codegen
