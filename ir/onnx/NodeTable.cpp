// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/NodeTable.h"

namespace dg::ir::onnx_import {

const NodeTable &nodeTable() {
  static const NodeTable table = [] {
    NodeTable rows;
    addElementwiseNodes(rows);
    addReductionNodes(rows);
    addContractionNodes(rows);
    addConvolutionNodes(rows);
    addNormalizationNodes(rows);
    addShapeNodes(rows);
    addIndexingNodes(rows);
    addLossNodes(rows);
    addRecurrentNodes(rows);
    addQuantizationNodes(rows);
    addSignalNodes(rows);
    addControlNodes(rows);
    addRandomNodes(rows);
    addSamplingNodes(rows);
    return rows;
  }();
  return table;
}

} // namespace dg::ir::onnx_import
