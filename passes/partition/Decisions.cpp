// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/Decisions.h"

using namespace mlir;

namespace dg::passes {

/// The IR has its own enum because ir/ does not include the plan; the order is the same.
static ir::Axis inIr(plan::Axis axis) { return ir::Axis(uint32_t(axis)); }
static_assert(uint32_t(plan::Axis::pipe) == uint32_t(ir::Axis::pipe) &&
              uint32_t(plan::Axis::data) == uint32_t(ir::Axis::data) &&
              uint32_t(plan::Axis::tensor) == uint32_t(ir::Axis::tensor));

plan::Mesh getMesh(ModuleOp module) {
  plan::Mesh mesh;
  if (auto written = module->getAttrOfType<ir::MeshAttr>(ir::meshName))
    for (plan::Axis axis : plan::axesOfReplica)
      mesh.sizes[size_t(axis)] = written.sizeOf(inIr(axis));
  return mesh;
}

LogicalResult setMesh(ModuleOp module, const plan::Mesh &mesh) {
  auto written =
      ir::MeshAttr::getChecked([&] { return module.emitError(); }, module.getContext(), mesh.sizeOf(plan::Axis::data),
                               mesh.sizeOf(plan::Axis::tensor), mesh.sizeOf(plan::Axis::pipe));
  if (!written)
    return failure();
  module->setAttr(ir::meshName, written);
  return success();
}

void setCut(Operation *op, ir::CutAttr cut) { op->setAttr(ir::cutName, cut); }

ir::CutAttr takeCut(Operation *op) { return dyn_cast_or_null<ir::CutAttr>(op->removeAttr(ir::cutName)); }

void setRecomputed(Operation *op) { op->setAttr(ir::recomputeName, UnitAttr::get(op->getContext())); }

bool takeRecomputed(Operation *op) { return bool(op->removeAttr(ir::recomputeName)); }

} // namespace dg::passes
