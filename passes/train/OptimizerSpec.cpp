// SPDX-License-Identifier: Apache-2.0
#include "passes/train/OptimizerSpec.h"

#include "passes/train/NamePattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

namespace dg::passes {

namespace {

using Kind = OptimizerSpec::Kind;

struct Key {
  llvm::StringRef name;
  double OptimizerSpec::*number;
  bool isBelowOne = false;
};

constexpr Key lr = {"lr", &OptimizerSpec::lr}, momentum = {"momentum", &OptimizerSpec::momentum, true},
              nesterov = {"nesterov", &OptimizerSpec::nesterov}, beta1 = {"beta1", &OptimizerSpec::beta1, true},
              beta2 = {"beta2", &OptimizerSpec::beta2, true}, alpha = {"alpha", &OptimizerSpec::alpha, true},
              eps = {"eps", &OptimizerSpec::epsilon}, lrDecay = {"lr_decay", &OptimizerSpec::lrDecay},
              initialSum = {"initial_sum", &OptimizerSpec::initialSum},
              weightDecay = {"weight_decay", &OptimizerSpec::weightDecay},
              clipNorm = {"clip_norm", &OptimizerSpec::clipNorm}, clipValue = {"clip_value", &OptimizerSpec::clipValue},
              gradNorm = {"grad_norm", &OptimizerSpec::gradNorm};

/// An optimizer: its name, its own defaults and the keys that not all have.
struct Optimizer {
  llvm::StringRef name;
  OptimizerSpec defaults;
  llvm::SmallVector<Key> keys;
};

const std::vector<Optimizer> &optimizers() {
  static const std::vector<Optimizer> all = {
      {"sgd", {.kind = Kind::sgd, .lr = 0.01}, {momentum, nesterov}},
      {"adam", {.kind = Kind::adam, .lr = 0.001}, {beta1, beta2, eps}},
      {"adamw", {.kind = Kind::adamw, .lr = 0.001, .weightDecay = 0.01}, {beta1, beta2, eps}},
      {"adagrad", {.kind = Kind::adagrad, .lr = 0.01, .epsilon = 1e-10}, {lrDecay, eps, initialSum}},
      {"rmsprop", {.kind = Kind::rmsprop, .lr = 0.01}, {alpha, eps, momentum}},
      {"lamb", {.kind = Kind::lamb, .lr = 0.001, .epsilon = 1e-6}, {beta1, beta2, eps}},
      {"lion", {.kind = Kind::lion, .lr = 0.0001, .beta2 = 0.99}, {beta1, beta2}},
  };
  return all;
}

/// The assignments key=value,… of one part of the text.
class Assignments {
public:
  Assignments(llvm::StringRef text, llvm::StringRef owner) : text(text), owner(owner) {}

  Status parse(llvm::StringRef assignments, llvm::ArrayRef<Key> keys, OptimizerSpec &spec) {
    llvm::SmallVector<llvm::StringRef> parts;
    assignments.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    llvm::StringSet<> seen;
    for (llvm::StringRef part : parts) {
      auto [name, value] = part.split('=');
      const Key *key = llvm::find_if(keys, [name = name](const Key &key) { return key.name == name; });
      if (key == keys.end()) {
        llvm::SmallVector<llvm::StringRef> known;
        for (const Key &key : keys)
          known.push_back(key.name);
        return Status::error(ErrorKind::usage, "optimizer '{}': {} has no '{}', expected one of {}", text.str(),
                             owner.str(), name.str(), llvm::join(known, ", "));
      }
      if (!seen.insert(name).second)
        return Status::error(ErrorKind::usage, "optimizer '{}': '{}' is given twice, expected each key once",
                             text.str(), name.str());
      double &number = spec.*key->number;
      if (value.getAsDouble(number) || !std::isfinite(number) || number < 0)
        return Status::error(ErrorKind::usage, "optimizer '{}': found '{}', expected {}= a number of at least 0",
                             text.str(), part.str(), name.str());
      if (number >= 1 && key->isBelowOne)
        return Status::error(ErrorKind::usage, "optimizer '{}': found '{}', expected a number below 1", text.str(),
                             part.str());
    }
    return Status::ok();
  }

private:
  llvm::StringRef text, owner;
};

} // namespace

using GroupNumber = std::optional<double> OptimizerSpec::Group::*;

/// The last group that matches and has the number, or null.
static const OptimizerSpec::Group *lastWith(const std::vector<OptimizerSpec::Group> &groups, llvm::StringRef parameter,
                                            GroupNumber number) {
  for (const OptimizerSpec::Group &group : llvm::reverse(groups))
    if (group.*number && matchesPattern(parameter, group.pattern))
      return &group;
  return nullptr;
}

static std::optional<double> lastOf(const std::vector<OptimizerSpec::Group> &groups, llvm::StringRef parameter,
                                    GroupNumber number) {
  const OptimizerSpec::Group *group = lastWith(groups, parameter, number);
  return group ? group->*number : std::nullopt;
}

bool OptimizerSpec::isRuledBy(const Group &group, llvm::StringRef parameter) const {
  return lastWith(groups, parameter, &Group::lr) == &group ||
         lastWith(groups, parameter, &Group::weightDecay) == &group;
}

double OptimizerSpec::weightDecayOf(llvm::StringRef parameter) const {
  return lastOf(groups, parameter, &Group::weightDecay).value_or(weightDecay);
}

double OptimizerSpec::rateFactorOf(llvm::StringRef parameter) const {
  std::optional<double> own = lastOf(groups, parameter, &Group::lr);
  return own ? *own / lr : 1;
}

Result<OptimizerSpec> parseOptimizer(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ';');
  auto [name, assignments] = parts.front().split(':');
  auto known = llvm::find_if(optimizers(), [name = name](const Optimizer &known) { return known.name == name; });
  if (known == optimizers().end())
    return Status::error(ErrorKind::usage,
                         "optimizer '{}': there is no '{}', expected sgd, adam, adamw, adagrad, rmsprop, lamb or lion",
                         text.str(), name.str());
  OptimizerSpec spec = known->defaults;
  llvm::SmallVector<Key> keys = {lr, weightDecay, clipNorm, clipValue, gradNorm};
  keys.append(known->keys);
  DG_RETURN_IF_ERROR(Assignments(text, name).parse(assignments, keys, spec));
  if (spec.nesterov != 0 && spec.momentum == 0)
    return Status::error(ErrorKind::usage, "optimizer '{}': nesterov needs momentum=", text.str());
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_front()) {
    auto [pattern, own] = part.split(':');
    OptimizerSpec group{.lr = -1, .weightDecay = -1}; // not given
    if (pattern.empty() || own.empty())
      return Status::error(ErrorKind::usage,
                           "optimizer '{}': found '{}' after ';', expected PATTERN:weight_decay=NUMBER or "
                           "PATTERN:lr=NUMBER, as *.bias:weight_decay=0",
                           text.str(), part.str());
    DG_RETURN_IF_ERROR(Assignments(text, "a group of parameters").parse(own, {lr, weightDecay}, group));
    if (group.lr >= 0 && spec.lr == 0)
      return Status::error(ErrorKind::usage,
                           "optimizer '{}': found '{}', but the optimizer's lr is 0, from which --lr and schedules "
                           "scale it; expected lr= above 0 before ';'",
                           text.str(), part.str());
    auto given = [](double number) { return number >= 0 ? std::optional(number) : std::nullopt; };
    spec.groups.push_back({pattern.str(), given(group.lr), given(group.weightDecay)});
  }
  return spec;
}

} // namespace dg::passes
