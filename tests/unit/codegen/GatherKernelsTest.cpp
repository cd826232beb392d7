// SPDX-License-Identifier: Apache-2.0
// Proves that kernels that read and write at places given by integers, and those that are sparse matrices of constants,
// compute what their ops' reference evaluation does, over odd sizes and index types, and report what is outside.
#include "runtime/abi/KernelAbi.h"
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

using namespace dg::codegen;

TEST(GatherKernels, Slices) {
  KernelCases cases;
  for (std::string integer : {"i64", "i32"}) {
    cases.add("dg.gather", {"100x37xf32", "4x25x" + integer}, "", {.tolerance = 0, .indexBound = 100});
    cases.add("dg.gather", {"3x17x5xf32", "29x" + integer}, "dim = 1 : i64", {.tolerance = 0, .indexBound = 17});
    cases.add("dg.gather", {"7x40xf32", integer}, "dim = 1 : i64", {.tolerance = 0, .indexBound = 40});
    cases.add("dg.gather_grad", {"4x25x33xf32", "4x25x" + integer}, "size = 9 : i64", {.indexBound = 9});
    cases.add("dg.gather_grad", {"3x29x5xf32", "29x" + integer}, "dim = 1 : i64, size = 17 : i64", {.indexBound = 17});
  }
  cases.add("dg.gather_grad", {"50x3000xf32", "50xi64"}, "size = 40 : i64", {.indexBound = 40});
  cases.add("dg.gather", {"5x1xf32", "1xi64"}, "", {.tolerance = 0, .indexBound = 5});
  cases.check();
}

TEST(GatherKernels, Elements) {
  KernelCases cases;
  cases.add("dg.gather_elements", {"5x17x3xf32", "4x9x3xi64"}, "dim = 1 : i64", {.tolerance = 0, .indexBound = 17});
  cases.add("dg.gather_elements", {"11x40xf32", "200x33xi32"}, "", {.tolerance = 0, .indexBound = 11});
  for (const char *reduction : {"none", "add", "mul", "min", "max"}) {
    std::string attribute = "reduction = \"" + std::string(reduction) + "\"";
    cases.add("dg.scatter_elements", {"11x40xf32", "20x33xi64", "20x33xf32"}, attribute, {.indexBound = 11});
    cases.add("dg.scatter_elements", {"5x17x3xf32", "4x9x3xi32", "4x9x3xf32"}, attribute + ", dim = 1 : i64",
              {.indexBound = 17});
    cases.add("dg.scatter_nd", {"13x40xf32", "3x4x1xi64", "3x4x40xf32"}, attribute, {.indexBound = 13});
    cases.add("dg.scatter_nd", {"5x7x6xf32", "5x9x2xi64", "5x9xf32"}, attribute + ", batch_dims = 1 : i64",
              {.indexBound = 6});
  }
  cases.add("dg.scatter_nd", {"30x9000xf32", "8x1xi64", "8x9000xf32"}, "reduction = \"add\"", {.indexBound = 30});
  cases.add("dg.gather_nd", {"6x7x33xf32", "50x2xi64"}, "", {.tolerance = 0, .indexBound = 6});
  cases.add("dg.gather_nd", {"6x7x3xf32", "6x5x4x1xi32"}, "batch_dims = 1 : i64", {.tolerance = 0, .indexBound = 7});
  cases.add("dg.gather_nd", {"6x7xf32", "2x2xi64"}, "", {.tolerance = 0, .indexBound = 6});
  cases.check();
}

TEST(GatherKernels, Sequences) {
  KernelCases cases;
  cases.add("dg.one_hot", {"5x7xi64"}, "depth = 9 : i64, dim = 1 : i64, type = f32",
            {.tolerance = 0, .indexBound = 12});
  cases.add("dg.one_hot", {"33xi32"}, "depth = 10 : i64, dim = 1 : i64, type = f32",
            {.tolerance = 0, .indexBound = 10});
  cases.add("dg.one_hot", {"33xi32"}, "depth = 10 : i64, dim = 0 : i64, type = f32",
            {.tolerance = 0, .indexBound = 10});
  cases.add("dg.reverse_sequence", {"9x4x17xf32", "4xi64"}, "", {.tolerance = 0, .indexBound = 10});
  cases.add("dg.reverse_sequence", {"4x9xf32", "4xi32"}, "batch_dim = 0 : i64", {.tolerance = 0, .indexBound = 10});
  cases.check();
}

// Each op that reads or writes at places reports the first index outside, goes on inside its buffers, and reports
// nothing where the largest and smallest index are inside.
TEST(GatherKernels, ReportsWhatIsOutside) {
  struct Row {
    const char *op;
    std::vector<std::string> operands;
    const char *attributes;
    unsigned operand;
    int64_t places; ///< below 0: negative ones count from the end
  };
  const Row rows[] = {
      {"dg.gather", {"5x3xf32", "7xi64"}, "", 1, -5},
      {"dg.gather_grad", {"7x3xf32", "7xi64"}, "size = 5 : i64", 1, -5},
      {"dg.gather_elements", {"5x3xf32", "7x1xi64"}, "", 1, -5},
      {"dg.gather_nd", {"5x3xf32", "7x1xi64"}, "", 1, -5},
      {"dg.scatter_elements", {"5x3xf32", "7x1xi64", "7x1xf32"}, "", 1, -5},
      {"dg.scatter_nd", {"5x3xf32", "7x1xi64", "7x3xf32"}, "", 1, -5},
      {"dg.reverse_sequence", {"4x7xf32", "7xi64"}, "", 1, 5},
      {"dg.embedding", {"5x3xf32", "7xi64"}, "", 1, 5},
      {"dg.embedding_grad", {"7x3xf32", "7xi64"}, "rows = 5 : i64", 1, 5},
      {"dg.pick", {"7x5xf32", "7xi64"}, "", 1, 5},
      {"dg.pick_grad", {"7xf32", "7xi64"}, "classes = 5 : i64", 1, 5},
      {"dg.pick_log_softmax", {"7x5xf32", "7xi64"}, "", 1, 5},
      {"dg.pick_log_softmax_grad", {"7xf32", "7xf32", "7x5xf32", "7xi64", "7xf32"}, "", 3, 5},
      {"dg.correct", {"7x5xf32", "7xi64"}, "", 1, 5},
      {"dg.top_k_grad", {"7xf32", "7xi64"}, "size = 5 : i64", 1, 5},
  };
  KernelCases cases;
  std::vector<KernelSpec> specs;
  for (const Row &row : rows) {
    mlir::Operation *op = cases.make(row.op, row.operands, row.attributes);
    ASSERT_TRUE(op) << row.op;
    auto spec = cases.kernels().addKernel(op);
    ASSERT_TRUE(mlir::succeeded(spec)) << row.op;
    specs.push_back(*spec);
  }
  auto bytes = cases.kernels().emitObject();
  ASSERT_TRUE(mlir::succeeded(bytes));
  LoadedObject object(*bytes);
  for (size_t i = 0; i < specs.size(); ++i) {
    const Row &row = rows[i];
    const int64_t least = std::min<int64_t>(row.places, 0), most = std::abs(row.places) - 1;
    for (int64_t index : {least, most, least - 1, most + 1, int64_t(1) << 40}) {
      SCOPED_TRACE(std::string(row.op) + " with " + std::to_string(index));
      alignas(64) std::byte memory[6][256] = {};
      void *buffers[] = {memory[0], memory[1], memory[2], memory[3], memory[4], memory[5]};
      reinterpret_cast<int64_t *>(buffers[row.operand])[4] = index;
      dg_index_fault fault{};
      dg_scalars scalars{1, 0, 0.0f, &fault};
      for (uint32_t tile = 0; tile < specs[i].tiles; ++tile)
        reinterpret_cast<dg_kernel>(object.find(specs[i].symbol))(buffers, &scalars, tile);
      if (index >= least && index <= most) {
        EXPECT_EQ(fault.buffers, 0u);
        continue;
      }
      EXPECT_EQ(fault.buffers, reinterpret_cast<uint64_t>(buffers));
      EXPECT_EQ(fault.operand, row.operand);
      EXPECT_EQ(fault.element, 4);
      EXPECT_EQ(fault.index, index);
      EXPECT_EQ(fault.places, row.places);
    }
  }
}

TEST(ResampleKernels, Matrices) {
  KernelCases cases;
  const char *weighed = "offsets = array<i64: 0, 2, 2, 5, 6>, places = array<i64: 1, 0, 2, 1, 4, 3>, weights = "
                        "array<f64: 0.5, 2.0, -1.0, 0.25, 3.0, 1.5>";
  const char *copied = "offsets = array<i64: 0, 1, 1, 2>, places = array<i64: 4, 0>, weights = array<f64: 1.0, 1.0>";
  for (const char *matrix : {weighed, copied}) {
    cases.add("dg.resample", {"7x5xf32"}, "dim = 1 : i64, " + std::string(matrix));
    cases.add("dg.resample", {"5x33xf32"}, "dim = 0 : i64, " + std::string(matrix));
    cases.add("dg.resample", {"3x5x4x9xf32"}, "dim = 1 : i64, " + std::string(matrix));
  }
  cases.check();
}
