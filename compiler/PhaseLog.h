// SPDX-License-Identifier: Apache-2.0
// --save-phases: the graph as each pass left it, for dgviz. Kept apart from Compile.cpp because a compilation without
// it never runs any of this.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <memory>
#include <string>

namespace dg::compiler {

/// Listens to a pass manager. One thread.
class PhaseLog {
public:
  PhaseLog();
  ~PhaseLog();
  /// Takes the graph as it is now as "what was read", and then after each pass of `manager` that changes it.
  void attach(mlir::PassManager &manager, mlir::ModuleOp module);
  /// {"version": 1, "phases": [{"pass", "summary", "added": {op: n}, "removed": {op: n}, "ops": [[name, op, program,
  /// phase, stage]…], "flow": [[from, to]…]}…]}. Ops are counted by kind and name: one that a pass replaced is both
  /// removed and added. Ops inside of a fused op are not listed.
  std::string toJson() const;

private:
  struct Snapshots;
  std::shared_ptr<Snapshots> snapshots; ///< shared with the instrumentation, which the pass manager owns
};

} // namespace dg::compiler
