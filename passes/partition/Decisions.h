// SPDX-License-Identifier: Apache-2.0
// What has been decided about a module, as passes write and read it: the mesh of the module, the cut of an op, and
// whether it runs again in the backward pass. The attributes are those of ir/dialect; stages and shardings are in the
// place of an op.
#pragma once

#include "ir/dialect/Dialect.h"
#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

namespace dg::passes {

/// The mesh that --dg-set-mesh gave the module; one rank where it gave none.
plan::Mesh getMesh(mlir::ModuleOp module);
/// Writes `dg.mesh`. Fails, with an error on the module, where an axis or the mesh has no rank or too many.
mlir::LogicalResult setMesh(mlir::ModuleOp module, const plan::Mesh &mesh);

/// Writes `dg.cut` of a forward op.
void setCut(mlir::Operation *op, ir::CutAttr cut);
/// Removes the attribute and returns it; null where the op has none.
ir::CutAttr takeCut(mlir::Operation *op);

/// Writes `dg.recompute`: what the forward op makes is not kept for the backward pass, but made again there.
void setRecomputed(mlir::Operation *op);
/// Removes the attribute; whether the op had it.
bool takeRecomputed(mlir::Operation *op);

} // namespace dg::passes
