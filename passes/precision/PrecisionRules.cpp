// SPDX-License-Identifier: Apache-2.0
#include "passes/precision/PrecisionRules.h"

#include "llvm/ADT/StringMap.h"

#include <initializer_list>

namespace dg::passes {

namespace {
struct List {
  PrecisionRule rule;
  std::initializer_list<llvm::StringRef> ops;
};

const List lists[] = {
    {{PrecisionClass::low, "products sum in f32 whatever their factors have"},
     {"linear", "matmul", "einsum", "conv", "conv2d", "conv_transpose", "attention"}},
    {{PrecisionClass::narrows, "rows of a table are the first activations"}, {"embedding"}},
    {{PrecisionClass::follows, "element by element, or only moved: it follows what it reads"},
     {"abs",
      "add",
      "center_crop_pad",
      "clip",
      "concat",
      "depth_to_space",
      "dropout",
      "elu",
      "expand",
      "flatten",
      "flip",
      "gather",
      "gelu",
      "gelu_erf",
      "hard_sigmoid",
      "hard_swish",
      "leaky_relu",
      "max",
      "max_pool",
      "max_pool2d",
      "min",
      "mish",
      "mul",
      "neg",
      "pad",
      "pad_constant",
      "prelu",
      "relu",
      "reshape",
      "roll",
      "rotary",
      "scale",
      "select",
      "selu",
      "shrink",
      "sigmoid",
      "silu",
      "slice",
      "softsign",
      "celu",
      "space_to_depth",
      "squeeze",
      "sub",
      "tanh",
      "thresholded_relu",
      "tile",
      "transpose",
      "unsqueeze",
      "global_max_pool"}},
    {{PrecisionClass::rows, "rows follow what is read, moments and parameters are f32"}, {"layer_norm"}},
    {{PrecisionClass::kept, "a loss needs the digits of f32"},
     {"mse", "cross_entropy", "nll", "bce_with_logits", "huber", "kl_div", "l1", "smooth_l1"}},
    {{PrecisionClass::kept, "statistics are sums over many elements"},
     {"batch_norm",
      "group_norm",
      "instance_norm",
      "rms_norm",
      "mean_variance_norm",
      "lrn",
      "softmax",
      "log_softmax",
      "avg_pool",
      "global_avg_pool",
      "cumsum",
      "reduce_l1",
      "reduce_l2",
      "reduce_log_sum",
      "reduce_log_sum_exp",
      "reduce_max",
      "reduce_mean",
      "reduce_min",
      "reduce_prod",
      "reduce_sum",
      "reduce_sum_square"}},
    {{PrecisionClass::kept, "its slope or range is larger than 16 bits hold"},
     {"exp", "expm1", "log", "log1p", "pow", "reciprocal", "rsqrt", "sqrt", "div", "softplus", "sinh", "cosh", "tan"}},
};
} // namespace

mlir::Type parsePrecision(mlir::MLIRContext *context, llvm::StringRef name) {
  if (name == "f32")
    return mlir::Float32Type::get(context);
  if (name == "bf16")
    return mlir::BFloat16Type::get(context);
  return name == "f16" ? mlir::Type(mlir::Float16Type::get(context)) : mlir::Type();
}

PrecisionRule precisionRuleOf(llvm::StringRef op) {
  static const llvm::StringMap<PrecisionRule> rules = [] {
    llvm::StringMap<PrecisionRule> table;
    for (const List &list : lists)
      for (llvm::StringRef name : list.ops)
        table[name] = list.rule;
    return table;
  }();
  auto found = rules.find(op);
  return found == rules.end() ? PrecisionRule{PrecisionClass::kept, "no list names it"} : found->second;
}

} // namespace dg::passes
