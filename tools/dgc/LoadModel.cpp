// SPDX-License-Identifier: Apache-2.0
#include "tools/dgc/LoadModel.h"

#include "ir/Families.h"
#include "tools/dgc/ReadBytecode.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace dg::tools {

/// The first byte that no text has; nothing if all is text.
static std::optional<size_t> findNoText(llvm::StringRef bytes) {
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(bytes.begin()), *at = begin;
  llvm::isLegalUTF8String(&at, begin + bytes.size());
  size_t place = std::min(bytes.find_if([](unsigned char c) { return c < 9 || (c > 13 && c < 32) || c == 127; }),
                          size_t(at - begin));
  if (place >= bytes.size())
    return std::nullopt;
  return place;
}

/// Where brackets stand more than `most` deep, outside of texts and comments: the parser calls itself for each. Nothing
/// if nowhere.
static std::optional<size_t> findDeepBracket(llvm::StringRef text, int64_t most) {
  int64_t depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    llvm::StringRef rest = text.drop_front(at);
    if (rest.starts_with("//"))
      at += std::min(rest.find('\n'), rest.size() - 1);
    else if (rest[0] == '"')
      for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
        at += text[at] == '\\';
    else if (rest.starts_with("->"))
      ++at;
    else if (llvm::StringRef("([{<").contains(rest[0]) && ++depth > most)
      return at;
    else if (llvm::StringRef(")]}>").contains(rest[0]))
      depth = std::max<int64_t>(0, depth - 1);
  }
  return std::nullopt;
}

/// What MLIR's parser would answer with a line of noise or a stack that overflows.
static mlir::LogicalResult checkText(const std::string &path, llvm::StringRef text) {
  constexpr int64_t maxDepth = 256;
  auto noText = findNoText(text);
  auto place = noText ? noText : findDeepBracket(text, maxDepth);
  if (!place)
    return mlir::success();
  llvm::StringRef before = text.take_front(*place);
  llvm::errs() << path << ":" << before.count('\n') + 1 << ":" << *place - (before.rfind('\n') + 1) + 1 << ": error: ";
  if (noText)
    llvm::errs() << llvm::formatv("found byte {0:x}, expected a model in the dg dialect (.mlir text or .mlirbc)\n",
                                  unsigned(uint8_t(text[*place])));
  else
    llvm::errs() << "found brackets nested more than " << maxDepth << " deep, expected a model in the dg dialect\n";
  return mlir::failure();
}

mlir::OwningOpRef<mlir::ModuleOp> loadFamily(const std::string &spec, mlir::MLIRContext &context) {
  // A spec has no line and column.
  mlir::ScopedDiagnosticHandler handler(
      &context, [](mlir::Diagnostic &message) { llvm::errs() << "dgc: error: " << message << "\n"; });
  auto family = ir::buildFamily(spec, context);
  return succeeded(family) ? std::move(*family) : nullptr;
}

mlir::OwningOpRef<mlir::ModuleOp> loadModel(const std::string &path, mlir::MLIRContext &context) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    llvm::errs() << path << ": error: cannot be read (" << buffer.getError().message()
                 << "): give the path of a model in the dg dialect (.mlir or .mlirbc), or a built-in one: "
                 << ir::knownFamilies() << "\n";
    return nullptr;
  }
  if (mlir::isBytecode(**buffer))
    return readBytecode(**buffer, context);
  if (failed(checkText(path, (*buffer)->getBuffer())))
    return nullptr;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  return mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
}

} // namespace dg::tools
