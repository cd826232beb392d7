// SPDX-License-Identifier: Apache-2.0
// Products of matrices.
#include "ir/onnx/NodeTable.h"
#include "ir/onnx/Products.h"

using namespace mlir;

namespace dg::ir::onnx_import {

static Value broadcastTo(Node &node, Value value, ArrayRef<int64_t> shape) {
  if (!value || tensorOf(value).getShape() == shape)
    return value;
  return node.op("expand", {value}, {node.attr("shape", shape)});
}

Value matrixProduct(Node &node, Value a, Value b) {
  if (!a || !b)
    return {};
  SmallVector<int64_t> left(tensorOf(a).getShape()), right(tensorOf(b).getShape());
  if (left.empty() || right.empty()) {
    node.reject() << "has operands of types " << tensorOf(a) << " and " << tensorOf(b)
                  << ", expected at least one dimension in each";
    return {};
  }
  bool isRow = left.size() == 1, isColumn = right.size() == 1;
  if (isRow)
    left.insert(left.begin(), 1);
  if (isColumn)
    right.push_back(1);
  a = node.reshape(a, left), b = node.reshape(b, right);
  int64_t m = left[left.size() - 2], k = left.back(), n = right.back();
  SmallVector<int64_t> batch;
  Value product;
  if (right.size() == 2) { // one matrix for all rows
    batch.assign(left.begin(), left.end() - 2);
    int64_t rows = m;
    for (int64_t size : batch)
      rows *= size;
    product = node.op("matmul", {node.reshape(a, {rows, k}), b});
  } else {
    size_t rank = std::max(left.size(), right.size()) - 2;
    batch.assign(rank, 1);
    for (ArrayRef<int64_t> sizes : {ArrayRef(left).drop_back(2), ArrayRef(right).drop_back(2)})
      for (size_t i = 0; i < sizes.size(); ++i)
        if (int64_t &size = batch[rank - sizes.size() + i]; size == 1)
          size = sizes[i];
    SmallVector<int64_t> wholeLeft(batch), wholeRight(batch);
    wholeLeft.append({m, k});
    wholeRight.append(right.end() - 2, right.end());
    product = node.op("matmul", {broadcastTo(node, a, wholeLeft), broadcastTo(node, b, wholeRight)});
  }
  SmallVector<int64_t> shape(batch);
  if (!isRow)
    shape.push_back(m);
  if (!isColumn)
    shape.push_back(n);
  return node.reshape(product, shape);
}

static Results matmul(Node &node) { return {matrixProduct(node, node.input(0), node.input(1))}; }

static Value scaled(Node &node, Value value, double factor) {
  return factor == 1.0 || !value ? value : node.op("scale", {value}, {node.attr("factor", factor)});
}

static Results gemm(Node &node) {
  SmallVector<NamedAttribute> attributes;
  if (node.integer("transA", 0) != 0)
    attributes.push_back(node.flag("transpose_lhs"));
  if (node.integer("transB", 0) != 0)
    attributes.push_back(node.flag("transpose_rhs"));
  Value product = scaled(node, node.op("matmul", {node.input(0), node.input(1)}, attributes), node.number("alpha", 1));
  if (!node.hasInput(2))
    return {product};
  return {node.op("add", {product, scaled(node, node.input(2), node.number("beta", 1))})};
}

static Results einsum(Node &node) {
  return {node.op("einsum", node.inputs(), {node.attr("equation", StringRef(node.text("equation", "")))})};
}

void addContractionNodes(NodeTable &table) {
  table["MatMul"] = matmul;
  table["Gemm"] = gemm;
  table["Einsum"] = einsum;
}

} // namespace dg::ir::onnx_import
