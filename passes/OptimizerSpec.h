// SPDX-License-Identifier: Apache-2.0
// An optimizer as a user names it: sgd:lr=0.01,momentum=0.5.
#pragma once

#include "runtime/support/Status.h"

#include "llvm/ADT/StringRef.h"

namespace dg::passes {

struct OptimizerSpec {
  enum class Kind { sgd, adam, adamw } kind = Kind::sgd;
  double lr = 0;
  double momentum = 0;
  bool isNesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weightDecay = 0;
};

/// Reads NAME[:key=value,…]. Keys of sgd: lr (0.01), momentum, nesterov, weight_decay; of adam and adamw: lr (0.001),
/// beta1, beta2, eps, weight_decay (adamw: 0.01). Fails with usage on an unknown name or key, or a value that is no
/// number.
Result<OptimizerSpec> parseOptimizer(llvm::StringRef text);

} // namespace dg::passes
