// SPDX-License-Identifier: Apache-2.0
// Leaves out of scans what nobody reads. The gradient of a scan has those of all its operands, and a tape of all that
// is dear to compute again; what it reads is known only when all gradients are taken.
// Pattern of ScanOp: results, ops of the body and operands go together.
#include "passes/train/PruneScan.h"

#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_PRUNESCANS
#include "passes/Passes.h.inc"

using namespace ir;

namespace {

/// Results, ops and arguments that lead to a result that is read.
struct Liveness {
  explicit Liveness(ScanOp scan) : results(scan.getNumResults(), false), body(scan.getBody().front()) {
    for (OpResult result : scan->getResults())
      if (!result.use_empty())
        addResult(result.getResultNumber());
    for (bool isGrowing = true; isGrowing;) {
      isGrowing = false;
      // A state that is read is computed in each trip.
      for (unsigned i = 0; i < scan.getNumCarried(); ++i)
        if (!results[i] && values.contains(body.getArgument(i))) {
          addResult(i);
          isGrowing = true;
        }
    }
  }

  bool isLive(Value value) const { return values.contains(value); }
  bool isLive(Operation *op) const {
    return llvm::any_of(op->getResults(), [&](Value value) { return isLive(value); });
  }

  std::vector<bool> results;

private:
  void addResult(unsigned index) {
    results[index] = true;
    SmallVector<Value> worklist{body.back().getOperand(index)};
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      if (!values.insert(value).second)
        continue;
      if (Operation *op = value.getDefiningOp()) {
        // All results of an op live together.
        values.insert(op->result_begin(), op->result_end());
        llvm::append_range(worklist, op->getOperands());
      }
    }
  }

  Block &body;
  DenseSet<Value> values;
};

struct PruneScansPass : impl::PruneScansBase<PruneScansPass> {
  void runOnOperation() override {
    // From the back: a scan that is pruned reads less of those before it.
    for (auto graph : getOperation().getOps<GraphOp>()) {
      SmallVector<ScanOp> scans(graph.getBody().front().getOps<ScanOp>());
      for (ScanOp scan : llvm::reverse(scans))
        pruneScan(scan);
    }
  }
};

} // namespace

void pruneScan(ScanOp scan) {
  Liveness live(scan);
  Block &body = scan.getBody().front();
  const size_t numCarried = scan.getNumCarried(), numScanned = scan.getNumScanned(),
               firstSum = numCarried + scan.getNumYielded();
  SmallVector<Value> groups[3], inner[3]; // carried, scanned, whole
  for (auto [index, argument] : llvm::enumerate(body.getArguments())) {
    size_t group = index < numCarried ? 0 : index < numCarried + numScanned ? 1 : 2;
    // A state is kept where it is read, be it only in the end; the number of trips is that of a scanned tensor.
    bool isKept = group == 0 ? live.results[index] : live.isLive(argument);
    bool isLastScanned = index + 1 == numCarried + numScanned && groups[1].empty();
    if (isKept || isLastScanned) {
      groups[group].push_back(scan.getInputs()[index]);
      inner[group].push_back(argument);
    }
  }
  SmallVector<unsigned> kept;
  unsigned numSums = 0;
  for (unsigned i = 0; i < scan.getNumResults(); ++i)
    if (live.results[i]) {
      kept.push_back(i);
      numSums += i >= firstSum;
    }
  bool isSame = kept.size() == scan.getNumResults() &&
                llvm::all_of(body.without_terminator(), [&](Operation &op) { return live.isLive(&op); }) &&
                groups[0].size() + groups[1].size() + groups[2].size() == scan.getNumOperands();
  if (kept.empty() || isSame)
    return;
  OpBuilder builder(scan);
  auto made = buildScan(builder, scan.getLoc(), groups[0], groups[1], groups[2], numSums, scan.getReverse(),
                        [&](OpBuilder &into, ValueRange arguments) -> FailureOr<SmallVector<Value>> {
                          IRMapping mapping;
                          for (const SmallVector<Value> &group : inner) {
                            mapping.map(group, arguments.take_front(group.size()));
                            arguments = arguments.drop_front(group.size());
                          }
                          for (Operation &op : body.without_terminator())
                            if (live.isLive(&op))
                              into.clone(op, mapping);
                          SmallVector<Value> results;
                          for (unsigned index : kept)
                            results.push_back(mapping.lookup(body.back().getOperand(index)));
                          return results;
                        });
  setPlace(*made, getPlace(scan));
  for (auto [number, index] : llvm::enumerate(kept))
    scan.getResult(index).replaceAllUsesWith((*made).getResult(unsigned(number)));
  scan->erase();
}

} // namespace dg::passes
