// SPDX-License-Identifier: Apache-2.0
// Writes the mesh into the module, where every later pass reads it.
#include "passes/Passes.h"
#include "passes/partition/Decisions.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_SETMESH
#include "passes/Passes.h.inc"

namespace {

struct SetMeshPass : impl::SetMeshBase<SetMeshPass> {
  using SetMeshBase::SetMeshBase;

  void runOnOperation() override {
    plan::Mesh mesh;
    mesh.sizes = {pipe, data, tensor};
    if (failed(setMesh(getOperation(), mesh)))
      signalPassFailure();
  }
};

} // namespace
} // namespace dg::passes
