// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/Mesh.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

namespace dg::passes {

/// Of an axis and of the whole mesh; three such axes can be multiplied in 64 bits.
static constexpr int64_t maxRanks = 1 << 20;

Result<plan::Mesh> parseMesh(llvm::StringRef text) {
  plan::Mesh mesh;
  llvm::StringSet<> seen;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    auto [name, sizeText] = part.split('=');
    int64_t size = 0;
    if (sizeText.getAsInteger(10, size) || size < 1 || size > maxRanks)
      return Status::error(ErrorKind::usage, "mesh '{}': found '{}', expected AXIS=SIZE with a size from 1 to {}",
                           text.str(), part.str(), maxRanks);
    auto axis = std::find_if(mesh.axes.begin(), mesh.axes.end(),
                             [&](const plan::MeshAxis &candidate) { return candidate.name == name; });
    if (axis == mesh.axes.end())
      return Status::error(ErrorKind::usage, "mesh '{}': there is no axis '{}', expected data, tensor or pipe",
                           text.str(), name.str());
    if (!seen.insert(name).second)
      return Status::error(ErrorKind::usage, "mesh '{}': axis '{}' stands twice", text.str(), name.str());
    axis->size = size;
  }
  if (int64_t ranks = mesh.numRanks(); ranks > maxRanks)
    return Status::error(ErrorKind::usage, "mesh '{}': found {} ranks, expected at most {}", text.str(), ranks,
                         maxRanks);
  return mesh;
}

mlir::FailureOr<plan::Mesh> parseMesh(llvm::StringRef text, mlir::Location location) {
  Result<plan::Mesh> mesh = parseMesh(text);
  if (!mesh)
    return mlir::emitError(location) << mesh.status().message(), mlir::failure();
  return *mesh;
}

} // namespace dg::passes
