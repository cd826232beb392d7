// SPDX-License-Identifier: Apache-2.0
// Machine code that outlives a compilation: another mesh, or the same model again, generates only what is new.
#pragma once

#include "codegen/cpu/Target.h"
#include "runtime/support/Status.h"

#include <optional>
#include <string>

namespace dg::codegen {

/// A folder of object files, each named by a digest of all that it depends on. Several processes and threads may use it
/// at once. What is damaged counts as missing.
class ObjectCache {
public:
  /// The most that a folder holds; what was not used for the longest time goes first.
  static constexpr uint64_t mostBytes = uint64_t(1) << 30;

  /// Makes the folder where it is missing. Fails with usage where it cannot be used, or where others can write to it:
  /// they would choose the code that jobs run.
  static Result<ObjectCache> open(std::string folder);

  /// Of the code that this compiler makes of `kernel` for `target`.
  std::string keyOf(llvm::StringRef kernel, const Target &target) const;
  std::optional<std::string> find(llvm::StringRef key) const;
  /// A folder that takes no more is no failure.
  void store(llvm::StringRef key, llvm::StringRef object) const;
  /// Removes what is over the limit, at most once a minute over all processes.
  void prune() const;

private:
  ObjectCache(std::string folder, std::string compiler) : folder(std::move(folder)), compiler(std::move(compiler)) {}
  std::string pathOf(llvm::StringRef key) const;
  std::string folder;
  std::string compiler; ///< build ids of this program and of all libraries that it has loaded
};

} // namespace dg::codegen
