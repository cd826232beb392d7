// SPDX-License-Identifier: Apache-2.0
// Facts of ops that are values: templates that a definition in ODS names (see OpBase.td) and that answer the
// interfaces. Apart from OpContract.h because they need the generated interfaces.
#pragma once

#include "ir/dialect/OpContract.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "ir/dialect/Interfaces.h.inc"

namespace dg::ir {

template <PrecisionClass kind> struct HasPrecision {
  template <typename Op> struct Impl : mlir::OpTrait::TraitBase<Op, HasPrecision<kind>::template Impl> {
    static PrecisionClass getPrecisionClass() { return kind; }
    static mlir::LogicalResult verifyTrait(mlir::Operation *) {
      static_assert(kind != PrecisionClass::undecided, "the op's definition lacks `let precision = …`, see OpBase.td");
      return mlir::success();
    }
  };
};

/// Parts of the contract that OpBase.td writes.
template <typename Op> struct InfersTypes : mlir::OpTrait::TraitBase<Op, InfersTypes> {};
template <typename Op> struct InDomain : mlir::OpTrait::TraitBase<Op, InDomain> {};
template <typename Op> struct Computed : mlir::OpTrait::TraitBase<Op, Computed> {};
template <typename Op> struct HasCost : mlir::OpTrait::TraitBase<Op, HasCost> {};
template <typename Op> struct Broadcasts : mlir::OpTrait::TraitBase<Op, Broadcasts> {};

/// Each element of a result depends on all of a dimension that the sharding rule does not follow.
template <typename Op> struct MixesWholeDims : mlir::OpTrait::TraitBase<Op, MixesWholeDims> {};
/// Whether it is such an op.
inline bool mixesWholeDims(mlir::Operation *op) { return op->hasTrait<MixesWholeDims>(); }

/// The result is the memory of the operand under another shape.
template <typename Op> struct View : mlir::OpTrait::TraitBase<Op, View> {};
/// Whether it is such an op.
inline bool isView(mlir::Operation *op) { return op->hasTrait<View>(); }

/// The elements of the operand in another order or shape and nothing else.
template <typename Op> struct Rearranges : mlir::OpTrait::TraitBase<Op, Rearranges> {};
/// Whether it is such an op.
inline bool isRearrangement(mlir::Operation *op) { return op->hasTrait<Rearranges>(); }

} // namespace dg::ir
