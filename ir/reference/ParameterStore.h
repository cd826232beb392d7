// SPDX-License-Identifier: Apache-2.0
// Parameters and optimizer state as global tensors by name, started by their recipes as the runtime starts them.
#pragma once

#include "ir/ops/structure/GraphOps.h"
#include "ir/reference/OpEvaluation.h"

namespace dg::ir {

class ParameterStore {
public:
  /// `seed` is the seed of the run, on which random initial values depend.
  explicit ParameterStore(uint64_t seed = 0) : seed(seed) {}

  /// The present value of the global tensor, made by its recipe at first use; owned by the store. Emits an error on the
  /// op for a tensor that comes from a file and was not set, and for one whose shape is not the declared one.
  mlir::FailureOr<const HostTensor *> get(ParameterOp op);

  void set(const std::string &name, HostTensor value) { values[name] = std::move(value); }

  /// All tensors that were used or set so far.
  const TensorMap &tensors() const { return values; }

private:
  uint64_t seed;
  TensorMap values;
};

/// The initial value of a parameter's global tensor. Same bits as the runtime's: random elements are computed in float
/// from (seed, name, index). Not for recipes that read a file.
HostTensor initialValue(ParameterOp op, uint64_t seed);

} // namespace dg::ir
