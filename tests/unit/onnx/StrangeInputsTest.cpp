// SPDX-License-Identifier: Apache-2.0
// Proves what operators compute from inputs that the backend tests of the ONNX project do not have: places that are not
// finite, all elements dropped, numbers that only the running model knows. Expected numbers are those of ONNX Runtime
// 1.31, where it takes the model.
#include "ir/dialect/Elements.h"
#include "ir/reference/ReferenceExecutor.h"
#include "tests/unit/onnx/ModelText.h"

#include <cmath>

using namespace dg::ir;
using namespace dg::ir::test;
using mlir::succeeded;

namespace {

/// The one output of the graph, in the mode of the file.
HostTensor runGraph(const std::string &graph, const TensorMap &inputs) {
  OnnxOptions options;
  options.keepsTrainingMode = true;
  Import import(modelBytes(graph), options);
  EXPECT_TRUE(succeeded(import.model)) << import.messages;
  if (failed(import.model))
    return {};
  ParameterStore parameters(0);
  for (const OnnxWeight &weight : import.model->weights)
    parameters.set(weight.name, hostTensorOf(elementsOfBytes(weight.bytes, weight.type)));
  auto results = ReferenceExecutor().run(import.model->module->lookupSymbol<GraphOp>("forward"), inputs, parameters);
  EXPECT_TRUE(succeeded(results)) << import.messages;
  return succeeded(results) ? results->begin()->second : HostTensor();
}

void expectNear(const HostTensor &found, const std::vector<double> &expected) {
  ASSERT_EQ(found.data.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found.data[i], expected[i], 1e-5) << "element " << i;
}

HostTensor counting(std::vector<int64_t> shape) {
  HostTensor tensor{std::move(shape), {}};
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.data.push_back(double(i + 1));
  return tensor;
}

} // namespace

TEST(OnnxStrangeInputs, placesThatAreNotFiniteAreAtTheEdge) {
  struct {
    std::string mode, padding;
    int aligned;
    std::vector<double> expected;
  } const rows[] = {
      {"bilinear", "zeros", 0, {3.25, 1.5, 3.25, 0.75}},
      {"bilinear", "zeros", 1, {6, 2.875, 6, 1.75}},
      {"bilinear", "border", 0, {6.5, 3, 6.5, 1.5}},
      {"bilinear", "reflection", 0, {6.5, 3, 6.5, 1.5}},
      {"nearest", "zeros", 0, {5, 3, 5, 1}},
      {"nearest", "border", 1, {5, 3, 5, 2}},
      {"nearest", "reflection", 0, {5, 3, 5, 1}},
      {"bicubic", "zeros", 0, {3.6371307373, 1.125, 3.6371307373, 0.33984375}},
      {"bicubic", "border", 0, {6.787109375, 2.625, 6.787109375, 1.03125}},
      {"bicubic", "reflection", 0, {6.693359375, 2.25, 6.693359375, 0.65625}},
      {"bicubic", "reflection", 1, {6.46875, 2.833984375, 6.46875, 1.6328125}},
  };
  const double nan = std::nan(""), infinity = INFINITY;
  for (const auto &row : rows) {
    SCOPED_TRACE(row.mode + " " + row.padding);
    HostTensor found = runGraph(
        valueInfo("input", "x", "1,1,3,4") + valueInfo("input", "g", "1,1,4,2") + valueInfo("output", "y", "1,1,1,4") +
            "node { op_type: 'GridSample' input: 'x' input: 'g' output: 'y' attribute { name: 'mode' type: "
            "STRING s: '" +
            row.mode + "' } attribute { name: 'padding_mode' type: STRING s: '" + row.padding +
            "' } attribute { name: 'align_corners' type: INT i: " + std::to_string(row.aligned) + " } }",
        {{"x", counting({1, 1, 3, 4})},
         {"g", {{1, 1, 4, 2}, {nan, 0.25, 0.25, nan, infinity, 0.25, -0.5, -infinity}}}});
    expectNear(found, row.expected);
  }
}

TEST(OnnxStrangeInputs, allElementsAreDropped) {
  // ONNX Runtime refuses a ratio of 1; PyTorch gives zeros.
  HostTensor found =
      runGraph(valueInfo("input", "x", "2,3") + valueInfo("input", "r", "") +
                   valueInfo("input", "t", "", onnx::TensorProto::BOOL) + valueInfo("output", "y", "2,3") +
                   "node { op_type: 'Dropout' input: 'x' input: 'r' input: 't' output: 'y' }",
               {{"x", counting({2, 3})}, {"r", {{}, {1}}}, {"t", {{}, {1}}}});
  EXPECT_EQ(found.data, std::vector<double>(6, 0));
}

TEST(OnnxStrangeInputs, diagonalsOfTheRun) {
  for (bool isUpper : {false, true})
    for (double diagonal : {-9.0, -1.0, 0.0, 2.0, 9.0}) {
      SCOPED_TRACE(diagonal);
      HostTensor x = counting({2, 3, 4});
      HostTensor found =
          runGraph(valueInfo("input", "x", "2,3,4") + valueInfo("input", "k", "", onnx::TensorProto::INT64) +
                       valueInfo("output", "y", "2,3,4") +
                       "node { op_type: 'Trilu' input: 'x' input: 'k' output: 'y' attribute { name: "
                       "'upper' type: INT i: " +
                       std::to_string(isUpper) + " } }",
                   {{"x", x}, {"k", {{}, {diagonal}}}});
      for (size_t at = 0; at < x.data.size(); ++at) {
        double offset = double(at % 4) - double(at / 4 % 3);
        if (isUpper ? offset < diagonal : offset > diagonal)
          x.data[at] = 0;
      }
      EXPECT_EQ(found.data, x.data);
    }
}

TEST(OnnxStrangeInputs, axesOfTheRun) {
  const std::vector<double> along[] = {
      {1, 2, 3, 4, 6, 8, 10, 12}, {1, 2, 4, 6, 5, 6, 12, 14}, {1, 3, 3, 7, 5, 11, 7, 15}};
  for (int64_t axis = -3; axis < 3; ++axis) {
    SCOPED_TRACE(axis);
    HostTensor found =
        runGraph(valueInfo("input", "x", "2,2,2") + valueInfo("input", "a", "", onnx::TensorProto::INT32) +
                     valueInfo("output", "y", "2,2,2") + "node { op_type: 'CumSum' input: 'x' input: 'a' output: 'y' }",
                 {{"x", counting({2, 2, 2})}, {"a", {{}, {double(axis)}}}});
    EXPECT_EQ(found.data, along[axis < 0 ? axis + 3 : axis]);
  }
}
