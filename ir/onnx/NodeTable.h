// SPDX-License-Identifier: Apache-2.0
// The table of ONNX operators. Each family of operators is one source with its rows.
#pragma once

#include "ir/onnx/Node.h"

#include <functional>

namespace dg::ir::onnx_import {

/// Builds the node; one value for each of its outputs (left-out ones may be null). An error was reported where a value
/// that the node names is null.
using NodeFunction = std::function<Results(Node &)>;
using NodeTable = std::map<std::string, NodeFunction>; ///< operators of the domain ai.onnx

/// All rows.
const NodeTable &nodeTable();

void addElementwiseNodes(NodeTable &table);
void addReductionNodes(NodeTable &table);
void addContractionNodes(NodeTable &table);
void addConvolutionNodes(NodeTable &table);
void addNormalizationNodes(NodeTable &table);
void addShapeNodes(NodeTable &table);
void addIndexingNodes(NodeTable &table);
void addLossNodes(NodeTable &table);
void addRecurrentNodes(NodeTable &table);
void addQuantizationNodes(NodeTable &table);
void addSignalNodes(NodeTable &table);
void addControlNodes(NodeTable &table);
void addRandomNodes(NodeTable &table);
void addSamplingNodes(NodeTable &table);

} // namespace dg::ir::onnx_import
