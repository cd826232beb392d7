// SPDX-License-Identifier: Apache-2.0
// Writes the mesh into the module, where every later pass reads it.
#include "passes/Passes.h"
#include "passes/partition/Decisions.h"
#include "passes/partition/Mesh.h"

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
    if (Status status = checkMesh(mesh); !status) {
      getOperation().emitError(status.message());
      return signalPassFailure();
    }
    setMesh(getOperation(), mesh);
  }
};

} // namespace
} // namespace dg::passes
