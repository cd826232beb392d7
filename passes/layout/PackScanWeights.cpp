// SPDX-License-Identifier: Apache-2.0
// Packs the weights that every trip of a scan multiplies, once for all trips: they are read in order afterwards, and a
// kernel that runs rows of the batch by themselves can keep the whole trip in cache.
// Pattern of ScanOp, MatmulOp, PanelProductOp: products in a scan's body become panel_product.
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/product/BlockedOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/structure/ControlOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/train/PruneScan.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_PACKSCANWEIGHTS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct PackScanWeightsPass : impl::PackScanWeightsBase<PackScanWeightsPass> {
  void runOnOperation() override {
    SmallVector<ScanOp> scans;
    for (auto graph : getOperation().getOps<GraphOp>())
      llvm::append_range(scans, graph.getBody().front().getOps<ScanOp>());
    for (ScanOp scan : scans) {
      // Packing costs about as much as a trip of a few rows.
      if (scan.getTrips() < 4)
        continue;
      pack(scan);
      pruneScan(scan);
    }
  }

private:
  static bool isPacked(ScanOp scan, MatmulOp product) {
    auto weight = dyn_cast<BlockArgument>(product.getRhs());
    auto left = tensorOf(product.getLhs()), right = tensorOf(product.getRhs());
    return weight && weight.getArgNumber() >= scan.getNumCarried() + scan.getNumScanned() && left.getRank() == 2 &&
           right.getRank() == 2 && !product.getTransposeLhs() && !product.getTo() &&
           left.getElementType() == right.getElementType() && right.getNumElements() > 0 && left.getNumElements() > 0 &&
           (right.getElementType().isF32() || right.getElementType().isF64());
  }

  static void pack(ScanOp scan) {
    OpBuilder builder(scan);
    // Shardings speak of operands that are no more.
    PlaceAttr present = getPlace(scan);
    PlaceAttr place = PlaceAttr::get(scan.getContext(), present.getLabel(), present.getOrigin(), present.getPhase(),
                                     present.getStage(), {});
    for (auto product : llvm::make_early_inc_range(scan.getBody().front().getOps<MatmulOp>())) {
      if (!isPacked(scan, product))
        continue;
      Value weight = scan.getInputs()[cast<BlockArgument>(product.getRhs()).getArgNumber()];
      Value panels = panelsOf(builder, place, weight, product.getTransposeRhs());
      setPlace(scan, place);
      scan.getInputsMutable().append(panels);
      Value argument = scan.getBody().addArgument(panels.getType(), scan.getLoc());
      OpBuilder inner(product);
      int64_t columns = tensorOf(product.getResult()).getDimSize(1);
      product.replaceAllUsesWith(
          inner.create<PanelProductOp>(product.getLoc(), product.getLhs(), argument, columns, PlaceAttr()).getResult());
      product.erase();
    }
  }

  /// [depth, columns], or [columns, depth], as [columns / 32, depth, 32] with zeros after the last column.
  static Value panelsOf(OpBuilder &builder, PlaceAttr place, Value weight, bool isTransposed) {
    constexpr int64_t width = PanelProductOp::panelColumns;
    Location loc = weight.getLoc();
    int64_t columnDim = isTransposed ? 0 : 1, columns = tensorOf(weight).getDimSize(columnDim),
            depth = tensorOf(weight).getDimSize(1 - columnDim), panels = llvm::divideCeil(columns, width);
    if (panels * width != columns) {
      SmallVector<int64_t> low(2, 0), high(2, 0);
      high[columnDim] = panels * width - columns;
      weight = builder.create<PadConstantOp>(loc, weight, Value(), low, high, DenseI64ArrayAttr(), place);
    }
    SmallVector<int64_t> cut, order;
    if (isTransposed)
      cut = {panels, width, depth}, order = {0, 2, 1};
    else
      cut = {depth, panels, width}, order = {1, 0, 2};
    Value blocks = builder.create<ReshapeOp>(loc, weight, cut, place);
    return builder.create<TransposeOp>(loc, blocks, order, place);
  }
};

} // namespace
} // namespace dg::passes
