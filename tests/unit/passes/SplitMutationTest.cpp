// SPDX-License-Identifier: Apache-2.0
// Proves that the comparison is a judge: each way of breaking a split module, at each place where it can be broken, is
// found out, by a difference of values or by the simulated ranks themselves.
#include "ir/build/Families.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "tests/unit/ir/OpTable.h"
#include "tests/unit/passes/SplitComparison.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::passes::test;

namespace {

/// Breaks an op of the train program; false where this op cannot be broken this way.
using Mutation = bool (*)(Operation *op);

class SplitMutation : public ::testing::Test {
protected:
  /// Expects that `mutation` is found out wherever it applies, and that it applies somewhere.
  void expectCaught(const std::string &mesh, int64_t microbatches, Mutation mutation) {
    Split split{mesh, microbatches};
    auto context = dg::ir::test::makeContext();
    auto model = buildFamily("mlp:4-8-8-4", *context);
    ASSERT_TRUE(succeeded(model));
    Training training{.optimizer = "adam:lr=0.01", .sampleCounts = {8, 8, 6}, .indexBound = 4};
    Attempt whole = trainWhole(**model, training);
    ASSERT_TRUE(whole.outcome) << whole.error;
    auto [chunks, error] = splitModel(**model, training, split);
    ASSERT_TRUE(chunks) << error;
    Attempt sound = trainSplit(**model, *chunks, training, split);
    ASSERT_TRUE(sound.outcome) << sound.error;
    ASSERT_EQ(firstDifference(*whole.outcome, *sound.outcome, 1e-9), "");

    int64_t numOps = 0, numBroken = 0;
    chunks->walk([&](Operation *) { ++numOps; });
    for (int64_t target = 0; target < numOps; ++target) {
      OwningOpRef<ModuleOp> broken = chunks->clone();
      SmallVector<Operation *> ops;
      broken->walk([&](Operation *op) { ops.push_back(op); });
      auto chunk = ops[target]->getParentOfType<GraphOp>();
      if (!chunk || chunk.getProgram() != "train")
        continue;
      std::string text;
      llvm::raw_string_ostream(text) << *ops[target];
      if (!mutation(ops[target]))
        continue;
      ++numBroken;
      Attempt attempt = trainSplit(**model, *broken, training, split);
      if (attempt.outcome)
        EXPECT_NE(firstDifference(*whole.outcome, *attempt.outcome, 1e-9), "") << "not found out: " << text;
      else
        EXPECT_NE(attempt.error, "") << "failed without a word: " << text;
    }
    EXPECT_GT(numBroken, 0) << "nothing to break on " << mesh;
  }
};

bool dropCollective(Operation *op) {
  if (!isa<AllReduceOp>(op))
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}

TEST_F(SplitMutation, DroppedAllReduceOverData) { expectCaught("data=2", 1, dropCollective); }
TEST_F(SplitMutation, DroppedAllReduceOverTensor) { expectCaught("tensor=2", 1, dropCollective); }
TEST_F(SplitMutation, DroppedAllReduceOfMicrobatches) { expectCaught("data=2,tensor=2,pipe=2", 2, dropCollective); }

TEST_F(SplitMutation, RepeatedAllReduce) {
  expectCaught("data=2,tensor=2", 1, [](Operation *op) {
    if (!isa<AllReduceOp>(op))
      return false;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Operation *again = builder.clone(*op);
    again->setOperand(0, op->getResult(0));
    op->getResult(0).replaceAllUsesExcept(again->getResult(0), again);
    return true;
  });
}

TEST_F(SplitMutation, SwappedAxis) {
  expectCaught("data=2,tensor=2", 1, [](Operation *op) {
    auto reduce = dyn_cast<AllReduceOp>(op);
    if (!reduce)
      return false;
    reduce.setAxis(reduce.getAxis() == "data" ? "tensor" : "data");
    return true;
  });
}

TEST_F(SplitMutation, ParameterCutOverTheOtherAxis) {
  expectCaught("data=2,tensor=2", 1, [](Operation *op) {
    auto parameter = dyn_cast<ParameterOp>(op);
    if (!parameter || parameter.getState())
      return false;
    ShardingAttr sharding = getPlace(op).getShardings()[0];
    SmallVector<StringAttr> dims(sharding.getDims());
    if (!llvm::any_of(dims, [](StringAttr axis) { return axis == "tensor"; }))
      return false;
    for (StringAttr &axis : dims)
      if (axis == "tensor")
        axis = StringAttr::get(op->getContext(), "data");
    setPlace(op, withShardings(getPlace(op), ShardingAttr::get(op->getContext(), dims, {})));
    return true;
  });
}

TEST_F(SplitMutation, DroppedAccumulate) {
  expectCaught("pipe=2", 2, [](Operation *op) {
    if (!isa<AccumulateOp>(op))
      return false;
    op->erase();
    return true;
  });
}

TEST_F(SplitMutation, RepeatedAccumulate) {
  expectCaught("pipe=2", 2, [](Operation *op) {
    if (!isa<AccumulateOp>(op))
      return false;
    OpBuilder(op).clone(*op);
    return true;
  });
}

TEST_F(SplitMutation, SumTakenForAMean) {
  expectCaught("data=2", 2, [](Operation *op) {
    auto accumulated = dyn_cast<AccumulatedOp>(op);
    if (!accumulated)
      return false;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto half =
        builder.create<ScaleOp>(op->getLoc(), accumulated.getResult(), builder.getF64FloatAttr(0.5), getPlace(op));
    op->getResult(0).replaceAllUsesExcept(half->getResult(0), half);
    return true;
  });
}

TEST_F(SplitMutation, DroppedSend) {
  expectCaught("pipe=2", 1, [](Operation *op) {
    if (!isa<SendOp>(op))
      return false;
    op->erase();
    return true;
  });
}

TEST_F(SplitMutation, LostMessage) {
  expectCaught("pipe=3", 1, [](Operation *op) {
    auto receive = dyn_cast<ReceiveOp>(op);
    if (!receive)
      return false;
    // Still taken from the channel, but zeros go on in its place.
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto zero = builder.create<ScaleOp>(op->getLoc(), receive.getResult(), builder.getF64FloatAttr(0), getPlace(op));
    op->getResult(0).replaceAllUsesExcept(zero->getResult(0), zero);
    return true;
  });
}

TEST_F(SplitMutation, CrossedChannels) {
  expectCaught("pipe=3", 2, [](Operation *op) {
    auto send = dyn_cast<SendOp>(op);
    if (!send)
      return false;
    SendOp other;
    op->getParentOfType<ModuleOp>().walk([&](SendOp candidate) {
      bool isSameProgram =
          candidate->getParentOfType<GraphOp>().getProgram() == send->getParentOfType<GraphOp>().getProgram();
      if (isSameProgram && candidate != send && candidate.getValue().getType() == send.getValue().getType())
        other = candidate;
    });
    if (!other)
      return false;
    uint64_t channel = send.getChannel();
    send.setChannel(other.getChannel());
    other.setChannel(channel);
    return true;
  });
}

TEST_F(SplitMutation, DroppedUpdate) {
  expectCaught("data=2,pipe=2", 2, [](Operation *op) {
    if (!isa<UpdateOp>(op))
      return false;
    op->erase();
    return true;
  });
}

} // namespace
