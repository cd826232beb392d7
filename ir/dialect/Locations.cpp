// SPDX-License-Identifier: Apache-2.0
#include "ir/dialect/Locations.h"

#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace dg::ir {

std::string sourceOf(Location location) {
  std::string text;
  location->walk([&](Location part) {
    auto file = dyn_cast<FileLineColLoc>(part);
    if (!file)
      return WalkResult::advance();
    text = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" + Twine(file.getColumn())).str();
    return WalkResult::interrupt();
  });
  return text;
}

} // namespace dg::ir
