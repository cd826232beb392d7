// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/Mesh.h"

#include "ir/dialect/Dialect.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

namespace dg::passes {

using ir::maxRanks;

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
    std::optional<plan::Axis> axis = enumNamed<plan::Axis>(name);
    if (axis == plan::Axis::replica)
      return Status::error(ErrorKind::usage,
                           "mesh '{}': found {}, but a job is compiled for one replica; dgrun -n, a multiple of the "
                           "job's ranks, runs several",
                           text.str(), part.str());
    if (!axis)
      return Status::error(ErrorKind::usage, "mesh '{}': there is no axis '{}', expected data, tensor or pipe",
                           text.str(), name.str());
    if (!seen.insert(name).second)
      return Status::error(ErrorKind::usage, "mesh '{}': axis '{}' stands twice", text.str(), name.str());
    mesh.sizes[size_t(*axis)] = size;
  }
  if (int64_t ranks = mesh.numRanks(); ranks > maxRanks)
    return Status::error(ErrorKind::usage, "mesh '{}': found {} ranks, expected at most {}", text.str(), ranks,
                         maxRanks);
  return mesh;
}

} // namespace dg::passes
