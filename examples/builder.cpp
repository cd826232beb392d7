// SPDX-License-Identifier: Apache-2.0
// A model in C++ instead of text: a residual image classifier with batch norm, dropout and smoothed labels. Layers make
// their own parameters and take the width of their input from it. What it prints is a model for dgc:
//
//   builder_example > net.mlir
//   dgc net.mlir --batch 64 -o net.dgx
#include "ir/build/Builder.h"

#include "llvm/Support/raw_ostream.h"

using dg::ir::GraphBuilder;
using mlir::Value;

/// Two convolutions and a way around them.
static Value residual(GraphBuilder &b, Value x, const std::string &name, int64_t channels) {
  const dg::ir::ConvWindow window = {.kernel = {3, 3}, .padding = {1, 1}};
  const dg::ir::LayerOptions plain = {.hasBias = false};
  Value y = b.relu(b.batchNorm(b.conv2d(x, name + ".conv1", channels, window, plain), name + ".bn1"));
  y = b.batchNorm(b.conv2d(y, name + ".conv2", channels, window, plain), name + ".bn2");
  return b.relu(b.add(x, y));
}

int main() {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  GraphBuilder b(*module, "loss");
  // A dimension b.batch gets its size from dgc --batch. The names are those of dgrun --data x=… --data y=….
  Value x = b.input("x", {b.batch, 3, 16, 16}, b.f32()), y = b.input("y", {b.batch}, b.i32());
  Value h = b.relu(b.conv2d(x, "stem", 8, {.kernel = {3, 3}, .padding = {1, 1}}));
  for (const char *name : {"block1", "block2"})
    h = residual(b, h, name, 8);
  h = b.reshape(b.globalAvgPool(b.maxPool2d(h, {2, 2})), {0, -1}); // 0 keeps the batch, -1 is deduced
  Value logits = b.linear(b.dropout(h, 0.1), "fc", 10);
  // An op that does not fit has reported itself; the graph is then refused here.
  if (failed(b.returns(b.crossEntropy(logits, y, {.labelSmoothing = 0.1}))))
    return 1;
  module->print(llvm::outs());
  return 0;
}
