// SPDX-License-Identifier: Apache-2.0
// Proves that equal ops share a kernel, also in several programs, that ops without one and types without one are
// refused with a message, that every form of the code can be printed, and that linking leaves no file behind.
#include "codegen/plan/KernelSet.h"
#include "tests/unit/codegen/KernelCases.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

using namespace dg::codegen;
using namespace mlir;

TEST(KernelModule, EqualOpsShareAKernel) {
  KernelCases cases;
  auto symbolOf = [&](const char *op, std::vector<std::string> types, const char *attributes) {
    auto spec = cases.kernels().addKernel(cases.make(op, types, attributes));
    return succeeded(spec) ? spec->symbol : std::string();
  };
  std::string first = symbolOf("dg.add", {"64x20xf32", "20xf32"}, "");
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, symbolOf("dg.add", {"64x20xf32", "20xf32"}, "place = #dg.place<label = \"h\", origin = 4>"));
  EXPECT_NE(first, symbolOf("dg.add", {"64x20xf32", "64x20xf32"}, ""));
  EXPECT_NE(first, symbolOf("dg.sub", {"64x20xf32", "20xf32"}, ""));
  EXPECT_NE(symbolOf("dg.scale", {"8xf32"}, "factor = 1.0 : f64"),
            symbolOf("dg.scale", {"8xf32"}, "factor = 2.0 : f64"));
  EXPECT_EQ(symbolOf("dg.accumulate", {"8xf32"}, "accumulator = \"a\""),
            symbolOf("dg.accumulate", {"8xf32"}, "accumulator = \"b\""));
}

TEST(KernelSet, OneKernelForAllProgramsOfATarget) {
  KernelCases cases;
  std::string error;
  KernelSet set(cases.context, {*Target::parse("x86-64-v3", error), *Target::parse("x86-64-v4", error)});
  auto product = [&] { return cases.make("dg.matmul", {"256x384xf32", "384x1024xf32"}, ""); };
  FailureOr<KernelSpec> first = set.addKernel("train", product()), second = set.addKernel("eval", product());
  ASSERT_TRUE(succeeded(first) && succeeded(second));
  EXPECT_EQ(first->symbol, second->symbol);
  EXPECT_EQ(set.objects().size(), 2u);
  ASSERT_TRUE(succeeded(set.addKernel("eval", cases.make("dg.relu", {"64x20xf32"}, ""))));
  std::string objects;
  for (auto &[program, target, kernels] : set.objects()) {
    objects += program + " " + target.name + " " + std::to_string(kernels.size()) + ", ";
    // The grid of a target is in its object, that of the first one also in the plan.
    if (program != "train")
      continue;
    std::string text, grid = "constant i32 ";
    llvm::raw_string_ostream stream(text);
    ASSERT_TRUE(succeeded(kernels.emitLlvmIr(stream)));
    size_t at = text.find(grid, text.find("@" + first->symbol + "_tiles = "));
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(std::stoul(text.substr(at + grid.size())), kernels.find(product())->tiles);
    if (target.name == "x86-64-v3")
      EXPECT_EQ(kernels.find(product())->tiles, first->tiles);
  }
  EXPECT_EQ(objects, "train x86-64-v3 1, train x86-64-v4 1, eval x86-64-v3 1, eval x86-64-v4 1, ");
}

TEST(KernelModule, RefusesWithAMessage) {
  KernelCases cases;
  std::string message;
  ScopedDiagnosticHandler handler(&cases.context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  auto refuses = [&](const char *op, std::vector<std::string> types, const char *attributes, const char *part) {
    Operation *made = cases.make(op, types, attributes);
    ASSERT_NE(made, nullptr);
    message.clear();
    EXPECT_TRUE(failed(cases.kernels().addKernel(made)));
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  refuses("dg.reshape", {"4x6xf32"}, "shape = array<i64: 24>", "has no kernel");
  refuses("dg.all_reduce", {"4x6xf32"}, "axis = \"data\"", "has no kernel");
  refuses("dg.relu", {"?x6xf32"}, "", "--bind");
  refuses("dg.relu", {"4x6xf8E5M2"}, "", "kernels exist for f32");
  EXPECT_FALSE(needsKernel(cases.make("dg.reshape", {"4x6xf32"}, "shape = array<i64: 24>")));
  EXPECT_TRUE(needsKernel(cases.make("dg.relu", {"4x6xf32"}, "")));
}

TEST(KernelModule, PrintsEveryForm) {
  KernelCases cases("x86-64-v3");
  ASSERT_TRUE(succeeded(cases.kernels().addKernel(cases.make("dg.relu", {"64x20xf32"}, ""))));
  std::string loops, llvmIr, assembly;
  llvm::raw_string_ostream loopsStream(loops), llvmStream(llvmIr), assemblyStream(assembly);
  ASSERT_TRUE(succeeded(cases.kernels().emitLinalg(loopsStream)));
  ASSERT_TRUE(succeeded(cases.kernels().emitLlvmIr(llvmStream)));
  ASSERT_TRUE(succeeded(cases.kernels().emitAsm(assemblyStream)));
  EXPECT_NE(loops.find("vector.load"), std::string::npos);
  EXPECT_NE(llvmIr.find("noalias"), std::string::npos);
  EXPECT_NE(llvmIr.find("<8 x float>"), std::string::npos);
  EXPECT_NE(assembly.find("vmaxps"), std::string::npos);
}

TEST(KernelModule, LinkingLeavesNoFile) {
  std::string folder = ::testing::TempDir() + "/codegen_link_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const char *before = std::getenv("TMPDIR");
  std::string saved = before ? before : "";
  setenv("TMPDIR", folder.c_str(), 1);
  KernelCases cases;
  ASSERT_TRUE(succeeded(cases.kernels().addKernel(cases.make("dg.relu", {"64x20xf32"}, ""))));
  EXPECT_TRUE(succeeded(cases.kernels().emitObject()));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
  if (before)
    setenv("TMPDIR", saved.c_str(), 1);
  else
    unsetenv("TMPDIR");
}
