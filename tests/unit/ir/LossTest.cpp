// SPDX-License-Identifier: Apache-2.0
// Proves that a loss is the mean of the losses per sample that it builds, and that accuracy counts what is classified
// rightly.
#include "ir/ops/structure/GraphOps.h"
#include "ir/ops/training/LossOps.h"
#include "tests/unit/ir/OpTable.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

static double mean(const HostTensor &tensor) {
  double sum = 0;
  for (double element : tensor.data)
    sum += element;
  return sum / double(tensor.data.size());
}

TEST(Loss, IsTheMeanOfItsLossesPerSample) {
  auto context = makeContext();
  std::mt19937_64 random(suiteSeed());
  for (int round = 0; round < 5; ++round)
    for (const OpSpec &spec : opTable()) {
      OpInstance instance = instantiate(spec, {1, 2, 3, 5}, random, *context);
      auto loss = dyn_cast<LossOp>(instance.op());
      if (!loss)
        continue;
      SCOPED_TRACE(instance.text);
      OpBuilder builder(instance.graph().getReturn());
      SampleMeasure perSample = loss.buildPerSample(builder), accuracy = loss.buildPerSampleAccuracy(builder);
      SmallVector<Value> results;
      SmallVector<StringRef> names;
      auto add = [&](StringRef name, Value value) {
        if (!value)
          return;
        results.push_back(value);
        names.push_back(name);
      };
      add("loss", loss->getResult(0));
      add("samples", perSample.value);
      add("counts", perSample.count);
      add("accuracy", accuracy.value);
      add("counted", accuracy.count);
      ReturnOp end = instance.graph().getReturn();
      builder.create<ReturnOp>(end.getLoc(), results, builder.getStrArrayAttr(names), PlaceAttr());
      end.erase();

      ParameterStore none;
      auto run = ReferenceExecutor().run(instance.graph(), instance.inputs(), none);
      ASSERT_TRUE(succeeded(run));
      std::vector<int64_t> samples{instance.operands[0].shape[0]};
      EXPECT_EQ(run->at("samples").shape, samples);
      double counted = perSample.count ? mean(run->at("counts")) : 1;
      EXPECT_NEAR(run->at("loss").data[0] * counted, mean(run->at("samples")), 1e-13);

      EXPECT_EQ(bool(accuracy.value), (isa<NllOp, CrossEntropyOp>(loss)));
      if (!accuracy.value)
        continue;
      EXPECT_EQ(run->at("accuracy").shape, samples);
      const HostTensor &scores = instance.operands[0], &target = instance.operands[1];
      int64_t classes = scores.shape.back();
      double numRight = 0, numCounted = 0;
      auto ignored = loss->getAttrOfType<IntegerAttr>("ignore_index");
      for (size_t row = 0; row < target.data.size(); ++row) {
        if (ignored && target.data[row] == double(ignored.getInt()))
          continue;
        auto begin = scores.data.begin() + row * classes;
        numRight += std::max_element(begin, begin + classes) - begin == int64_t(target.data[row]);
        ++numCounted;
      }
      double found = mean(run->at("accuracy")) / (accuracy.count ? std::max(mean(run->at("counted")), 1e-30) : 1);
      EXPECT_NEAR(found, numCounted == 0 ? 0 : numRight / numCounted, 1e-13);
    }
}

TEST(Loss, IgnoresNoClassThatItsTargetCannotHold) {
  auto context = makeContext();
  for (const char *kind : {"nll", "cross_entropy"})
    // In 8 bits 256 would be class 0 and -254 class 2.
    for (const char *index : {"256", "-254"}) {
      auto module =
          parse(*context, std::string("dg.graph @g(%a: tensor<2x3xf64>, %b: tensor<2xui8>) { %r = dg.") + kind +
                              " %a, %b {ignore_index = " + index + "}\n dg.return %r {names = [\"loss\"]} }");
      GraphOp graph = *module->getOps<GraphOp>().begin();
      ASSERT_TRUE(succeeded(deduce(graph)));
      ReturnOp end = graph.getReturn();
      OpBuilder builder(end);
      auto loss = cast<LossOp>(end->getOperand(0).getDefiningOp());
      SampleMeasure perSample = loss.buildPerSample(builder), accuracy = loss.buildPerSampleAccuracy(builder);
      EXPECT_FALSE(perSample.count);
      EXPECT_FALSE(accuracy.count);
      builder.create<ReturnOp>(end.getLoc(), ValueRange{end->getOperand(0), perSample.value, accuracy.value},
                               builder.getStrArrayAttr({"loss", "samples", "accuracy"}), PlaceAttr());
      end.erase();
      ParameterStore none;
      auto run = ReferenceExecutor().run(
          graph, {{"a", {{2, 3}, {-0.5, -1.5, -2, -3, -0.25, -1}}}, {"b", {{2}, {0, 2}}}}, none);
      ASSERT_TRUE(succeeded(run));
      EXPECT_NEAR(run->at("loss").data[0], mean(run->at("samples")), 1e-13) << kind << " " << index;
      EXPECT_EQ(run->at("accuracy").data, (std::vector<double>{1, 0}));
    }
}
