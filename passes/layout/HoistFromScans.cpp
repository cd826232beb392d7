// SPDX-License-Identifier: Apache-2.0
// Takes out of a scan what does not depend on what it carries, and products of all trips: products of scanned slices
// with whole weights, products that nothing but a stacked result reads, and the sums over trips that are gradients of
// weights. Each becomes one product of trips × rows. On local types, where rows of all trips may be joined.
// Pattern of ScanOp, MatmulOp, ReduceSumOp, AddOp: sums over trips are products over trips and rows.
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/reduction/ReductionOps.h"
#include "ir/ops/structure/ControlOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/train/PruneScan.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_HOISTFROMSCANS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// One scan while it is taken apart. Values of its body are "inner", those around it "outer".
class ScanHoisting {
public:
  explicit ScanHoisting(ScanOp scan)
      : scan(scan), body(scan.getBody().front()), before(scan), numCarried(scan.getNumCarried()),
        numScanned(scan.getNumScanned()) {
    PlaceAttr present = getPlace(scan);
    // Shardings speak of the values of the scan.
    place = PlaceAttr::get(scan.getContext(), present.getLabel(), present.getOrigin(), present.getPhase(),
                           present.getStage(), {});
  }

  /// The scan that is left; null where nothing changed.
  ScanOp run() {
    for (auto [index, argument] : llvm::enumerate(body.getArguments())) {
      if (index >= numCarried + numScanned)
        invariant[argument] = scan.getInputs()[index];
      else if (index >= numCarried)
        stacked[argument] = scan.getInputs()[index];
    }
    for (Operation &op : body.without_terminator())
      hoist(op);
    auto returned = body.back().getOperands();
    const size_t numYielded = scan.getNumYielded(), firstSum = numCarried + numYielded;
    for (size_t i = numCarried; i < firstSum; ++i)
      yields.push_back(planYield(returned[i], scan.getResult(unsigned(i))));
    for (size_t i = firstSum; i < returned.size(); ++i)
      sums.push_back(planSum(returned[i]));
    return didChange ? rebuild() : ScanOp();
  }

private:
  static bool isMatrix(Value value) { return tensorOf(value).getRank() == 2; }

  //===- What moves in front of the scan -------------------------------------------------------------------------===//

  void hoist(Operation &op) {
    if (op.getNumResults() != 1 || op.getNumRegions() != 0 || op.getNumOperands() == 0 || isa<ScanOp>(op))
      return;
    auto isInvariant = [&](Value v) { return invariant.contains(v) || v.getDefiningOp<ConstantOp>(); };
    Value result = op.getResult(0);
    // Of constants alone each kernel makes its own.
    if (llvm::all_of(op.getOperands(), isInvariant) &&
        llvm::any_of(op.getOperands(), [&](Value v) { return invariant.contains(v); })) {
      IRMapping mapping;
      for (Value operand : op.getOperands())
        mapping.map(operand, outerInvariant(operand));
      invariant[result] = placed(before.clone(op, mapping))->getResult(0);
      didChange = true;
      return;
    }
    if (isa<CastOp>(op) && stacked.contains(op.getOperand(0))) {
      stacked[result] = before.create<CastOp>(op.getLoc(), stacked.lookup(op.getOperand(0)),
                                              TypeAttr::get(tensorOf(result).getElementType()), place);
      didChange = true;
      return;
    }
    auto product = dyn_cast<MatmulOp>(op);
    if (!product || product.getTransposeLhs() || !isMatrix(product.getLhs()) || !isMatrix(product.getRhs()) ||
        !stacked.contains(product.getLhs()) || !isInvariant(product.getRhs()))
      return;
    stacked[result] = productOfAllTrips(before, product, stacked.lookup(product.getLhs()));
    didChange = true;
  }

  Operation *placed(Operation *op) {
    setPlace(op, place);
    return op;
  }

  Value outerInvariant(Value value) {
    if (Value known = invariant.lookup(value))
      return known;
    Value &constant = constants[value];
    if (!constant)
      constant = placed(before.clone(*value.getDefiningOp()))->getResult(0);
    return constant;
  }

  /// [trips, rows, width] as [trips · rows, width], and back.
  Value joined(OpBuilder &builder, Value value) {
    ArrayRef<int64_t> shape = tensorOf(value).getShape();
    return builder.create<ReshapeOp>(scan.getLoc(), value, ArrayRef<int64_t>{shape[0] * shape[1], shape[2]}, place);
  }

  Value productOfAllTrips(OpBuilder &builder, MatmulOp product, Value left) {
    Value all = builder.create<MatmulOp>(product.getLoc(), joined(builder, left), outerInvariant(product.getRhs()),
                                         false, product.getTransposeRhs(), product.getToAttr(), place);
    ArrayRef<int64_t> shape = tensorOf(product.getResult()).getShape();
    return builder.create<ReshapeOp>(scan.getLoc(), all, ArrayRef<int64_t>{scan.getTrips(), shape[0], shape[1]}, place);
  }

  //===- What moves behind it ------------------------------------------------------------------------------------===//

  /// A stacked result: given already, a product of all trips of what is stacked instead, or as it was.
  struct Yield {
    Value outer;           ///< not null: nothing is left to stack
    Value inner;           ///< what is stacked
    MatmulOp product = {}; ///< what is computed of it
  };
  Yield planYield(Value value, Value result) {
    if (Value known = stacked.lookup(value)) {
      didChange = true;
      return {known, {}};
    }
    auto product = value.getDefiningOp<MatmulOp>();
    if (product && value.hasOneUse() && !product.getTransposeLhs() && isMatrix(value) &&
        invariant.contains(product.getRhs()) && isMatrix(product.getRhs()) && !result.use_empty()) {
      didChange = true;
      return {{}, product.getLhs(), product};
    }
    return {{}, value};
  }

  /// A sum over trips: a sum of terms, each a product, a sum over the rows or a constant; no terms: as it was.
  struct Sum {
    Value inner;
    SmallVector<Operation *> terms;
  };
  Sum planSum(Value value) {
    Sum sum{value, {}};
    SmallVector<Value> worklist{value};
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val().getDefiningOp();
      auto product = dyn_cast_or_null<MatmulOp>(op);
      auto reduction = dyn_cast_or_null<ReduceSumOp>(op);
      if (isa_and_nonnull<AddOp>(op) &&
          llvm::all_of(op->getOperandTypes(), [&](Type type) { return type == value.getType(); }))
        llvm::append_range(worklist, op->getOperands());
      else if (product && product.getTransposeLhs() && !product.getTransposeRhs() && isMatrix(value) &&
               isMatrix(product.getLhs()))
        sum.terms.push_back(op);
      else if (reduction && isMatrix(reduction.getInput()) && reduction.getDims() == ArrayRef<int64_t>{0})
        sum.terms.push_back(op);
      else if (isa_and_nonnull<ConstantOp>(op))
        sum.terms.push_back(op);
      else
        return {value, {}};
    }
    didChange = true;
    return sum;
  }

  //===- The scan that is left -----------------------------------------------------------------------------------===//

  void stack(Value inner) {
    if (!stacked.contains(inner))
      stackedInner.insert(inner);
  }

  ScanOp rebuild() {
    SmallVector<Value> keptSums;
    for (const Yield &yield : yields)
      if (yield.inner)
        stack(yield.inner);
    for (const Sum &sum : sums) {
      if (sum.terms.empty())
        keptSums.push_back(sum.inner);
      for (Operation *term : sum.terms)
        for (Value operand : term->getOperands())
          stack(operand);
    }
    SmallVector<Value> carried(scan.getInputs().take_front(numCarried)), scanned, whole, innerScanned, innerWhole;
    for (auto &[inner, outer] : stacked)
      innerScanned.push_back(inner), scanned.push_back(outer);
    for (auto &[inner, outer] : invariant)
      innerWhole.push_back(inner), whole.push_back(outer);
    auto made = buildScan(before, scan.getLoc(), carried, scanned, whole, unsigned(keptSums.size()), scan.getReverse(),
                          [&](OpBuilder &inner, ValueRange arguments) -> FailureOr<SmallVector<Value>> {
                            IRMapping mapping;
                            mapping.map(body.getArguments().take_front(numCarried), arguments.take_front(numCarried));
                            mapping.map(innerScanned, arguments.slice(numCarried, scanned.size()));
                            mapping.map(innerWhole, arguments.drop_front(numCarried + scanned.size()));
                            for (Operation &op : body.without_terminator())
                              if (llvm::none_of(op.getResults(), [&](Value v) { return mapping.contains(v); }))
                                inner.clone(op, mapping);
                            SmallVector<Value> results;
                            for (Value value : body.back().getOperands().take_front(numCarried))
                              results.push_back(mapping.lookup(value));
                            for (Value value : stackedInner)
                              results.push_back(mapping.lookup(value));
                            for (Value value : keptSums)
                              results.push_back(mapping.lookup(value));
                            return results;
                          });
    ScanOp left = *made;
    setPlace(left, place);
    for (auto [index, value] : llvm::enumerate(stackedInner))
      stacked[value] = left.getResult(unsigned(numCarried + index));

    SmallVector<Value> results(left.getResults().take_front(numCarried));
    OpBuilder behind(scan);
    for (const Yield &yield : yields) {
      if (yield.outer)
        results.push_back(yield.outer);
      else if (MatmulOp product = yield.product)
        results.push_back(productOfAllTrips(behind, product, stacked.lookup(yield.inner)));
      else
        results.push_back(stacked.lookup(yield.inner));
    }
    size_t nextSum = numCarried + stackedInner.size();
    for (const Sum &sum : sums)
      results.push_back(sum.terms.empty() ? left.getResult(unsigned(nextSum++)) : sumOfTerms(behind, sum));
    scan->replaceAllUsesWith(results);
    scan->erase();
    return left;
  }

  Value sumOfTerms(OpBuilder &builder, const Sum &sum) {
    Value total;
    for (Operation *term : sum.terms) {
      Value value;
      if (auto product = dyn_cast<MatmulOp>(term)) {
        value = builder.create<MatmulOp>(product.getLoc(), joined(builder, stacked.lookup(product.getLhs())),
                                         joined(builder, stacked.lookup(product.getRhs())), true, false,
                                         product.getToAttr(), place);
      } else if (auto constant = dyn_cast<ConstantOp>(term)) {
        auto all = builder.getF64FloatAttr(constant.getValue().convertToDouble() * double(scan.getTrips()));
        value = builder.create<ConstantOp>(constant.getLoc(), constant.getType(), all, constant.getTypeAttr(), place);
      } else {
        auto reduction = cast<ReduceSumOp>(term);
        value = builder.create<ReduceSumOp>(reduction.getLoc(), joined(builder, stacked.lookup(reduction.getInput())),
                                            ArrayRef<int64_t>{0}, reduction.getKeep(), place);
      }
      total = total ? Value(builder.create<AddOp>(scan.getLoc(), total, value, place)) : value;
    }
    return total;
  }

  ScanOp scan;
  Block &body;
  OpBuilder before;
  PlaceAttr place;
  size_t numCarried, numScanned;
  llvm::MapVector<Value, Value> invariant, stacked; ///< inner to outer
  SmallVector<Yield> yields;
  SmallVector<Sum> sums;
  DenseMap<Value, Value> constants;
  llvm::SetVector<Value> stackedInner; ///< what the scan that is left stacks
  bool didChange = false;
};

struct HoistFromScansPass : impl::HoistFromScansBase<HoistFromScansPass> {
  void runOnOperation() override {
    SmallVector<ScanOp> scans;
    for (auto graph : getOperation().getOps<GraphOp>())
      llvm::append_range(scans, graph.getBody().front().getOps<ScanOp>());
    for (ScanOp scan : scans)
      if (ScanOp left = ScanHoisting(scan).run())
        pruneScan(left);
  }
};

} // namespace
} // namespace dg::passes
