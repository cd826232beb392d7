// SPDX-License-Identifier: Apache-2.0
#include "compiler/Diagnostics.h"

#include "compiler/ListOps.h"
#include "passes/UsageError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

namespace dg::compiler {

/// The text with its lines cut short: a diagnostic quotes the line it points to, and a file may be one line of
/// megabytes.
static std::string clipLines(llvm::StringRef text) {
  constexpr size_t maxBytes = 500;
  std::string clipped;
  for (auto [line, rest] = text.split('\n');; std::tie(line, rest) = rest.split('\n')) {
    clipped += line.take_front(maxBytes);
    if (line.size() > maxBytes)
      clipped += "…";
    if (rest.empty())
      return clipped;
    clipped += '\n';
  }
}

/// The operands of the op by their names, where MLIR's own message only counts them: ": input, weight, bias".
static std::string nameOperands(const std::string &message) {
  static const llvm::Regex pattern("^'dg\\.([a-z0-9_]+)' op expected [0-9]+( or more)? operands");
  llvm::SmallVector<llvm::StringRef> parts;
  if (!pattern.match(message, &parts))
    return "";
  Result<std::string> page = listOps(parts[1].str());
  if (!page)
    return "";
  llvm::StringRef operands = llvm::StringRef(*page).split("\n- operands: ").second.split("\n- ").first;
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString(operands, words, " \n");
  std::string names = llvm::join(words, " ");
  llvm::erase(names, '`');
  return names.empty() ? "" : ": " + names;
}

Diagnostics::Diagnostics(mlir::MLIRContext &context, std::string file, Messages &messages)
    : SourceMgrDiagnosticHandler(sources, &context, stream), stream(text) {
  setHandler([this, file = std::move(file), &messages](mlir::Diagnostic &message) {
    text.clear();
    if (std::string names = nameOperands(message.str()); !names.empty())
      message << names;
    if (passes::isUsageError(message))
      messages.setUsage();
    if (file.empty()) {
      emitDiagnostic(message);
    } else { // `model.onnx: error: node 'conv1' (Conv, ai.onnx version 11): …`
      stream << file << ": " << (message.getSeverity() == mlir::DiagnosticSeverity::Error ? "error: " : "note: ");
      if (auto name = message.getLocation()->findInstanceOf<mlir::NameLoc>())
        stream << name.getName().getValue() << ": ";
      stream << message;
    }
    messages.add(Message::Kind::diagnostic, clipLines(stream.str()));
  });
}

} // namespace dg::compiler
