// SPDX-License-Identifier: Apache-2.0
#include "passes/partition/Pins.h"

#include "passes/train/NamePattern.h"

#include <set>

namespace dg::passes {

namespace {

using partitioner::Model;
using partitioner::ModelOp;
using partitioner::ModelParameter;
using partitioner::Pin;

enum class Wish { stage, cut, whole };

/// The name that is fewest letters away, as "; did you mean 'fc1'?".
std::string hintFor(llvm::StringRef pattern, const Model &model) {
  std::set<std::string> names;
  for (const ModelOp &op : model.ops) {
    names.insert(op.name.substr(0, op.name.find('/')));
    for (const ModelParameter &parameter : op.parameters)
      names.insert(parameter.name);
  }
  unsigned fewest = UINT_MAX;
  std::string nearest;
  for (const std::string &name : names)
    if (unsigned distance = pattern.edit_distance(name, true, fewest); distance < fewest) {
      fewest = distance;
      nearest = name;
    }
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

class Resolution {
public:
  Resolution(llvm::StringRef text, const Model &model) : model(model) { pin.text = text.str(); }

  Result<Pin> run() {
    auto [name, wishText] = llvm::StringRef(pin.text).rsplit('=');
    pattern = name;
    auto [kind, numberText] = wishText.split(':');
    bool hasNumber = !numberText.empty() && !numberText.getAsInteger(10, number) && number >= 0 && number < 1 << 20;
    bool isGood = !name.empty() && (kind == "whole" ? wishText == "whole" : hasNumber);
    if (!isGood || (kind != "stage" && kind != "tensor" && kind != "whole"))
      return fail("expected PATTERN=stage:N, PATTERN=tensor:DIMENSION or PATTERN=whole, as 'fc1*=stage:0'");
    wish = kind == "stage" ? Wish::stage : kind == "tensor" ? Wish::cut : Wish::whole;
    for (uint32_t op = 0; op < model.ops.size(); ++op)
      visit(op);
    if (!isNamed)
      return fail(fmt::format("the model has no op and no parameter '{}'{}", pattern.str(), hintFor(pattern, model)));
    if (pin.targets.empty())
      return fail(whyNot);
    return std::move(pin);
  }

private:
  void visit(uint32_t index) {
    const ModelOp &op = model.ops[index];
    llvm::StringRef name = op.name;
    bool isOp = matchesPattern(name, pattern) || matchesPattern(name.split('/').first, pattern);
    const ModelParameter *parameter = nullptr;
    for (const ModelParameter &own : op.parameters)
      if (matchesPattern(own.name, pattern))
        parameter = &own;
    if (!isOp && !parameter)
      return;
    isNamed = true;
    Pin::Target target;
    target.op = index;
    if (wish == Wish::stage)
      target.stage = int32_t(number);
    else if (wish == Wish::whole)
      target.choice = partitioner::uncut;
    else if (parameter ? !cut(target, parameter->factors, "parameter '" + parameter->name + "'")
                       : op.results.empty() || !cut(target, op.results[0].factors, "the result of '" + op.name + "'"))
      return;
    pin.targets.push_back(target);
  }

  /// Of an op that is taken apart, the parts that have the dimension are pinned.
  bool cut(Pin::Target &target, const std::vector<int32_t> &factors, const std::string &what) {
    if (number >= int64_t(factors.size())) {
      whyNot = fmt::format("{} has {} dimensions, so there is no dimension {} (they count from 0)", what,
                           factors.size(), number);
      return false;
    }
    target.choice = factors[size_t(number)];
    if (target.choice < 0)
      whyNot = fmt::format("dimension {} of {} cannot be cut by the op's sharding rule: choose another, or whole",
                           number, what);
    return target.choice >= 0;
  }

  Result<Pin> fail(const std::string &what) const {
    return Status::error(ErrorKind::usage, "--pin {}: {}", pin.text, what);
  }

  const Model &model;
  Pin pin;
  llvm::StringRef pattern; ///< points into the pin's text
  Wish wish = Wish::stage;
  int64_t number = 0;
  bool isNamed = false;
  std::string whyNot; ///< of the last op that was named and cannot do it
};

} // namespace

Result<Pin> resolvePin(llvm::StringRef text, const Model &model) { return Resolution(text, model).run(); }

} // namespace dg::passes
