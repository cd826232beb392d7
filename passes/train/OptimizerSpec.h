// SPDX-License-Identifier: Apache-2.0
// An optimizer as a user names it: sgd:lr=0.01,momentum=0.5;*.bias:weight_decay=0;head.*:lr=0.1.
#pragma once

#include "runtime/support/Status.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace dg::passes {

struct OptimizerSpec {
  enum class Kind { sgd, adam, adamw, adagrad, rmsprop, lamb, lion } kind = Kind::sgd;
  double lr = 0;
  double momentum = 0;
  double nesterov = 0; ///< a switch: any number but 0
  double beta1 = 0.9, beta2 = 0.999, alpha = 0.99, epsilon = 1e-8;
  double lrDecay = 0, initialSum = 0; ///< of adagrad
  double weightDecay = 0;
  double clipNorm = 0, clipValue = 0; ///< 0: not clipped
  double gradNorm = 0; ///< a switch: steps tell the norm of all gradients, as they do where it is clipped

  /// What parameters whose names match a pattern with * and ? have of their own.
  struct Group {
    std::string pattern;
    std::optional<double> lr, weightDecay;
  };
  std::vector<Group> groups = {};

  /// That of the last group that matches and has one, else the optimizer's.
  double weightDecayOf(llvm::StringRef parameter) const;
  /// The parameter's learning rate divided by the optimizer's: what the run's rate, scheduled or not, is multiplied by.
  double rateFactorOf(llvm::StringRef parameter) const;
  /// Whether something that this group, one of `groups`, says of the parameter counts.
  bool isRuledBy(const Group &group, llvm::StringRef parameter) const;
};

/// Reads NAME[:key=value,…][;PATTERN:lr=value,weight_decay=value]…. All have lr, weight_decay, clip_norm,
/// clip_value and grad_norm. Others, with PyTorch's defaults: sgd (lr 0.01) momentum, nesterov; adam, adamw (0.001,
/// decay 0.01) beta1, beta2, eps; adagrad (0.01) lr_decay, eps, initial_sum; rmsprop (0.01) alpha, eps, momentum; lamb
/// (0.001, eps 1e-6) beta1, beta2, eps; lion (0.0001, beta2 0.99) beta1, beta2. Fails with usage on an unknown name or
/// key, or a value that is no number.
Result<OptimizerSpec> parseOptimizer(llvm::StringRef text);

} // namespace dg::passes
