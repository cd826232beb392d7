// SPDX-License-Identifier: Apache-2.0
// Closes the split phase: from here on every graph is a chunk, and a value leaves its stage by a send with one receive,
// its chunk by a name of the same stage, and its micro-batch by an accumulator.
#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

#include <map>
#include <set>

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_VERIFYSPLIT
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct VerifySplitPass : impl::VerifySplitBase<VerifySplitPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>()) {
      if (!graph.getProgram() || !graph.getStage() || !graph.getPhase()) {
        graph.emitOpError("is no chunk after the split phase, expected program, stage and phase from "
                          "--dg-split-stages");
        return signalPassFailure();
      }
      collect(graph);
    }
    for (auto graph : getOperation().getOps<GraphOp>())
      if (failed(verify(graph)))
        return signalPassFailure();
    for (auto &[key, send] : sends)
      if (!received.contains(key)) {
        send.emitOpError() << "has no receive of channel " << send.getChannel() << " on stage " << send.getPeerStage();
        return signalPassFailure();
      }
  }

private:
  using Key = std::pair<StringRef, std::string>; ///< program, and a name in it
  static Key keyOf(GraphOp chunk, const Twine &name) { return {*chunk.getProgram(), name.str()}; }
  static Key stagedKey(GraphOp chunk, StringRef name) { return keyOf(chunk, Twine(*chunk.getStage()) + "/" + name); }

  void collect(GraphOp chunk) {
    ReturnOp end = chunk.getReturn();
    for (auto [index, value] : llvm::enumerate(end.getOperands())) {
      std::string name = end.getResultName(index);
      returned[keyOf(chunk, name)] = int64_t(*chunk.getStage());
      returnedHere.insert({stagedKey(chunk, name), value.getType()});
    }
    for (auto send : chunk.getBody().front().getOps<SendOp>())
      sends.insert({keyOf(chunk, Twine(send.getChannel())), send});
    for (auto accumulate : chunk.getBody().front().getOps<AccumulateOp>())
      summed.insert({stagedKey(chunk, accumulate.getAccumulator()), accumulate.getValue().getType()});
  }

  LogicalResult verify(GraphOp chunk) {
    for (BlockArgument argument : chunk.getBody().getArguments()) {
      StringRef name = chunk.getInputName(argument.getArgNumber());
      auto here = returnedHere.find(stagedKey(chunk, name));
      auto elsewhere = returned.find(keyOf(chunk, name));
      if (here != returnedHere.end() && here->second != argument.getType())
        return chunk.emitOpError() << "reads '" << name << "' as " << argument.getType() << ", which was made as "
                                   << here->second;
      if (here == returnedHere.end() && elsewhere != returned.end())
        return chunk.emitOpError() << "reads '" << name << "' of stage " << elsewhere->second
                                   << " by its name, expected a receive: it is on stage " << *chunk.getStage();
    }
    for (Operation &op : chunk.getBody().front())
      if (auto receive = dyn_cast<ReceiveOp>(op)) {
        if (failed(verify(chunk, receive)))
          return failure();
      } else if (auto sum = dyn_cast<AccumulatedOp>(op)) {
        auto found = summed.find(stagedKey(chunk, sum.getAccumulator()));
        if (found == summed.end() || found->second != sum.getResult().getType())
          return op.emitOpError() << "reads '" << sum.getAccumulator() << "', which nothing on its stage adds to as "
                                  << sum.getResult().getType();
      }
    return success();
  }

  LogicalResult verify(GraphOp chunk, ReceiveOp receive) {
    Key key = keyOf(chunk, Twine(receive.getChannel()));
    auto found = sends.find(key);
    if (found == sends.end() || !received.insert(key).second)
      return receive.emitOpError() << "of channel " << receive.getChannel()
                                   << (found == sends.end() ? " has no send" : " is the second of its send");
    SendOp send = found->second;
    auto from = send->getParentOfType<GraphOp>();
    if (send.getPeerStage() != *chunk.getStage() || receive.getPeerStage() != *from.getStage() ||
        send.getValue().getType() != receive.getResult().getType())
      return receive.emitOpError() << "of channel " << receive.getChannel() << " on stage " << *chunk.getStage()
                                   << " expects " << receive.getResult().getType() << " from stage "
                                   << receive.getPeerStage() << ", but stage " << *from.getStage() << " sends "
                                   << send.getValue().getType() << " to stage " << send.getPeerStage();
    return success();
  }

  std::map<Key, int64_t> returned;  ///< the stage that returns a name
  std::map<Key, Type> returnedHere; ///< by stage and name
  std::map<Key, Type> summed;       ///< by stage and accumulator
  std::map<Key, SendOp> sends;      ///< by channel
  std::set<Key> received;
};

} // namespace
} // namespace dg::passes
