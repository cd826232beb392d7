// SPDX-License-Identifier: Apache-2.0
#include "compiler/ReadBytecode.h"

#include "ir/dialect/TextGuard.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dg::compiler {

namespace {
constexpr unsigned maxSeconds = 60;

/// A file without a name, which a child writes and its parent reads.
class SharedFile {
public:
  SharedFile() : fd(memfd_create("dgc", MFD_CLOEXEC)) {}
  ~SharedFile() { close(fd); }
  SharedFile(const SharedFile &) = delete;

  std::unique_ptr<llvm::MemoryBuffer> read(llvm::StringRef name) const {
    auto size = uint64_t(std::max<off_t>(0, lseek(fd, 0, SEEK_END)));
    auto buffer = llvm::MemoryBuffer::getOpenFile(llvm::sys::fs::convertFDToNativeFile(fd), name, size);
    return buffer ? std::move(*buffer) : llvm::MemoryBuffer::getMemBuffer("", name);
  }

  const int fd;
};

mlir::OwningOpRef<mlir::ModuleOp> parse(std::unique_ptr<llvm::MemoryBuffer> buffer, mlir::MLIRContext &context) {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  return mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
}

/// The child: leaves the module's text and its messages in the files. What ends it by a signal leaves no trace on the
/// terminal and no core.
[[noreturn]] void readInChild(llvm::MemoryBufferRef bytes, mlir::MLIRContext &context, int text, int messages) {
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, SIG_DFL);
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#if !__has_feature(address_sanitizer) // whose shadow is larger than any limit
  constexpr rlim_t maxBytes = rlim_t(16) << 30;
  rlimit most = {maxBytes, maxBytes};
  setrlimit(RLIMIT_AS, &most);
#endif
  dup2(messages, STDERR_FILENO);
  alarm(maxSeconds);
  auto module = parse(llvm::MemoryBuffer::getMemBuffer(bytes, /*RequiresNullTerminator=*/false), context);
  if (!module)
    _exit(1);
  llvm::raw_fd_ostream os(text, /*shouldClose=*/false);
  module->print(os, mlir::OpPrintingFlags().enableDebugInfo());
  os.flush();
  _exit(os.has_error() ? 1 : 0);
}
} // namespace

mlir::OwningOpRef<mlir::ModuleOp> readBytecode(llvm::MemoryBufferRef bytes, mlir::MLIRContext &context) {
  SharedFile text, messages;
  pid_t child = fork();
  if (child == 0)
    readInChild(bytes, context, text.fd, messages.fd);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child < 0) {
    llvm::errs() << bytes.getBufferIdentifier() << ": error: no process could be started to read bytecode ("
                 << std::strerror(errno) << "): end other programs, or give the model as text\n";
    return nullptr;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    std::unique_ptr<llvm::MemoryBuffer> model = text.read(bytes.getBufferIdentifier());
    // The verifiers of ops rest on what the guard lets through.
    if (auto fault = ir::findTextFault(model->getBuffer())) {
      llvm::errs() << bytes.getBufferIdentifier() << ": error: " << fault->message << "\n";
      return nullptr;
    }
    return parse(std::move(model), context);
  }
  std::unique_ptr<llvm::MemoryBuffer> said = messages.read("");
  // What MLIR says of the bytes themselves has no line; all else is about an op, and names the author's.
  auto [before, reason] = said->getBuffer().split(":0:0: error: ");
  if (WIFEXITED(status) && reason.empty() && before.contains("error:")) {
    llvm::errs() << before;
    return nullptr;
  }
  llvm::errs() << bytes.getBufferIdentifier() << ": error: found damaged bytecode, at which MLIR's reader stops ("
               << (WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                   : reason.empty()    ? "it gave up"
                                       : reason.split('\n').first)
               << "), expected a model as dg-opt --emit-bytecode writes it: write the file again\n";
  return nullptr;
}

} // namespace dg::compiler
