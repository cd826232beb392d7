// SPDX-License-Identifier: Apache-2.0
// Proves that the scans of recurrent layers, as the passes leave them in training and inference, are computed row by
// row and give what their reference evaluation does: layers, directions, options and sizes around every limit, some
// drawn.
#include "codegen/kernels/RowScanKernels.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Pipeline.h"
#include "tests/unit/codegen/KernelCases.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace dg::codegen;
using namespace mlir;

namespace {

struct Layer {
  std::string op; ///< rnn, lstm or gru
  int64_t time, batch, in, hidden;
  std::string more = "";                ///< attributes
  std::vector<std::string> extras = {}; ///< operands of these names
  std::string element = "f32";
};

/// A model of one layer, with a loss that reads all states and the last.
std::string textOf(const Layer &l) {
  int64_t gates = l.op == "rnn"    ? 1
                  : l.op == "lstm" ? 4
                                   : 3,
          directions = l.more.find("bidirectional") != std::string::npos ? 2 : 1;
  auto parameter = [&](const std::string &name, const std::string &shape) {
    return fmt::format("  %{0} = dg.parameter \"{0}\" tensor<{1}x{2}> uniform 0.3\n", name, shape, l.element);
  };
  std::string text = fmt::format("dg.graph @loss(%x: tensor<?x{}x{}x{}>{}) {{\n", l.time, l.in, l.element,
                                 llvm::is_contained(l.extras, "lengths") ? ", %lengths: tensor<?xi32>" : "");
  text += parameter("w", fmt::format("{}x{}x{}", directions, gates * l.hidden, l.in)) +
          parameter("r", fmt::format("{}x{}x{}", directions, gates * l.hidden, l.hidden));
  std::string operands, names;
  for (const std::string &extra : l.extras) {
    if (extra == "bias")
      text += parameter(extra, fmt::format("{}x{}", directions, 2 * gates * l.hidden));
    if (extra == "peephole")
      text += parameter(extra, fmt::format("{}x{}", directions, 3 * l.hidden));
    operands += ", %" + extra;
    names += (names.empty() ? "\"" : ", \"") + extra + "\"";
  }
  if (!names.empty())
    names = "extra = [" + names + "]";
  std::string attributes = names + (names.empty() || l.more.empty() ? "" : ", ") + l.more;
  text += "  %t = dg.transpose %x {permutation = array<i64: 1, 0, 2>}\n";
  text +=
      fmt::format("  %y, %h{} = dg.{} %t, %w, %r{} {{{}}}\n", l.op == "lstm" ? ", %c" : "", l.op, operands, attributes);
  text += "  %b = dg.transpose %y {permutation = array<i64: 2, 0, 1, 3>}\n  %hb = dg.transpose %h {permutation = "
          "array<i64: 1, 0, 2>}\n"
          "  %sy = dg.mul %b, %b\n  %sh = dg.mul %hb, %hb\n"
          "  %my = dg.reduce_mean %sy {dims = array<i64: 0, 1, 2, 3>}\n  %mh = dg.reduce_mean %sh {dims = array<i64: "
          "0, 1, 2>}\n"
          "  %loss = dg.add %my, %mh\n  dg.return %loss\n}\n";
  return text;
}

class RowScans {
public:
  explicit RowScans(const char *target = "native") : cases(target) {}

  /// The scans of a training step of the layer.
  void add(const Layer &layer) {
    std::string text = textOf(layer);
    SCOPED_TRACE(text);
    auto module = parseSourceString<ModuleOp>(text, &cases.context);
    ASSERT_TRUE(module);
    dg::passes::PipelineOptions options;
    options.batch = layer.batch;
    options.optimizer = "sgd:lr=0.1";
    PassManager manager(&cases.context);
    dg::passes::buildPipeline(manager, options);
    ASSERT_TRUE(succeeded(manager.run(*module)));
    size_t before = numScans;
    module->walk([&](dg::ir::ScanOp scan) {
      std::string printed;
      llvm::raw_string_ostream(printed) << scan;
      EXPECT_TRUE(isRowScan(scan)) << printed;
      EXPECT_EQ(scan.getNumSums(), 0) << printed;
      // Sums of some hundred products, through some trips.
      cases.addOp(scan, {.tolerance = layer.element == "f64" ? 1e-12 : 2e-5, .indexBound = layer.time, .spread = 0.5},
                  text);
      ++numScans;
    });
    EXPECT_GE(numScans, before + 2); // of evaluation and training
    modules.push_back(std::move(module));
  }
  void check() { cases.check(); }

private:
  KernelCases cases;
  std::vector<OwningOpRef<ModuleOp>> modules;
  size_t numScans = 0;
};

TEST(RowScan, Layers) {
  RowScans scans;
  for (const char *op : {"rnn", "lstm", "gru"}) {
    scans.add({op, 5, 3, 7, 9});
    scans.add({op, 4, 17, 33, 40, "direction = \"bidirectional\"", {"bias"}});
    scans.add({op, 6, 1, 3, 1, "direction = \"reverse\""});
    scans.add({op, 4, 66, 5, 32, "clip = 0.6 : f64", {"bias", "lengths"}});
  }
  scans.add({"gru", 5, 9, 6, 31, "linear_before_reset", {"bias"}});
  scans.add({"gru", 5, 9, 6, 31, "linear_before_reset, direction = \"bidirectional\""});
  scans.add({"lstm", 5, 6, 6, 20, "input_forget", {"peephole", "bias"}});
  scans.add({"rnn", 4, 4, 4, 33, "activations = [\"relu\"]"});
  scans.add({"lstm", 4, 4, 4, 33, "activations = [\"softsign\", \"softplus\", \"relu\"]"});
  scans.check();
}

TEST(RowScan, OtherTypesAndTargets) {
  RowScans scans;
  scans.add({"lstm", 4, 5, 6, 20, "", {"bias"}, "f64"});
  scans.add({"gru", 4, 20, 6, 33, "linear_before_reset", {}, "f64"});
  scans.check();
  RowScans narrow("x86-64-v3");
  narrow.add({"lstm", 4, 19, 6, 45, "", {"bias"}});
  narrow.add({"gru", 4, 3, 6, 21});
  narrow.check();
}

TEST(RowScan, Drawn) {
  RowScans scans;
  std::mt19937 random(20261119);
  auto draw = [&](int64_t most) { return int64_t(1 + random() % uint64_t(most)); };
  const char *ops[] = {"rnn", "lstm", "gru"}, *directions[] = {"forward", "reverse", "bidirectional"};
  for (int number = 0; number < 6; ++number) {
    Layer layer{ops[random() % 3], 3 + draw(4), draw(50),
                draw(40),          draw(90),    fmt::format("direction = \"{}\"", directions[random() % 3])};
    if (random() % 2)
      layer.extras.push_back("bias");
    if (random() % 3 == 0)
      layer.extras.push_back("lengths");
    scans.add(layer);
  }
  scans.check();
}

/// Too many columns for the stack of a tile, even of one row: the kernel calls those of its body.
TEST(RowScan, WideStates) {
  KernelCases cases;
  const char *text =
      R"(dg.graph @g(%h0: tensor<1x70000xf32>, %xs: tensor<5x1x70000xf32>, %w: tensor<2188x1x32xf32>) typed {
    %a = dg.scan carry(%h = %h0) over(%x = %xs) with(%r = %w) : (tensor<1x70000xf32>, tensor<5x1x70000xf32>, tensor<2188x1x32xf32>) -> (tensor<1x70000xf32>) {
      %f = dg.slice %h {starts = array<i64: 0, 0>, sizes = array<i64: 1, 1>} : (tensor<1x70000xf32>) -> tensor<1x1xf32>
      %p = dg.panel_product %f, %r {columns = 70000 : i64} : (tensor<1x1xf32>, tensor<2188x1x32xf32>) -> tensor<1x70000xf32>
      %s = dg.add %p, %x : (tensor<1x70000xf32>, tensor<1x70000xf32>) -> tensor<1x70000xf32>
      %t = dg.tanh %s : (tensor<1x70000xf32>) -> tensor<1x70000xf32>
      dg.return %t : (tensor<1x70000xf32>) -> ()
    }
    dg.return %a : (tensor<1x70000xf32>) -> ()
  })";
  cases.addText("dg.scan", text, {.tolerance = 2e-5, .spread = 0.5});
  cases.check();
}

} // namespace
