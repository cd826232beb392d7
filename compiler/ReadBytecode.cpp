// SPDX-License-Identifier: Apache-2.0
#include "compiler/ReadBytecode.h"

#include "compiler/Diagnostics.h"
#include "ir/dialect/TextGuard.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SourceMgr.h"

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
  dup2(messages, STDERR_FILENO); // what LLVM says when it gives up
  alarm(maxSeconds);
  Messages said([&](const Message &message) {
    llvm::raw_fd_ostream(messages, /*shouldClose=*/false, /*unbuffered=*/true) << message.text << "\n";
  });
  Diagnostics diagnostics(context, "", said);
  auto module = parse(llvm::MemoryBuffer::getMemBuffer(bytes, /*RequiresNullTerminator=*/false), context);
  if (!module)
    _exit(1);
  llvm::raw_fd_ostream os(text, /*shouldClose=*/false);
  module->print(os, mlir::OpPrintingFlags().enableDebugInfo());
  os.flush();
  _exit(os.has_error() ? 1 : 0);
}
/// How a child ended.
struct Ending {
  bool hasStarted = true;
  int status = 0;    ///< of waitpid, or errno
  bool hung = false; ///< stopped by its deadline without having worked

  bool isGood() const { return hasStarted && WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

Ending runChild(llvm::MemoryBufferRef bytes, mlir::MLIRContext &context, int text, int messages) {
  pid_t child = fork();
  if (child == 0)
    readInChild(bytes, context, text, messages);
  if (child < 0)
    return {false, errno, false};
  Ending ending;
  rusage used = {};
  while (wait4(child, &ending.status, 0, &used) < 0 && errno == EINTR) {
  }
  ending.hung = WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGALRM &&
                used.ru_utime.tv_sec + used.ru_stime.tv_sec < maxSeconds / 10;
  return ending;
}
} // namespace

Result<mlir::OwningOpRef<mlir::ModuleOp>> readBytecode(llvm::MemoryBufferRef bytes, mlir::MLIRContext &context,
                                                       Messages &messages) {
  const std::string name = bytes.getBufferIdentifier().str();
  SharedFile text, said;
  Ending ending = runChild(bytes, context, text.fd, said.fd);
  if (ending.hung)
    ending = runChild(bytes, context, text.fd, said.fd);
  if (!ending.hasStarted)
    return messages.fail(fmt::format("{}: error: no process could be started to read bytecode ({}): end other "
                                     "programs, or give the model as text",
                                     name, std::strerror(ending.status)));
  if (ending.isGood()) {
    std::unique_ptr<llvm::MemoryBuffer> model = text.read(name);
    // The verifiers of ops rest on what the guard lets through.
    if (auto fault = ir::findTextFault(model->getBuffer()))
      return messages.fail(fmt::format("{}: error: {}", name, fault->message));
    auto module = parse(std::move(model), context);
    if (!module)
      return diagnosed();
    return std::move(module);
  }
  std::unique_ptr<llvm::MemoryBuffer> heard = said.read("");
  // What MLIR says of the bytes themselves has no line; all else is about an op, and names the author's.
  auto [before, reason] = heard->getBuffer().split(":0:0: error: ");
  if (WIFEXITED(ending.status) && reason.empty() && before.contains("error:"))
    return messages.fail(before.rtrim('\n').str());
  return messages.fail(fmt::format("{}: error: found damaged bytecode, at which MLIR's reader stops ({}), expected a "
                                   "model as dg-opt --emit-bytecode writes it: write the file again",
                                   name,
                                   WIFSIGNALED(ending.status) ? strsignal(WTERMSIG(ending.status))
                                   : reason.empty()           ? "it gave up"
                                                              : reason.split('\n').first.str()));
}

} // namespace dg::compiler
