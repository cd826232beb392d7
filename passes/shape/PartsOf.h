// SPDX-License-Identifier: Apache-2.0
// A listener for passes that replace one op by several.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::passes {

/// Gives every op that is built the place of the op that it is a part of: label, origin and phase.
class PartsOf : public mlir::OpBuilder::Listener {
public:
  explicit PartsOf(ir::PlaceAttr place) : place(place) {}
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint) override {
    if (place.getOrigin() >= 0 || !place.getLabel().empty())
      ir::setPlace(op, place);
  }

private:
  ir::PlaceAttr place;
};

} // namespace dg::passes
