// SPDX-License-Identifier: Apache-2.0
// Evaluates a typed graph op by op, slowly and plainly: the oracle of the tests, never what dgrun runs.
#pragma once

#include "ir/ops/structure/GraphOps.h"
#include "ir/reference/ParameterStore.h"

namespace dg::ir {

class ReferenceExecutor {
public:
  explicit ReferenceExecutor(Precision precision = Precision::f64) : precision(precision) {}

  /// Runs the graph once on inputs by name; the answer holds its results by name (see resultNames). Parameters are read
  /// from the store, and every dg.update is written to it after the last op. Where something is missing or does not
  /// fit, emits an error on the guilty op and leaves the store's present values alone.
  mlir::FailureOr<TensorMap> run(GraphOp graph, const TensorMap &inputs, ParameterStore &parameters,
                                 const RunScalars &scalars = {}) const;

private:
  Precision precision;
};

} // namespace dg::ir
