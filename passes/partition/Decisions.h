// SPDX-License-Identifier: Apache-2.0
// What has been decided about a module, as attributes: the mesh of the module, the cut of an op, and whether it runs
// again in the backward pass. The only file that knows how they are written; stages and shardings are in the place of
// an op (ir/dialect).
#pragma once

#include "runtime/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace dg::passes {

/// The mesh that --dg-set-mesh gave the module, as `dg.mesh = {data = 2 : i64, pipe = 1 : i64, tensor = 1 : i64}`; one
/// rank where it gave none.
plan::Mesh getMesh(mlir::ModuleOp module);
void setMesh(mlir::ModuleOp module, const plan::Mesh &mesh);

/// How a forward op is to be cut over the tensor axis: along this dimension of a result or operand, and with it every
/// operand and result that shares it. Without a dimension every rank does all of the op.
struct Cut {
  enum class Of { nothing, operand, result } of = Of::nothing;
  int64_t index = 0, dim = 0;
};

/// Writes `dg.cut = {dim = 1 : i64, result = 0 : i64}`, or `{}` for nothing.
void setCut(mlir::Operation *op, const Cut &cut);
/// Removes the attribute and returns what it said; nothing where the op has none.
std::optional<Cut> takeCut(mlir::Operation *op);

/// Writes `dg.recompute`: what the forward op makes is not kept for the backward pass, but made again there.
void setRecomputed(mlir::Operation *op);
/// Removes the attribute; whether the op had it.
bool takeRecomputed(mlir::Operation *op);

} // namespace dg::passes
