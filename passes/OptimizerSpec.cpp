// SPDX-License-Identifier: Apache-2.0
#include "passes/OptimizerSpec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <cmath>

namespace dg::passes {

Result<OptimizerSpec> parseOptimizer(llvm::StringRef text) {
  OptimizerSpec spec;
  auto [name, rest] = text.split(':');
  llvm::StringMap<double *> keys = {{"lr", &spec.lr}, {"weight_decay", &spec.weightDecay}};
  double nesterov = 0;
  if (name == "sgd") {
    spec.lr = 0.01;
    keys["momentum"] = &spec.momentum;
    keys["nesterov"] = &nesterov;
  } else if (name == "adam" || name == "adamw") {
    spec.kind = name == "adam" ? OptimizerSpec::Kind::adam : OptimizerSpec::Kind::adamw;
    spec.lr = 0.001;
    spec.weightDecay = name == "adamw" ? 0.01 : 0.0;
    keys["beta1"] = &spec.beta1;
    keys["beta2"] = &spec.beta2;
    keys["eps"] = &spec.epsilon;
  } else {
    return Status::error(ErrorKind::usage, "optimizer '{}': there is no '{}', expected sgd, adam or adamw", text.str(),
                         name.str());
  }
  llvm::SmallVector<llvm::StringRef> parts;
  rest.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  llvm::StringSet<> seen;
  for (llvm::StringRef part : parts) {
    auto [key, value] = part.split('=');
    auto found = keys.find(key);
    if (found == keys.end()) {
      std::string known;
      for (const auto &entry : keys)
        known += (known.empty() ? "" : ", ") + entry.getKey().str();
      return Status::error(ErrorKind::usage, "optimizer '{}': {} has no '{}', expected one of {}", text.str(),
                           name.str(), key.str(), known);
    }
    if (!seen.insert(key).second)
      return Status::error(ErrorKind::usage, "optimizer '{}': '{}' stands twice, expected each key once", text.str(),
                           key.str());
    double &number = *found->second;
    if (value.getAsDouble(number) || !std::isfinite(number) || number < 0)
      return Status::error(ErrorKind::usage, "optimizer '{}': found '{}', expected {}= a number of at least 0",
                           text.str(), part.str(), key.str());
    if (number >= 1 && (key == "beta1" || key == "beta2"))
      return Status::error(ErrorKind::usage, "optimizer '{}': found '{}', expected a number below 1", text.str(),
                           part.str());
  }
  spec.isNesterov = nesterov != 0;
  if (spec.isNesterov && spec.momentum == 0)
    return Status::error(ErrorKind::usage, "optimizer '{}': nesterov needs momentum=", text.str());
  return spec;
}

} // namespace dg::passes
