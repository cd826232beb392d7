// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/Decisions.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace dg::passes {

static constexpr llvm::StringLiteral meshName = "dg.mesh", cutName = "dg.cut", recomputeName = "dg.recompute";

static std::optional<int64_t> find(DictionaryAttr dictionary, StringRef name) {
  auto found = dictionary ? dictionary.getAs<IntegerAttr>(name) : IntegerAttr();
  return found ? std::optional(found.getInt()) : std::nullopt;
}

plan::Mesh getMesh(ModuleOp module) {
  plan::Mesh mesh;
  auto written = module->getAttrOfType<DictionaryAttr>(meshName);
  for (plan::Axis axis : plan::axesOfReplica)
    mesh.sizes[size_t(axis)] = find(written, nameOf(axis)).value_or(1);
  return mesh;
}

void setMesh(ModuleOp module, const plan::Mesh &mesh) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> sizes;
  for (plan::Axis axis : plan::axesOfReplica)
    sizes.push_back(builder.getNamedAttr(nameOf(axis), builder.getI64IntegerAttr(mesh.sizeOf(axis))));
  module->setAttr(meshName, builder.getDictionaryAttr(sizes));
}

void setCut(Operation *op, const Cut &cut) {
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> fields;
  if (cut.of != Cut::Of::nothing)
    fields = {
        builder.getNamedAttr(cut.of == Cut::Of::result ? "result" : "operand", builder.getI64IntegerAttr(cut.index)),
        builder.getNamedAttr("dim", builder.getI64IntegerAttr(cut.dim))};
  op->setAttr(cutName, builder.getDictionaryAttr(fields));
}

std::optional<Cut> takeCut(Operation *op) {
  auto written = dyn_cast_or_null<DictionaryAttr>(op->removeAttr(cutName));
  if (!written)
    return std::nullopt;
  const int64_t dim = find(written, "dim").value_or(-1);
  if (auto result = find(written, "result"))
    return Cut{Cut::Of::result, *result, dim};
  if (auto operand = find(written, "operand"))
    return Cut{Cut::Of::operand, *operand, dim};
  return Cut{};
}

void setRecomputed(Operation *op) { op->setAttr(recomputeName, UnitAttr::get(op->getContext())); }

bool takeRecomputed(Operation *op) { return bool(op->removeAttr(recomputeName)); }

} // namespace dg::passes
