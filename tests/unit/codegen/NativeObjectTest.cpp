// SPDX-License-Identifier: Apache-2.0
// Threads that generate code and link at once get what one thread gets alone: lld's globals are not shared.
#include "codegen/cpu/NativeObject.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

using namespace dg;

namespace {

/// The shared object of a function that adds `number`, or what went wrong.
std::string build(int number) {
  std::string error, n = std::to_string(number);
  mlir::FailureOr<codegen::Target> target = codegen::Target::parse("x86-64-v3", error);
  llvm::LLVMContext context;
  llvm::SMDiagnostic fault;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(
      "define i32 @add" + n + "(i32 %x) {\n  %y = add i32 %x, " + n + "\n  ret i32 %y\n}\n", fault, context);
  if (failed(target) || !module)
    return error + fault.getMessage().str();
  codegen::optimize(*module, *target);
  mlir::FailureOr<std::string> object = codegen::generate(*module, *target, codegen::CodeForm::object);
  if (failed(object))
    return "no object";
  mlir::FailureOr<std::string> shared = codegen::linkShared({*object}, error);
  return failed(shared) ? error : *shared;
}

TEST(NativeObject, ThreadsThatLinkAtOnceGetTheBytesOfOneAlone) {
  constexpr int numThreads = 4, numRounds = 50;
  std::vector<std::string> alone(numThreads);
  for (int i = 0; i < numThreads; ++i) {
    alone[size_t(i)] = build(1000 + i);
    ASSERT_EQ(alone[size_t(i)].substr(1, 3), "ELF") << alone[size_t(i)];
  }
  std::vector<int> numDifferent(numThreads);
  std::latch begin(numThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < numThreads; ++i)
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      for (int round = 0; round < numRounds; ++round)
        numDifferent[size_t(i)] += build(1000 + i) != alone[size_t(i)];
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(numDifferent, std::vector<int>(numThreads, 0));
}

} // namespace
