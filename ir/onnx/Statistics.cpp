// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/Statistics.h"

using namespace mlir;

namespace dg::ir::onnx_import {

Value meanOf(Node &node, Value x, ArrayRef<int64_t> dims) {
  if (!x)
    return {};
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim >= tensorOf(x).getRank()) {
      node.reject() << "has an input of type " << tensorOf(x) << ", expected more than " << dim << " dimensions";
      return {};
    }
    count *= tensorOf(x).getDimSize(unsigned(dim));
  }
  Value sum = node.op("reduce_sum", {x}, {node.attr("dims", dims), node.flag("keep")});
  return node.op("div", {sum, node.scalarLike(double(count), sum)});
}

Statistics statisticsOf(Node &node, Value x, ArrayRef<int64_t> dims) {
  Value mean = meanOf(node, x, dims);
  Value distance = node.op("sub", {x, mean});
  return {mean, meanOf(node, node.op("mul", {distance, distance}), dims)};
}

Value inverseDeviation(Node &node, Value variance, double epsilon) {
  Value deviation = node.op("sqrt", {node.op("add", {variance, node.scalarLike(epsilon, variance)})});
  return node.op("div", {node.scalarLike(1, variance), deviation});
}

Value normalized(Node &node, Value x, const Statistics &statistics, double epsilon) {
  return node.op("mul", {node.op("sub", {x, statistics.mean}), inverseDeviation(node, statistics.variance, epsilon)});
}

} // namespace dg::ir::onnx_import
