// SPDX-License-Identifier: Apache-2.0
#include "compiler/WeightNames.h"

#include "passes/train/NamePattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>

namespace dg::compiler {

using llvm::StringRef;

namespace {

/// One OLD=NEW: the texts between the stars of both sides.
struct Rename {
  llvm::SmallVector<StringRef> from, to;

  /// The new name; nothing where OLD is not the name's pattern.
  std::optional<std::string> apply(StringRef name) const {
    if (from.size() == 1)
      return name == from.front() ? std::optional(to.front().str()) : std::nullopt;
    const StringRef first = from.front(), last = from.back();
    if (name.size() < first.size() + last.size() || !name.starts_with(first) || !name.ends_with(last))
      return std::nullopt;
    StringRef rest = name.drop_front(first.size()).drop_back(last.size());
    std::string made = to.front().str();
    // The leftmost place of each text leaves most to those after it.
    for (size_t i = 1; i + 1 < from.size(); ++i) {
      const size_t at = rest.find(from[i]);
      if (at == StringRef::npos)
        return std::nullopt;
      made += rest.take_front(at).str() + to[i].str();
      rest = rest.drop_front(at + from[i].size());
    }
    return made + rest.str() + to.back().str();
  }
};

} // namespace

static Result<Rename> parseRename(const std::string &text) {
  auto [from, to] = StringRef(text).split('=');
  Rename rename;
  from.split(rename.from, '*');
  to.split(rename.to, '*');
  if (from.empty() || to.empty() || to.contains('=') || rename.from.size() != rename.to.size())
    return Status::error(ErrorKind::usage,
                         "--weights-rename '{}': expected OLD=NEW with as many * in NEW as in OLD, as "
                         "'backbone.*=features.*'",
                         text);
  return rename;
}

/// "a, b, c, …" of a file, for a message.
static std::string listNames(const package::Safetensors &file) {
  constexpr size_t most = 3;
  llvm::SmallVector<StringRef> names;
  for (const package::Tensor &tensor : llvm::ArrayRef(file.tensors()).take_front(most))
    names.push_back(tensor.name);
  return llvm::join(names, ", ") + (file.tensors().size() > most ? ", …" : "");
}

Result<NamedWeights> nameWeights(const package::Safetensors &file, const std::string &path,
                                 const std::vector<std::string> &renames, const std::vector<std::string> &skips) {
  std::vector<Rename> rules;
  for (const std::string &text : renames) {
    Result<Rename> rule = parseRename(text);
    if (!rule)
      return rule.status();
    rules.push_back(std::move(*rule));
  }
  std::vector<bool> isRuleUsed(rules.size()), isSkipUsed(skips.size());
  NamedWeights named;
  for (const package::Tensor &tensor : file.tensors()) {
    std::string name = tensor.name;
    bool isRenamed = false;
    for (size_t i = 0; i < rules.size(); ++i)
      if (std::optional<std::string> made = rules[i].apply(tensor.name)) {
        isRuleUsed[i] = true; // also where an earlier one decides
        if (!isRenamed)
          name = std::move(*made);
        isRenamed = true;
      }
    bool isSkipped = false;
    for (size_t i = 0; i < skips.size(); ++i)
      if (passes::matchesPattern(name, skips[i]))
        isSkipUsed[i] = isSkipped = true;
    for (auto *taken : {&named.tensors, &named.skipped})
      if (auto other = taken->find(name); other != taken->end())
        return Status::error(ErrorKind::usage,
                             "--weights-rename: '{}' and '{}' of {} both become '{}': give them different names",
                             other->second->name, tensor.name, path, name);
    (isSkipped ? named.skipped : named.tensors)[name] = &tensor;
  }
  for (size_t i = 0; i < rules.size(); ++i)
    if (!isRuleUsed[i])
      return Status::error(ErrorKind::usage, "--weights-rename '{}': {} has no tensor of that name; it has {}",
                           renames[i], path, listNames(file));
  for (size_t i = 0; i < skips.size(); ++i)
    if (!isSkipUsed[i])
      return Status::error(ErrorKind::usage, "--weights-skip '{}': {} has no tensor of that name{}; it has {}",
                           skips[i], path, rules.empty() ? "" : " after renaming", listNames(file));
  return named;
}

} // namespace dg::compiler
