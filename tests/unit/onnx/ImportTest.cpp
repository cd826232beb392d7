// SPDX-License-Identifier: Apache-2.0
// Proves what the import makes of graphs, initializers, functions, subgraphs and symbolic dimensions, and that what it
// cannot make is refused with the node, its operator, domain and version. What operators compute is proved by the
// backend tests of the ONNX project (tests/e2e/onnx).
#include "ir/dialect/Elements.h"
#include "ir/ops/structure/ControlOps.h"
#include "ir/reference/ReferenceExecutor.h"
#include "tests/unit/onnx/ModelText.h"

#include <cmath>
#include <set>

using namespace dg::ir;
using namespace dg::ir::test;
using mlir::succeeded;

static HostTensor runOnce(Import &import, const TensorMap &inputs) {
  auto graph = import.model->module->lookupSymbol<GraphOp>("forward");
  ParameterStore parameters(0);
  for (const OnnxWeight &weight : import.model->weights)
    parameters.set(weight.name, hostTensorOf(elementsOfBytes(weight.bytes, weight.type)));
  auto results = ReferenceExecutor().run(graph, inputs, parameters);
  EXPECT_TRUE(succeeded(results)) << import.messages;
  return succeeded(results) ? results->begin()->second : HostTensor();
}

static int numOps(Import &import) {
  auto graph = import.model->module->lookupSymbol<GraphOp>("forward");
  return int(llvm::range_size(graph.getBody().front())) - 1;
}

TEST(OnnxImport, weightsBecomeParameters) {
  Import import(modelBytes(valueInfo("input", "x", "2,2") + valueInfo("output", "y", "2,2") +
                           "initializer { name: 'w' dims: 2 data_type: 1 float_data: 3 float_data: 4 } "
                           "node { op_type: 'Mul' input: 'x' input: 'w' output: 'y' name: 'scale' }"));
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  ASSERT_EQ(import.model->weights.size(), 1u);
  EXPECT_EQ(import.model->weights[0].name, "w");
  EXPECT_EQ(runOnce(import, {{"x", {{2, 2}, {1, 2, 3, 4}}}}).data, (std::vector<double>{3, 8, 9, 16}));
}

TEST(OnnxImport, rawAndTypedBytesAreTheSame) {
  for (const char *numbers : {"int32_data: 1 int32_data: -2", "raw_data: '\\001\\000\\376\\377'"}) {
    Import import(modelBytes(valueInfo("output", "y", "2", onnx::TensorProto::INT16) +
                             "initializer { name: 'y' dims: 2 data_type: 5 " + numbers + " }"));
    ASSERT_TRUE(succeeded(import.model)) << import.messages;
    EXPECT_EQ(runOnce(import, {}).data, (std::vector<double>{1, -2}));
  }
}

TEST(OnnxImport, arithmeticOnShapesDisappears) {
  Import import(
      modelBytes(valueInfo("input", "x", "2,6") + valueInfo("output", "y", "3,4") +
                 "initializer { name: 'three' dims: 1 data_type: 7 int64_data: 3 } "
                 "initializer { name: 'one' dims: 1 data_type: 7 int64_data: -1 } "
                 "node { op_type: 'Shape' input: 'x' output: 's' attribute { name: 'start' type: INT i: 1 } } "
                 "node { op_type: 'Sub' input: 's' input: 'three' output: 'd' } " // 6 - 3
                 "node { op_type: 'Mul' input: 'd' input: 'one' output: 'm' } "   // -3
                 "node { op_type: 'Add' input: 'm' input: 'm2' output: 'a' } "
                 "initializer { name: 'm2' dims: 2 data_type: 7 int64_data: 6 int64_data: 2 } "
                 "node { op_type: 'Reshape' input: 'x' input: 'a' output: 'y' }"));
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  EXPECT_EQ(numOps(import), 1); // the reshape: [6 - 3, 2 - 3] = [3, -1]
  EXPECT_EQ(runOnce(import, {{"x", {{2, 6}, std::vector<double>(12, 1)}}}).shape, (std::vector<int64_t>{3, 4}));
}

TEST(OnnxImport, symbolicDimensionsAreBound) {
  std::string model = modelBytes(valueInfo("input", "x", "N,seq") + valueInfo("output", "y", "N,seq") +
                                 "node { op_type: 'Relu' input: 'x' output: 'y' }");
  OnnxOptions options;
  options.batch = 4;
  options.bindings["seq"] = 7;
  Import import(model, options);
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  EXPECT_EQ(runOnce(import, {{"x", {{4, 7}, std::vector<double>(28, -1)}}}).data, std::vector<double>(28, 0));
  options.bindings["tokens"] = 3;
  Import unknown(model, options);
  EXPECT_NE(unknown.messages.find("has no symbolic dimension 'tokens', which --bind gives; it has N, seq"),
            std::string::npos)
      << unknown.messages;
  Import unbound(model);
  EXPECT_NE(unbound.messages.find("input 'x': has dimension 0 of unknown size 'N': give it with --bind N=SIZE (or "
                                  "--batch SIZE)"),
            std::string::npos)
      << unbound.messages;
}

static const char *twice = "functions { name: 'Scaled' domain: 'mine' input: 'a' output: 'b' attribute: 'factor' "
                           "opset_import { domain: '' version: 17 } "
                           "node { op_type: 'Constant' output: 'k' attribute { name: 'value_float' type: FLOAT "
                           "ref_attr_name: 'factor' } } node { op_type: 'Mul' input: 'a' input: 'k' output: 'b' } } "
                           "opset_import { domain: 'mine' version: 1 }";

TEST(OnnxImport, functionsAreInlinedWithTheirAttributes) {
  Import import(
      modelBytes(valueInfo("input", "x", "2") + valueInfo("output", "y", "2") +
                     "node { op_type: 'Scaled' domain: 'mine' input: 'x' output: 'h' attribute { name: 'factor' "
                     "type: FLOAT f: 3 } } node { op_type: 'Scaled' domain: 'mine' input: 'h' output: 'y' "
                     "attribute { name: 'factor' type: FLOAT f: 0.5 } }",
                 twice));
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  EXPECT_EQ(runOnce(import, {{"x", {{2}, {1, -2}}}}).data, (std::vector<double>{1.5, -3}));
}

TEST(OnnxImport, endlessFunctionsAreRefused) {
  Import import(modelBytes(valueInfo("input", "x", "2") + valueInfo("output", "y", "2") +
                               "node { op_type: 'Loops' domain: 'mine' input: 'x' output: 'y' }",
                           "opset_import { domain: 'mine' version: 1 } functions { name: 'Loops' domain: 'mine' input: "
                           "'a' output: 'b' opset_import { domain: 'mine' version: 1 } node { op_type: 'Loops' domain: "
                           "'mine' input: 'a' output: 'b' } }"));
  EXPECT_NE(import.messages.find("calls functions more than 64 deep"), std::string::npos) << import.messages;
}

TEST(OnnxImport, inputsBecomeConstants) {
  std::string model = modelBytes(
      valueInfo("input", "x", "4") + valueInfo("input", "shape", "2", onnx::TensorProto::INT64) +
      valueInfo("output", "y", "2,2") + "node { op_type: 'Reshape' input: 'x' input: 'shape' output: 'y' name: 'r' }");
  Import asks(model);
  EXPECT_NE(
      asks.messages.find("node 'r' (Reshape, ai.onnx version 17): takes its shape from 'shape', which is known only "
                         "when the model runs, expected a constant: give it with --const shape=@FILE.npy"),
      std::string::npos)
      << asks.messages;
  OnnxOptions options;
  mlir::MLIRContext &context = asks.context;
  (void)context;
  struct Case {
    const char *name;
    unsigned width;
    const char *message;
  };
  for (Case wrong : {Case{"shape", 32, "is given with --const as 'i32', expected elements of type INT64"},
                     Case{"size", 64, "has no input 'size', which --const gives"}}) {
    Import import(""); // for its context
    auto type = mlir::RankedTensorType::get({2}, mlir::IntegerType::get(&import.context, wrong.width));
    OnnxOptions given;
    given.constants[wrong.name] = elementsOf(HostTensor{{2}, {2, 2}}, type);
    import.messages.clear();
    mlir::ScopedDiagnosticHandler handler(&import.context,
                                          [&](mlir::Diagnostic &message) { import.messages += message.str(); });
    EXPECT_TRUE(failed(importOnnx(model, "model.onnx", import.context, given)));
    EXPECT_NE(import.messages.find(wrong.message), std::string::npos) << import.messages;
  }
}

static size_t countOps(Import &import, mlir::StringRef name) {
  size_t count = 0;
  import.model->module->walk([&](mlir::Operation *op) { count += op->getName().getStringRef() == name; });
  return count;
}

static std::string body(const std::string &name, const std::string &graph) {
  return "attribute { name: '" + name + "' type: GRAPH g { name: 'body' " + graph + " } } ";
}

TEST(OnnxImport, branchesRunByAConditionOfTheRun) {
  std::string branches =
      body("then_branch", "output { name: 't' } node { op_type: 'Add' input: 'x' input: 'w' output: 't' }") +
      body("else_branch", "output { name: 'e' } node { op_type: 'Mul' input: 'x' input: 'x' output: 'e' }");
  Import import(modelBytes(valueInfo("input", "x", "2") + valueInfo("input", "c", "1", onnx::TensorProto::BOOL) +
                           valueInfo("output", "y", "2") +
                           "initializer { name: 'w' dims: 2 data_type: 1 float_data: 10 float_data: 20 } "
                           "node { op_type: 'If' input: 'c' output: 'y' " +
                           branches + "}"));
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  EXPECT_EQ(countOps(import, "dg.if"), 1u);
  std::string different =
      body("then_branch", "output { name: 'x' }") +
      body("else_branch", "output { name: 'e' } node { op_type: 'Concat' input: 'x' input: 'x' output: 'e' "
                          "attribute { name: 'axis' type: INT i: 0 } }");
  Import refused(modelBytes(valueInfo("input", "x", "2") + valueInfo("input", "c", "1", onnx::TensorProto::BOOL) +
                            valueInfo("output", "y", "2") + "node { op_type: 'If' name: 'i' input: 'c' output: 'y' " +
                            different + "}"));
  EXPECT_NE(
      refused.messages.find("node 'i' (If, ai.onnx version 17): has branches with results of types 'tensor<2xf32>' and "
                            "'tensor<4xf32>', expected equal ones"),
      std::string::npos)
      << refused.messages;
}

/// v becomes v + v as often as `trips` says, and each v is stacked where the node has a third output.
static std::string doublingLoop(const std::string &outputs) {
  return "node { op_type: 'Loop' name: 'l' input: 'trips' input: '' input: 'x' " + outputs +
         body("body",
              "input { name: 'i' } input { name: 'go' } input { name: 'v' } output { name: 'go2' } output { name: 'v2' "
              "} "
              "node { op_type: 'Identity' input: 'go' output: 'go2' } "
              "node { op_type: 'Add' input: 'v' input: 'v' output: 'v2' }" +
                  std::string(outputs.find("all") == std::string::npos
                                  ? ""
                                  : " output { name: 'v3' } node { op_type: 'Identity' input: 'v2' output: 'v3' }")) +
         "}";
}

TEST(OnnxImport, loopsRunAsOftenAsTheRunSays) {
  std::string inputs = valueInfo("input", "x", "2") + valueInfo("input", "trips", "", onnx::TensorProto::INT64);
  Import import(modelBytes(inputs + valueInfo("output", "y", "2") + doublingLoop("output: 'y' ")));
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  EXPECT_EQ(countOps(import, "dg.while"), 1u);
  for (double trips : {0, 1, 3})
    EXPECT_EQ(runOnce(import, {{"x", {{2}, {1, -3}}}, {"trips", {{}, {trips}}}}).data,
              (std::vector<double>{std::pow(2, trips), -3 * std::pow(2, trips)}));
  Import stacked(modelBytes(inputs + valueInfo("output", "all", "2,2") + doublingLoop("output: 'y' output: 'all' ")));
  EXPECT_NE(
      stacked.messages.find("node 'l' (Loop, ai.onnx version 17): takes its trip count from 'trips', which is known "
                            "only when the model runs"),
      std::string::npos)
      << stacked.messages;
}

TEST(OnnxImport, countedLoopsAreScans) {
  Import import(modelBytes(valueInfo("input", "x", "2") + valueInfo("output", "all", "3,2") +
                           "initializer { name: 'trips' data_type: 7 int64_data: 3 } " +
                           doublingLoop("output: 'y' output: 'all' ")));
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  EXPECT_EQ(countOps(import, "dg.scan"), 1u);
  EXPECT_EQ(runOnce(import, {{"x", {{2}, {1, -3}}}}).data, (std::vector<double>{2, -6, 4, -12, 8, -24}));
}

TEST(OnnxImport, loopsOfManyTripsKeepTheirLimit) {
  struct {
    const char *trips;
    std::optional<uint64_t> limit;
  } rows[] = {{"100000", 100000}, {"9223372036854775807", std::nullopt}};
  for (const auto &row : rows) {
    Import import(modelBytes(valueInfo("input", "x", "2") + valueInfo("output", "y", "2") +
                             "initializer { name: 'trips' data_type: 7 int64_data: " + row.trips + " } " +
                             doublingLoop("output: 'y' ")));
    ASSERT_TRUE(succeeded(import.model)) << import.messages;
    size_t numLoops = 0;
    import.model->module->walk([&](WhileOp loop) {
      EXPECT_EQ(loop.getMaxTrips(), row.limit);
      ++numLoops;
    });
    EXPECT_EQ(numLoops, 1u) << row.trips;
  }
}

TEST(OnnxImport, runningStatisticsAreStateOfTheirOwn) {
  // Exporters give equal tensors one name: the scale, which is trained, and the running variance, which is not.
  std::string model = modelBytes(
      valueInfo("input", "x", "N,2") + valueInfo("output", "y", "N,2") +
      "initializer { name: 'ones' dims: 2 data_type: 1 float_data: 1 float_data: 1 } "
      "initializer { name: 'zeros' dims: 2 data_type: 1 float_data: 0 float_data: 0 } "
      "node { op_type: 'BatchNormalization' input: 'x' input: 'ones' input: 'zeros' input: 'zeros' input: 'ones' "
      "output: 'y' }");
  OnnxOptions options;
  options.batch = 4;
  options.isTraining = true;
  Import import(model, options);
  ASSERT_TRUE(succeeded(import.model)) << import.messages;
  std::set<std::pair<std::string, bool>> parameters;
  import.model->module->walk([&](ParameterOp op) { parameters.insert({op.getParam().str(), bool(op.getState())}); });
  EXPECT_EQ(parameters.size(), 4u);
  EXPECT_EQ(std::count_if(parameters.begin(), parameters.end(), [](auto &one) { return one.second; }), 2);
  EXPECT_EQ(import.model->weights.size(), 4u);
}

struct Refusal {
  const char *name;
  std::string graph;
  const char *message;
};

class OnnxRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(OnnxRefusals, nameTheNode) {
  Import import(modelBytes(valueInfo("input", "x", "2,3") + valueInfo("output", "y", "2,3") + GetParam().graph));
  EXPECT_TRUE(failed(import.model));
  EXPECT_NE(import.messages.find(GetParam().message), std::string::npos) << import.messages;
}

/// One step of an RNN of one value, with biases and lengths of these dimensions.
static std::string recurrent(const std::string &biasDims, const std::string &lengthDims) {
  return "initializer { name: 'w' dims: 1 dims: 1 dims: 1 data_type: 1 float_data: 1 } initializer { name: 'b' " +
         biasDims + " data_type: 1 float_data: 1 float_data: 1 } initializer { name: 'n' " + lengthDims +
         " data_type: 6 int32_data: 1 } node { op_type: 'RNN' input: 'w' input: 'w' input: 'w' input: 'b' input: 'n' "
         "output: 'y' attribute { name: 'hidden_size' type: INT i: 1 } }";
}

/// One region of an image of these dimensions and numbers, with two samples to each side of a bin.
static std::string roiAlign(const std::string &image, const std::string &attribute) {
  return "initializer { name: 'i' data_type: 1 " + image +
         " } initializer { name: 'r' dims: 1 dims: 4 data_type: 1 float_data: 0 float_data: 0 float_data: 1 "
         "float_data: 1 } initializer { name: 'n' dims: 1 data_type: 7 int64_data: 0 } node { op_type: 'RoiAlign' "
         "input: 'i' input: 'r' input: 'n' output: 'y' attribute { name: 'sampling_ratio' type: INT i: 2 } attribute { "
         "type: INT " +
         attribute + " } }";
}

INSTANTIATE_TEST_SUITE_P(
    all, OnnxRefusals,
    testing::Values(
        Refusal{"unknownOperator", "node { op_type: 'Frobnicate' name: 'f' input: 'x' output: 'y' }",
                "node 'f' (Frobnicate, ai.onnx version 17): has an operator that is not supported"},
        Refusal{"unknownDomain", "node { op_type: 'Relu' domain: 'com.example' input: 'x' output: 'y' }",
                "node that makes 'y' (Relu, com.example version 0): has an operator that is not supported"},
        Refusal{"unknownValue", "node { op_type: 'Relu' input: 'z' output: 'y' }",
                "reads 'z', which no node before it makes"},
        Refusal{"missingInput", "node { op_type: 'Relu' output: 'y' }", "has no input 0, which the operator needs"},
        Refusal{"missingOutput", "node { op_type: 'Relu' input: 'x' output: 'z' }", "does not make its output 'y'"},
        Refusal{"twoMakers",
                "node { op_type: 'Relu' input: 'x' output: 'y' } node { op_type: 'Relu' input: 'x' output: 'y' }",
                "makes 'y', which a node before it makes already"},
        Refusal{"attributeOfAnotherType",
                "node { op_type: 'Flatten' input: 'x' output: 'y' attribute { name: 'axis' type: FLOAT f: 1 } }",
                "attribute 'axis' is of type FLOAT, expected INT"},
        Refusal{
            "axisOutside",
            "node { op_type: 'Concat' input: 'x' input: 'x' output: 'y' attribute { name: 'axis' type: INT i: 2 } }",
            "has axis 2, expected one of 2 dimensions (from -2 to 1)"},
        Refusal{
            "shapesThatDoNotFit",
            "initializer { name: 'w' dims: 2 data_type: 1 float_data: 1 float_data: 2 } node { op_type: 'Add' input: "
            "'x' input: 'w' output: 'y' }",
            "(Add, ai.onnx version 17): 'dg.add' op has operands"},
        Refusal{
            "tooFewBytes",
            "initializer { name: 'w' dims: 3 data_type: 1 float_data: 1 } node { op_type: 'Add' input: 'x' input: 'w' "
            "output: 'y' }",
            "tensor 'w' has 4 bytes of data, expected 12 for its shape and type FLOAT"},
        Refusal{"strings",
                "initializer { name: 'w' data_type: 8 string_data: 'a' } node { op_type: 'Add' input: 'x' input: 'w' "
                "output: 'y' }",
                "tensor 'w' has elements of type STRING, expected numbers or booleans"},
        Refusal{"hugeShape",
                "initializer { name: 'w' dims: 4611686018427387904 dims: 8 data_type: 1 } node { op_type: 'Add' input: "
                "'x' input: 'w' output: 'y' }",
                "has a shape of 2 dimensions that no tensor can have"},
        Refusal{"moreThanCanBeCounted",
                "node { op_type: 'RandomUniform' input: '' output: 'y' attribute { name: 'shape' type: INTS ints: "
                "4611686018427387904 ints: 8 } }",
                "has a tensor of type 'tensor<4611686018427387904x8xf32>', expected at most 281474976710656 elements"},
        Refusal{"biasWithoutDirections", recurrent("dims: 2", "dims: 1"),
                "has biases of type 'tensor<2xf32>', expected 2 dimensions"},
        Refusal{"lengthsOfAScalar", recurrent("dims: 1 dims: 2", ""),
                "has sequence lengths of type 'tensor<i32>', expected 1 dimensions"},
        Refusal{"regionsInNothing", roiAlign("dims: 1 dims: 1 dims: 0 dims: 4", "name: 'output_height' i: 1"),
                "has an image of type 'tensor<1x1x0x4xf32>', regions of type 'tensor<1x4xf32>'"},
        Refusal{"regionsOfNoHeight",
                roiAlign("dims: 1 dims: 1 dims: 1 dims: 1 float_data: 1", "name: 'output_height' i: -1"),
                "has output_height -1, output_width 1 and sampling_ratio 2, expected 1 to 65536 of each"},
        Refusal{
            "regionsTooWide",
            roiAlign("dims: 1 dims: 1 dims: 1 dims: 1 float_data: 1", "name: 'output_width' i: 4611686018427387904"),
            "has output_height 1, output_width 4611686018427387904"},
        Refusal{"gridOverNothing",
                "initializer { name: 'i' dims: 1 dims: 1 dims: 0 dims: 2 data_type: 1 } "
                "initializer { name: 'g' dims: 1 dims: 1 dims: 1 dims: 2 data_type: 1 float_data: 0 float_data: 0 } "
                "node { op_type: 'GridSample' input: 'i' input: 'g' output: 'y' }",
                "has an image of type 'tensor<1x1x0x2xf32>'"},
        Refusal{"sparse", "sparse_initializer { dims: 3 } node { op_type: 'Relu' input: 'x' output: 'y' }",
                "has sparse initializers, which are not supported"}),
    [](const testing::TestParamInfo<Refusal> &info) { return info.param.name; });

TEST(OnnxImport, whatIsNoModelIsRefused) {
  for (const std::string &bytes : {std::string(), std::string("not a model"), modelBytes("").substr(0, 3)}) {
    Import import(bytes);
    EXPECT_TRUE(failed(import.model));
    EXPECT_FALSE(import.messages.empty());
  }
}

TEST(OnnxImport, newerOpsetsAreRefused) {
  onnx::ModelProto model;
  model.ParseFromString(modelBytes(valueInfo("input", "x", "2") + valueInfo("output", "y", "2") +
                                   "node { op_type: 'Relu' input: 'x' output: 'y' }"));
  model.mutable_opset_import(0)->set_version(99);
  Import import(model.SerializeAsString());
  EXPECT_NE(import.messages.find("is of a newer version than 21"), std::string::npos) << import.messages;
}
