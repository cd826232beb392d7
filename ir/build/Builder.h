// SPDX-License-Identifier: Apache-2.0
// A graph in C++ that reads like the model: layers make their own parameters. What it leaves behind is what the text
// form parses to: every value is `!dg.any`, so that `--dg-deduce-types` finishes it for any batch.
#pragma once

#include "ir/ops/structure/GraphOps.h"

#include "mlir/IR/BuiltinOps.h"

#include <array>
#include <optional>
#include <utility>

namespace dg::ir {

/// How a parameter starts.
struct Init {
  InitKind kind;
  double value;

  static constexpr Init constant(double value) { return {InitKind::constant, value}; }
  /// In [-bound, bound).
  static constexpr Init uniform(double bound) { return {InitKind::uniform, bound}; }
  static constexpr Init normal(double deviation) { return {InitKind::normal, deviation}; }
  /// PyTorch's default for linear and convolution layers, uniform(1/√fanIn), cut to the eight decimals that the models
  /// in examples/ are written with: the same model starts with the same bits from text and from C++.
  static Init fanIn(int64_t fanIn);
};

/// What a layer does otherwise than PyTorch's default.
struct LayerOptions {
  std::optional<Init> weight = std::nullopt;
  std::optional<Init> bias = std::nullopt;
  bool hasBias = true;
  /// The name of the op in messages and pictures; empty: the name of the layer.
  std::string label = "";
};

/// The window of a convolution or a pool: [height, width] each.
struct ConvWindow {
  std::array<int64_t, 2> kernel;
  std::array<int64_t, 2> strides = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
};

/// What a loss of classes does otherwise than the mean over all positions.
struct ClassLossOptions {
  double labelSmoothing = 0;
  std::optional<int64_t> ignoreIndex = std::nullopt; ///< a position with this target does not count
  std::string label = "loss";
};

/// Builds one dg.graph at the end of a module (examples/builder.cpp is a whole program):
///
///   GraphBuilder b(module);
///   Value x = b.input("x", {b.batch, 10}, b.f32()), y = b.input("y", {b.batch, 1}, b.f32());
///   Value h = b.relu(b.linear(x, "fc1", 20));
///   if (failed(b.returns(b.mse(b.linear(h, "fc2", 1), y)))) …
///
/// Types are inferred while building, so that a layer knows the width of its input. An op that does not fit reports an
/// error at once; building goes on without types and `returns` fails. One thread at a time.
class GraphBuilder {
public:
  /// The size of a dimension that `dgc --batch` gives.
  static constexpr int64_t batch = mlir::ShapedType::kDynamic;

  /// Loads the dialect where the module's context does not have it yet.
  explicit GraphBuilder(mlir::ModuleOp module, llvm::StringRef graphName = "loss");

  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type i32() { return builder.getI32Type(); }

  mlir::Value input(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, mlir::Type elementType);
  /// An f32 parameter unless `elementType` says otherwise.
  mlir::Value parameter(const llvm::Twine &name, llvm::ArrayRef<int64_t> shape, Init init, mlir::Type elementType = {});
  /// What a layer keeps and no optimizer trains.
  mlir::Value state(const llvm::Twine &name, llvm::ArrayRef<int64_t> shape, Init init, mlir::Type elementType = {});

  // Layers: `name`.weight and `name`.bias are their parameters, made where the layer is.
  mlir::Value linear(mlir::Value x, const llvm::Twine &name, int64_t outWidth, const LayerOptions &options = {});
  mlir::Value conv2d(mlir::Value x, const llvm::Twine &name, int64_t outChannels, const ConvWindow &window,
                     const LayerOptions &options = {});
  /// Over the last dimension; starts as the identity.
  mlir::Value layerNorm(mlir::Value x, const llvm::Twine &name, const LayerOptions &options = {});
  /// Over the last dimension, by the mean square; starts as the identity.
  mlir::Value rmsNorm(mlir::Value x, const llvm::Twine &name, const LayerOptions &options = {});
  /// By channel (dimension 1); starts as the identity. `name`.running_mean and `name`.running_var are its state.
  mlir::Value batchNorm(mlir::Value x, const llvm::Twine &name, const LayerOptions &options = {});
  /// Rows of a table [rows, width]; starts with deviation 1.
  mlir::Value embedding(mlir::Value tokens, const llvm::Twine &name, int64_t rows, int64_t width,
                        const LayerOptions &options = {});

  // Ops; the label is their name in messages and pictures.
  mlir::Value relu(mlir::Value x, const llvm::Twine &label = "");
  mlir::Value gelu(mlir::Value x, const llvm::Twine &label = "");
  mlir::Value silu(mlir::Value x, const llvm::Twine &label = "");
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs, const llvm::Twine &label = "");
  /// While training each element is 0 with this probability; samples are dimension 0.
  mlir::Value dropout(mlir::Value x, double rate, const llvm::Twine &label = "");
  mlir::Value add(mlir::Value lhs, mlir::Value rhs, const llvm::Twine &label = "");
  /// 0 keeps the dimension at that place, one -1 is deduced.
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<int64_t> shape, const llvm::Twine &label = "");
  /// Windows side by side.
  mlir::Value maxPool2d(mlir::Value x, std::array<int64_t, 2> kernel, const llvm::Twine &label = "");
  mlir::Value maxPool(mlir::Value x, const ConvWindow &window, const llvm::Twine &label = "");
  /// The mean over all places: [n, c, 1, 1].
  mlir::Value globalAvgPool(mlir::Value x, const llvm::Twine &label = "");
  mlir::Value logSoftmax(mlir::Value x, const llvm::Twine &label = "");
  /// Query, key and value are [batch, tokens, width]; with `kvHeads` each head of the key serves a group of heads.
  mlir::Value attention(mlir::Value query, mlir::Value key, mlir::Value value, int64_t heads, bool isCausal,
                        const llvm::Twine &label = "", std::optional<int64_t> kvHeads = std::nullopt);
  /// Cosines and sines of the angles of `tokens` places, [tokens, pairs] each: place · base^(-pair / pairs).
  std::pair<mlir::Value, mlir::Value> rotaryAngles(int64_t tokens, int64_t pairs, double base = 10000);
  /// Pairs (i, i + width / 2) of each head turned by these angles.
  mlir::Value rotary(mlir::Value x, std::pair<mlir::Value, mlir::Value> angles, int64_t heads,
                     const llvm::Twine &label = "");

  mlir::Value mse(mlir::Value prediction, mlir::Value target, const llvm::Twine &label = "loss");
  mlir::Value nll(mlir::Value logProbabilities, mlir::Value target, const llvm::Twine &label = "loss");
  mlir::Value crossEntropy(mlir::Value logits, mlir::Value target, const ClassLossOptions &options = {});

  /// Closes the graph: forgets the types that were inferred on the way, and verifies. Fails, after the diagnostic,
  /// where an op did not fit. Nothing can be added afterwards.
  mlir::LogicalResult returns(mlir::ValueRange values);

private:
  template <typename Op, typename... Arguments> mlir::Value make(const llvm::Twine &label, Arguments &&...arguments);
  /// The size of a dimension of a layer's input (negative: from the last); nothing, after a diagnostic, where it has
  /// none.
  std::optional<int64_t> inputSize(mlir::Value x, int64_t dim, llvm::StringRef layer);
  mlir::Location locationOf(llvm::StringRef label);

  mlir::OpBuilder builder;
  GraphOp graph;
  bool isRejected = false;
};

} // namespace dg::ir
