// SPDX-License-Identifier: Apache-2.0
// Files beside a model that hold tensors too large for it. A model is a stranger's file: what it names must be inside
// its own folder, and no more is read than the file has.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"

#include <memory>
#include <string>

namespace dg::ir::onnx_import {

class ExternalFiles {
public:
  /// `folder` is the model's.
  explicit ExternalFiles(std::string folder) : folder(std::move(folder)) {}
  ~ExternalFiles();
  ExternalFiles(const ExternalFiles &) = delete;
  ExternalFiles &operator=(const ExternalFiles &) = delete;

  /// `length` bytes from `offset` on, or all up to the end where `length` is negative; mapped, valid as long as this
  /// object. Refuses, with a diagnostic at `location`, absolute names, `..`, symbolic links on the way, files with more
  /// than one name (a hard link may lead out of the folder), and ranges outside of the file.
  mlir::FailureOr<llvm::ArrayRef<char>> read(mlir::Location location, llvm::StringRef name, int64_t offset,
                                             int64_t length);

private:
  mlir::FailureOr<llvm::ArrayRef<char>> open(mlir::Location location, llvm::StringRef name);
  std::string folder;
  llvm::StringMap<llvm::ArrayRef<char>> files; ///< mapped
};

} // namespace dg::ir::onnx_import
