// SPDX-License-Identifier: Apache-2.0
// Proves that each op's gradient graph is the derivative of its evaluation: against central differences, in double, for
// random shapes, operands and output gradients.
#include "ir/ops/structure/GraphOps.h"
#include "tests/unit/ir/OpTable.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

/// Σ over results of (result · its weight), by running the graph.
double weighted(OpInstance &instance, const TensorMap &inputs, ArrayRef<HostTensor> weights) {
  ParameterStore none;
  auto results = ReferenceExecutor().run(instance.graph(), inputs, none);
  EXPECT_TRUE(succeeded(results)) << instance.text;
  double sum = 0;
  for (auto [index, weight] : llvm::enumerate(weights))
    for (auto [element, factor] : llvm::zip_equal(results->at("r" + std::to_string(index)).data, weight.data))
      sum += element * factor;
  return sum;
}

/// A copy of the graph that takes "g0", … and returns the gradient of each operand as "da", …
OwningOpRef<ModuleOp> gradientModule(OpInstance &instance, SmallVectorImpl<bool> &hasGradient) {
  OwningOpRef<ModuleOp> module = instance.module->clone();
  GraphOp graph = *module->getOps<GraphOp>().begin();
  Operation *op = &graph.getBody().front().front();
  SmallVector<Value> grads, results;
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    grads.push_back(graph.addInput("g" + std::to_string(index), result.getType()));
  OpBuilder builder(graph.getReturn());
  auto made = cast<GradientOp>(op).buildGradients(builder, grads);
  EXPECT_TRUE(succeeded(made)) << instance.text;
  SmallVector<Attribute> names;
  for (auto [index, grad] : llvm::enumerate(*made)) {
    hasGradient.push_back(bool(grad));
    if (!grad)
      continue;
    EXPECT_EQ(grad.getType(), op->getOperand(index).getType()) << instance.text;
    results.push_back(grad);
    names.push_back(builder.getStringAttr("d" + graph.getInputName(index).str()));
  }
  ReturnOp end = graph.getReturn();
  builder.create<ReturnOp>(graph.getLoc(), results, builder.getArrayAttr(names), PlaceAttr());
  end.erase();
  return module;
}

void checkGradient(const OpSpec &spec, std::mt19937_64 &random, MLIRContext &context) {
  OpInstance instance = instantiate(spec, {1, 2, 3, 5}, random, context);
  SCOPED_TRACE(instance.text);
  // Forms that are taken apart before gradients are taken: DecompositionTest compares them with their parts.
  if (isa<CompositeOp>(instance.op())) {
    OwningOpRef<ModuleOp> copy = instance.module->clone();
    auto composite = cast<CompositeOp>((*copy->getOps<GraphOp>().begin()).getBody().front().front());
    OpBuilder builder(composite);
    if (!composite.decompose(builder).empty())
      return;
  }
  SmallVector<bool> hasGradient;
  OwningOpRef<ModuleOp> module = gradientModule(instance, hasGradient);
  ASSERT_EQ(hasGradient.size(), instance.operands.size());

  TensorMap inputs = instance.inputs(), withGrads = inputs;
  SmallVector<HostTensor> weights;
  for (auto [index, result] : llvm::enumerate(instance.op()->getResults())) {
    weights.push_back(randomTensor(tensorOf(result).getShape(), random));
    withGrads["g" + std::to_string(index)] = weights.back();
  }
  ParameterStore none;
  auto grads = ReferenceExecutor().run(*module->getOps<GraphOp>().begin(), withGrads, none);
  ASSERT_TRUE(succeeded(grads));

  const double step = 1e-5;
  for (auto [index, operand] : llvm::enumerate(instance.operands)) {
    std::string name = instance.graph().getInputName(index).str();
    bool isReal = isa<FloatType>(tensorOf(instance.op()->getOperand(index)).getElementType());
    EXPECT_EQ(bool(hasGradient[index]), isReal) << "operand " << name;
    if (!isReal || !hasGradient[index])
      continue;
    HostTensor expected = operand;
    for (size_t i = 0; i < operand.data.size(); ++i) {
      TensorMap moved = inputs;
      moved[name].data[i] = operand.data[i] + step;
      double above = weighted(instance, moved, weights);
      moved[name].data[i] = operand.data[i] - step;
      expected.data[i] = (above - weighted(instance, moved, weights)) / (2 * step);
    }
    EXPECT_LT(difference(grads->at("d" + name), expected), 2e-7) << "operand " << name;
  }
}

} // namespace

TEST(Gradient, EqualsCentralDifferences) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  for (int round = 0; round < 4; ++round)
    for (const OpSpec &spec : opTable()) {
      OperationName name(spec.text.substr(0, spec.text.find(' ')), context.get());
      if (name.hasInterface<GradientOp>() && name.getStringRef() != "dg.constant")
        checkGradient(spec, random, *context);
    }
}
