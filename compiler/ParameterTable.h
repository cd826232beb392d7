// SPDX-License-Identifier: Apache-2.0
// The parameters of a model as its author should see them: names, shapes, what is trained, and who shares what.
#pragma once

#include "compiler/Compile.h"
#include "ir/onnx/ImportOnnx.h"
#include "ir/ops/structure/GraphOps.h"

namespace dg::compiler {

struct ParameterRow {
  std::string name, type;           ///< "64x3xf32"
  std::string role;                 ///< trained, frozen, statistics, weight (of an inference) or constant
  std::vector<std::string> readers; ///< names of the ops that read it; none of a constant
};

/// The parameters of the step's graph in the order of their names, then the constants of an imported file.
std::vector<ParameterRow> listParameters(ir::GraphOp graph, const Request &request, bool isTraining,
                                         const std::vector<ir::OnnxWeight> &constants);

/// One line for each parameter under a line that counts them.
std::string parametersAsText(const std::vector<ParameterRow> &rows);
/// {"parameters": [{"name", "type", "role", "readers"}, …]}
std::string parametersAsJson(const std::vector<ParameterRow> &rows);

} // namespace dg::compiler
