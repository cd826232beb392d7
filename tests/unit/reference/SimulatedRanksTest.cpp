// SPDX-License-Identifier: Apache-2.0
// Proves that split programs, written by hand, give on simulated ranks what the whole program gives in the reference
// executor: over data with uneven samples, over tensor with every collective, over stages with micro-batches. And that
// broken ones are found out.
#include "tests/unit/reference/SimulatedRanks.h"
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/reference/ReferenceExecutor.h"
#include "tests/unit/ir/OpTable.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

/// SGD on p = relu(x W1ᵀ) W2ᵀ for a batch of `n` samples, weighed.
std::string wholeProgram(int n) {
  std::string batch = std::to_string(n);
  return "dg.graph @train(%x: tensor<" + batch + "x4xf32>, %y: tensor<" + batch + "x2xf32>, %sample_weight: tensor<" +
         batch + "xf32>) {" + R"(
    %w1 = dg.parameter "w1" tensor<6x4xf32> uniform 0.5
    %w2 = dg.parameter "w2" tensor<2x6xf32> uniform 0.5
    %h = dg.matmul %x, %w1 {transpose_rhs}
    %r = dg.relu %h
    %p = dg.matmul %r, %w2 {transpose_rhs}
    %d = dg.sub %p, %y
    %wt = dg.reshape %sample_weight {shape = array<i64: -1, 1>}
    %dw = dg.mul %d, %wt
    %sq = dg.mul %d, %dw
    %loss = dg.reduce_sum %sq {dims = array<i64: 0, 1>}
    %dp = dg.scale %dw {factor = 2.0}
    %g2 = dg.matmul %dp, %r {transpose_lhs}
    %dr = dg.matmul %dp, %w2
    %dh = dg.relu_grad %dr, %r
    %g1 = dg.matmul %dh, %x {transpose_lhs}
    %n1 = dg.sgd %w1, %g1
    %n2 = dg.sgd %w2, %g2
    dg.update %n1 {param = "w1"}
    dg.update %n2 {param = "w2"}
    dg.return %loss {names = ["loss"]}
  })";
}

/// The same over data = 2, with room for 3 samples a rank.
const char *const dataProgram = R"(
  dg.graph @train.0(%x: tensor<3x4xf32>, %y: tensor<3x2xf32>, %sample_weight: tensor<3xf32>)
      attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
    %w1 = dg.parameter "w1" tensor<6x4xf32> uniform 0.5 {place = #dg.place<shardings = #dg.sharding<["", ""], []>>}
    %w2 = dg.parameter "w2" tensor<2x6xf32> uniform 0.5
    %h = dg.matmul %x, %w1 {transpose_rhs}
    %r = dg.relu %h
    %p = dg.matmul %r, %w2 {transpose_rhs}
    %d = dg.sub %p, %y
    %wt = dg.reshape %sample_weight {shape = array<i64: -1, 1>}
    %dw = dg.mul %d, %wt
    %sq = dg.mul %d, %dw
    %part = dg.reduce_sum %sq {dims = array<i64: 0, 1>}
    %loss = dg.all_reduce %part {axis = "data"}
    %dp = dg.scale %dw {factor = 2.0}
    %part2 = dg.matmul %dp, %r {transpose_lhs}
    %g2 = dg.all_reduce %part2 {axis = "data"}
    %dr = dg.matmul %dp, %w2
    %dh = dg.relu_grad %dr, %r
    %part1 = dg.matmul %dh, %x {transpose_lhs}
    %g1 = dg.all_reduce %part1 {axis = "data"}
    %n1 = dg.sgd %w1, %g1
    %n2 = dg.sgd %w2, %g2
    dg.update %n1 {param = "w1"}
    dg.update %n2 {param = "w2"}
    dg.return %loss {names = ["loss"]}
  })";

/// Over tensor = 2: W1 by rows, W2 by columns. The sum of p goes by reduce_scatter and all_gather, r is gathered and
/// sliced again.
const char *const tensorProgram = R"(
  dg.graph @train.0(%x: tensor<5x4xf32>, %y: tensor<5x2xf32>, %sample_weight: tensor<5xf32>)
      attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
    %w1 = dg.parameter "w1" tensor<6x4xf32> uniform 0.5 {place = #dg.place<shardings = #dg.sharding<["tensor", ""], []>>}
    %w2 = dg.parameter "w2" tensor<2x6xf32> uniform 0.5 {place = #dg.place<shardings = #dg.sharding<["", "tensor"], []>>}
    %h = dg.matmul %x, %w1 {transpose_rhs}
    %rs = dg.relu %h
    %all = dg.all_gather %rs {axis = "tensor", dim = 1 : i64}
    %r = dg.slice_shard %all {axis = "tensor", dim = 1 : i64}
    %part = dg.matmul %r, %w2 {transpose_rhs}
    %column = dg.reduce_scatter %part {axis = "tensor", dim = 1 : i64}
    %p = dg.all_gather %column {axis = "tensor", dim = 1 : i64}
    %d = dg.sub %p, %y
    %wt = dg.reshape %sample_weight {shape = array<i64: -1, 1>}
    %dw = dg.mul %d, %wt
    %sq = dg.mul %d, %dw
    %loss = dg.reduce_sum %sq {dims = array<i64: 0, 1>}
    %dp = dg.scale %dw {factor = 2.0}
    %g2 = dg.matmul %dp, %r {transpose_lhs}
    %dr = dg.matmul %dp, %w2
    %dh = dg.relu_grad %dr, %r
    %g1 = dg.matmul %dh, %x {transpose_lhs}
    %n1 = dg.sgd %w1, %g1
    %n2 = dg.sgd %w2, %g2
    dg.update %n1 {param = "w1"}
    dg.update %n2 {param = "w2"}
    dg.return %loss, %p {names = ["loss", "p"]}
  })";

/// Over two stages and data = 2, accumulating micro-batches, with room for 2 samples a rank and micro-batch.
const char *const pipeProgram = R"(
  dg.graph @train.0.forward(%x: tensor<2x4xf32>) attributes {program = "train", stage = 0 : i64, phase = 1 : i32} {
    %w1 = dg.parameter "w1" tensor<6x4xf32> uniform 0.5
    %h = dg.matmul %x, %w1 {transpose_rhs}
    %r = dg.relu %h
    dg.send %r {channel = 0 : i64, peer_stage = 1 : i64}
    dg.return %r {names = ["r"]}
  }
  dg.graph @train.1.forward(%y: tensor<2x2xf32>, %sample_weight: tensor<2xf32>)
      attributes {program = "train", stage = 1 : i64, phase = 1 : i32} {
    %r = dg.receive {channel = 0 : i64, peer_stage = 0 : i64}
    %w2 = dg.parameter "w2" tensor<2x6xf32> uniform 0.5
    %p = dg.matmul %r, %w2 {transpose_rhs}
    %d = dg.sub %p, %y
    %wt = dg.reshape %sample_weight {shape = array<i64: -1, 1>}
    %dw = dg.mul %d, %wt
    %sq = dg.mul %d, %dw
    %part = dg.reduce_sum %sq {dims = array<i64: 0, 1>}
    dg.accumulate %part {accumulator = "loss"}
    dg.return %r, %dw, %p {names = ["r", "dw", "p"]}
  }
  dg.graph @train.1.backward(%r: tensor<2x6xf32>, %dw: tensor<2x2xf32>)
      attributes {program = "train", stage = 1 : i64, phase = 2 : i32} {
    %w2 = dg.parameter "w2" tensor<2x6xf32> uniform 0.5
    %dp = dg.scale %dw {factor = 2.0}
    %g2 = dg.matmul %dp, %r {transpose_lhs}
    dg.accumulate %g2 {accumulator = "grad w2"}
    %dr = dg.matmul %dp, %w2
    dg.send %dr {channel = 1 : i64, peer_stage = 0 : i64}
    dg.return
  }
  dg.graph @train.0.backward(%x: tensor<2x4xf32>, %r: tensor<2x6xf32>)
      attributes {program = "train", stage = 0 : i64, phase = 2 : i32} {
    %dr = dg.receive {channel = 1 : i64, peer_stage = 1 : i64}
    %dh = dg.relu_grad %dr, %r
    %g1 = dg.matmul %dh, %x {transpose_lhs}
    dg.accumulate %g1 {accumulator = "grad w1"}
    dg.return
  }
  dg.graph @train.0.update() attributes {program = "train", stage = 0 : i64, phase = 3 : i32} {
    %w1 = dg.parameter "w1" tensor<6x4xf32> uniform 0.5
    %sum = dg.accumulated {accumulator = "grad w1"}
    %g1 = dg.all_reduce %sum {axis = "data"}
    %n1 = dg.sgd %w1, %g1
    dg.update %n1 {param = "w1"}
    dg.return
  }
  dg.graph @train.1.update() attributes {program = "train", stage = 1 : i64, phase = 3 : i32} {
    %w2 = dg.parameter "w2" tensor<2x6xf32> uniform 0.5
    %sum = dg.accumulated {accumulator = "grad w2"}
    %g2 = dg.all_reduce %sum {axis = "data"}
    %n2 = dg.sgd %w2, %g2
    dg.update %n2 {param = "w2"}
    %part = dg.accumulated {accumulator = "loss"}
    %loss = dg.all_reduce %part {axis = "data"}
    dg.return %loss {names = ["loss"]}
  })";

/// Types of what the split phase inserts: it writes them, these texts do not.
void deduceSplit(ModuleOp module, int64_t tensor) {
  llvm::StringMap<Type> accumulators;
  llvm::DenseMap<int64_t, Type> channels;
  Type lastSent; // for a channel on which a broken program sends nothing
  auto scaled = [](Value value, int64_t dim, int64_t times, int64_t by) {
    SmallVector<int64_t> shape(tensorOf(value).getShape());
    shape[dim] = shape[dim] * times / by;
    return RankedTensorType::get(shape, tensorOf(value).getElementType());
  };
  for (auto graph : module.getOps<GraphOp>()) {
    for (auto [argument, type] : llvm::zip_equal(graph.getBody().getArguments(), graph.getInputTypes()))
      argument.setType(cast<TypeAttr>(type).getValue());
    for (Operation &op : graph.getBody().front()) {
      if (auto parameter = dyn_cast<ParameterOp>(op)) {
        parameter.getResult().setType(cast<RankedTensorType>(parameter.getType()));
        for (ShardingAttr sharding : getPlace(parameter).getShardings())
          for (auto [dim, axis] : llvm::enumerate(sharding.getDims()))
            if (!axis.empty())
              parameter.getResult().setType(scaled(parameter.getResult(), dim, 1, tensor));
      } else if (auto reduce = dyn_cast<AllReduceOp>(op))
        reduce.getResult().setType(cast<RankedTensorType>(reduce.getInput().getType()));
      else if (auto gather = dyn_cast<AllGatherOp>(op))
        gather.getResult().setType(scaled(gather.getInput(), gather.getDim(), tensor, 1));
      else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
        scatter.getResult().setType(scaled(scatter.getInput(), scatter.getDim(), 1, tensor));
      else if (auto slice = dyn_cast<SliceShardOp>(op))
        slice.getResult().setType(scaled(slice.getInput(), slice.getDim(), 1, tensor));
      else if (auto send = dyn_cast<SendOp>(op))
        lastSent = channels[send.getChannel()] = send.getValue().getType();
      else if (auto receive = dyn_cast<ReceiveOp>(op))
        receive.getResult().setType(channels.count(receive.getChannel()) ? channels[receive.getChannel()] : lastSent);
      else if (auto accumulate = dyn_cast<AccumulateOp>(op))
        accumulators[accumulate.getAccumulator()] = accumulate.getValue().getType();
      else if (auto accumulated = dyn_cast<AccumulatedOp>(op))
        accumulated.getResult().setType(cast<RankedTensorType>(accumulators.lookup(accumulated.getAccumulator())));
      if (auto inferable = dyn_cast<InferTypeOpInterface>(op)) {
        SmallVector<Type> types;
        ASSERT_TRUE(
            succeeded(inferable.inferReturnTypes(op.getContext(), op.getLoc(), op.getOperands(), op.getAttrDictionary(),
                                                 op.getPropertiesStorage(), op.getRegions(), types)));
        for (auto [result, type] : llvm::zip_equal(op.getResults(), types))
          result.setType(type);
      }
    }
  }
}

class SimulatedRanksTest : public testing::Test {
protected:
  /// Trains 5 steps on `numSamples` both ways and compares losses and parameters.
  void compare(const char *text, SimulatedMesh mesh, int64_t numSamples, int64_t numMicrobatches) {
    SCOPED_TRACE(std::to_string(numSamples) + " samples in " + std::to_string(numMicrobatches) + " micro-batches");
    auto whole = parse(*context, wholeProgram(int(numSamples)));
    ASSERT_TRUE(bool(whole)) << message;
    GraphOp graph = *whole->getOps<GraphOp>().begin();
    ASSERT_TRUE(succeeded(deduce(graph))) << message;
    auto split = parse(*context, text);
    ASSERT_TRUE(bool(split)) << message;
    deduceSplit(*split, mesh.tensor);

    SimulatedRanks ranks(*split, mesh, ParameterStore(3));
    ParameterStore store(3);
    for (int step = 1; step <= 5; ++step) {
      TensorMap inputs{{"x", randomTensor({numSamples, 4}, random)}, {"y", randomTensor({numSamples, 2}, random)}};
      auto results = ranks.run("train", inputs, numMicrobatches, {0.1, step});
      ASSERT_TRUE(succeeded(results)) << message;
      inputs["sample_weight"] = {{numSamples}, std::vector<double>(numSamples, 1.0 / double(numSamples))};
      auto expected = ReferenceExecutor().run(graph, inputs, store, {0.1, step});
      ASSERT_TRUE(succeeded(expected)) << message;
      ASSERT_TRUE(results->total("loss").has_value());
      EXPECT_NEAR(*results->total("loss"), expected->at("loss").data[0], 1e-13) << "step " << step;
      last = std::move(*results);
    }
    auto gathered = ranks.gatherParameters();
    ASSERT_TRUE(succeeded(gathered)) << message;
    ASSERT_EQ(gathered->size(), 2u);
    for (const auto &[name, tensor] : store.tensors())
      EXPECT_LT(difference(gathered->at(name), tensor), 1e-13) << name;
  }

  /// The error of one step of a broken program.
  std::string errorOf(const std::string &text, SimulatedMesh mesh, int64_t numSamples) {
    message.clear();
    auto split = parse(*context, text);
    if (!split)
      return message;
    deduceSplit(*split, mesh.tensor);
    SimulatedRanks ranks(*split, mesh, ParameterStore(3));
    TensorMap inputs{{"x", randomTensor({numSamples, 4}, random)}, {"y", randomTensor({numSamples, 2}, random)}};
    if (succeeded(ranks.run("train", inputs, 1, {0.1, 1})))
      (void)ranks.gatherParameters();
    return message;
  }

  std::unique_ptr<MLIRContext> context = makeContext();
  std::string message;
  ScopedDiagnosticHandler handler{context.get(), [this](Diagnostic &diagnostic) {
                                    message += diagnostic.str();
                                    return success();
                                  }};
  std::mt19937_64 random{suiteSeed()};
  StepResults last;
};

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_F(SimulatedRanksTest, DataRanksShareTheSamples) {
  for (int64_t numSamples : {2, 5, 6})
    compare(dataProgram, {2, 1}, numSamples, 1);
}

TEST_F(SimulatedRanksTest, TensorRanksShareTheWeights) {
  for (int64_t numSamples : {3, 5})
    compare(tensorProgram, {1, 2}, numSamples, 1);
}

TEST_F(SimulatedRanksTest, FindsCopiesThatDriftApart) {
  // The program sums no gradient over data, so the copies of the two data coordinates learn different things.
  EXPECT_NE(errorOf(tensorProgram, {2, 2}, 5).find("expected equal copies"), std::string::npos) << message;
}

TEST_F(SimulatedRanksTest, StagesPassMicrobatchesOn) {
  compare(pipeProgram, {1, 1}, 5, 3);
  compare(pipeProgram, {2, 1}, 4, 1);
  compare(pipeProgram, {2, 1}, 10, 3); // 4, 3, 3 samples: 2 + 2, 2 + 1, 2 + 1
  compare(pipeProgram, {2, 1}, 1, 2);  // one rank has no sample at all
}

TEST_F(SimulatedRanksTest, GivesTheRowsOfAllSamplesInOrder) {
  compare(pipeProgram, {2, 1}, 7, 3);
  auto rows = last.rows("p", 7, 3, {2, 1});
  ASSERT_TRUE(rows.has_value());
  EXPECT_EQ(rows->shape, (std::vector<int64_t>{7, 2}));
  for (double element : rows->data)
    EXPECT_NE(element, 0) << "every row belongs to a sample, none to padding";
  EXPECT_FALSE(last.rows("q", 7, 3, {2, 1}).has_value());
}

TEST_F(SimulatedRanksTest, FindsOutBrokenPrograms) {
  struct Case {
    std::string from, to, expected;
  };
  const Case pipeCases[] = {
      {"dg.send %dr {channel = 1 : i64", "dg.send %dr {channel = 2 : i64", "deadlock"},
      {"%g1 = dg.all_reduce %sum {axis = \"data\"}", "%g1 = dg.scale %sum {factor = 1.0}", "expected equal copies"},
      {"%g1 = dg.all_reduce %sum {axis = \"data\"}", "%g1 = dg.all_reduce %sum {axis = \"pipe\"}",
       "expected 'data' or 'tensor'"},
      {"dg.return %r {names = [\"r\"]}", "dg.return", "neither fed nor returned by another chunk of stage 0"},
      {"dg.update %n2 {param = \"w2\"}", "dg.update %n2 {param = \"w2\"}\n    dg.update %n2 {param = \"w2\"}",
       "the second of 'w2' in this graph"},
      {"dg.update %n2 {param = \"w2\"}", "dg.update %n2 {param = \"w3\"}", "which no dg.parameter of this graph reads"},
  };
  for (const Case &c : pipeCases) {
    std::string error = errorOf(replaced(pipeProgram, c.from, c.to), {2, 1}, 4);
    EXPECT_NE(error.find(c.expected), std::string::npos)
        << c.to << "\n  says " << error << "\n  expected " << c.expected;
  }
  EXPECT_NE(errorOf(dataProgram, {2, 1}, 7).find("expected room for 4 samples"), std::string::npos) << message;
  std::string unused =
      replaced(pipeProgram, "dg.return %r {names = [\"r\"]}",
               "dg.send %r {channel = 9 : i64, peer_stage = 1 : i64}\n dg.return %r {names = [\"r\"]}");
  EXPECT_NE(errorOf(unused, {2, 1}, 4).find("what nobody receives"), std::string::npos) << message;
  std::string owned = replaced(pipeProgram, "%dr = dg.receive",
                               "%w2 = dg.parameter \"w2\" tensor<2x6xf32> uniform 0.5\n %dr = dg.receive");
  EXPECT_NE(errorOf(owned, {2, 1}, 4).find("expected one stage that owns it"), std::string::npos) << message;
  message.clear();
  auto empty = parse(*context, "module {}");
  SimulatedRanks none(*empty, {}, ParameterStore());
  EXPECT_TRUE(failed(none.run("train", {}, 1)));
  EXPECT_NE(message.find("has no chunk of program 'train'"), std::string::npos) << message;
}
