// SPDX-License-Identifier: Apache-2.0
// LLVM's optimiser, code generator and linker behind three functions.
#include "codegen/cpu/NativeObject.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace dg::codegen {

static constexpr const char *triple = "x86_64-unknown-linux-gnu";

/// Shared by those who use LLVM, held alone by a link.
static std::shared_mutex llvmUse;

std::shared_lock<std::shared_mutex> useLlvm() { return std::shared_lock(llvmUse); }

static std::unique_ptr<llvm::TargetMachine> machineOf(const Target &target) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialized;
  std::string error;
  const llvm::Target *known = llvm::TargetRegistry::lookupTarget(triple, error);
  assert(known && "the target was registered above");
  return std::unique_ptr<llvm::TargetMachine>(
      known->createTargetMachine(triple, target.cpu, target.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                 std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

void optimize(llvm::Module &module, const Target &target) {
  auto lock = useLlvm();
  auto machine = machineOf(target);
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      function.addFnAttr("target-features", target.features);
    // Some processors with 64-byte vectors are taken to prefer 32; the kernels choose for themselves.
    function.addFnAttr("prefer-vector-width", std::to_string(target.vectorBytes * 8));
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false;
  llvm::PassBuilder passes(machine.get(), tuning);
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(components);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, components, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

FailureOr<std::string> generate(llvm::Module &module, const Target &target, CodeForm form) {
  auto lock = useLlvm();
  auto machine = machineOf(target);
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream os(bytes);
  llvm::legacy::PassManager passes;
  auto kind = form == CodeForm::object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  if (machine->addPassesToEmitFile(passes, os, nullptr, kind))
    return failure();
  passes.run(module);
  return std::string(bytes.str());
}

FailureOr<std::string> linkShared(llvm::ArrayRef<std::string> objects, std::string &error) {
  // One file for all of them.
  std::vector<llvm::NewArchiveMember> members;
  for (const std::string &object : objects)
    members.emplace_back(llvm::MemoryBufferRef(object, "kernel.o"));
  auto archive =
      llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
                                 /*Deterministic=*/true, /*Thin=*/false);
  if (!archive) {
    error = llvm::toString(archive.takeError());
    return failure();
  }
  // Its owner's only, whatever the umask: who can write there chooses the code of the job.
  llvm::SmallString<128> folder;
  llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, folder);
  llvm::sys::path::append(folder, "dgc-XXXXXX");
  if (!::mkdtemp(const_cast<char *>(folder.c_str()))) {
    error = std::string("no folder in the temporary directory: ") + std::strerror(errno) +
            " (set TMPDIR to one that can be written)";
    return failure();
  }
  auto removeFolder = llvm::make_scope_exit([&] { (void)llvm::sys::fs::remove_directories(folder); });
  std::string input = (folder + "/kernels.a").str(), output = (folder + "/kernels.so").str();
  {
    std::error_code code;
    llvm::raw_fd_ostream file(input, code);
    if (!code) {
      file << (*archive)->getBuffer();
      file.close();
      code = file.error();
      file.clear_error();
    }
    if (code) {
      error = "cannot write " + input + ": " + code.message();
      return failure();
    }
  }
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const char *arguments[] = {"ld.lld", "-shared",      "--build-id=none", "-z",
                             "now",    "-z",           "relro",           "--hash-style=sysv",
                             "-o",     output.c_str(), "--whole-archive", input.c_str()};
  lld::Result result;
  {
    std::lock_guard lock(llvmUse);
    result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  }
  if (result.retCode != 0) {
    error = stream.str();
    return failure();
  }
  auto file = llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file) {
    error = "cannot read " + output + ": " + file.getError().message();
    return failure();
  }
  return (*file)->getBuffer().str();
}

} // namespace dg::codegen
