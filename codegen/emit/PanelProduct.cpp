// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/PanelProduct.h"

#include "ir/ops/product/BlockedOps.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

namespace dg::codegen {

namespace {
constexpr int64_t panelColumns = ir::PanelProductOp::panelColumns;

/// Some rows times some vectors of columns.
class PanelEmitter {
public:
  PanelEmitter(KernelBuilder &k, int64_t depth, const MatrixRef &left, Value panels, const MatrixRef &result)
      : k(k), depth(depth), perPanel(panelColumns / k.lanes), left(left), panels(panels), result(result) {}

  /// Rows from `firstRow` on, and `count` vectors from number `first` on: part of one panel, or whole ones.
  void emit(int64_t firstRow, int64_t rows, Value first, int64_t count) {
    Value start = k.add(k.mul(k.div(first, perPanel), depth * panelColumns), k.mul(k.mod(first, perPanel), k.lanes));
    Value from = k.add(left.offset, firstRow * left.rowStride);
    KernelBuilder::Values zeros(size_t(rows * count), k.splat(0.0, k.lanes));
    KernelBuilder::Values sums =
        k.loop(k.index(0), k.index(depth), 1, zeros, [&](Value step, ValueRange carried) -> KernelBuilder::Values {
          Value line = k.add(start, k.mul(step, panelColumns)), column = k.add(from, step);
          KernelBuilder::Values factors, next;
          for (int64_t i = 0; i < count; ++i)
            factors.push_back(k.load(panels, k.add(line, i / perPanel * depth * panelColumns + i % perPanel * k.lanes),
                                     {k.lanes, k.lanes}));
          for (int64_t row = 0; row < rows; ++row) {
            Value element = k.splat(k.loadScalar(left.buffer, k.add(column, row * left.rowStride)), k.lanes);
            for (int64_t i = 0; i < count; ++i)
              next.push_back(k.fma(element, factors[size_t(i)], carried[next.size()]));
          }
          return next;
        });
    Value to = k.add(k.add(result.offset, firstRow * result.rowStride), k.mul(first, k.lanes));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < count; ++i)
        k.store(sums[size_t(row * count + i)], result.buffer, k.add(to, row * result.rowStride + i * k.lanes),
                {k.lanes, k.lanes});
  }

private:
  KernelBuilder &k;
  int64_t depth, perPanel;
  MatrixRef left;
  Value panels;
  MatrixRef result;
};
} // namespace

// Columns are the outer loop: the rows of a step are few and stay in the first cache, the matrix comes from the second
// or the third. With few rows several panels run side by side, so that no sum waits for the one before.
void emitPanelProduct(KernelBuilder &k, int64_t rows, int64_t depth, int64_t panels, const MatrixRef &left,
                      Value panelBuffer, const MatrixRef &result) {
  const int64_t mostSums = k.target.vectorRegisters - 4, mostVectors = 8;
  int64_t rowPanels = llvm::divideCeil(rows, mostSums / 2), tallRows = llvm::divideCeil(rows, rowPanels);
  int64_t group = std::min(mostVectors, int64_t(llvm::bit_floor(uint64_t(mostSums / tallRows))));
  int64_t vectors = panels * (panelColumns / k.lanes), rest = vectors % group;
  PanelEmitter emitter(k, depth, left, panelBuffer, result);
  auto emitColumns = [&](Value first, int64_t count) {
    for (int64_t row = 0; row < rows; row += tallRows)
      emitter.emit(row, std::min(tallRows, rows - row), first, count);
  };
  if (vectors >= group)
    k.loop(0, vectors - rest, group, [&](Value first) { emitColumns(first, group); });
  if (rest)
    emitColumns(k.index(vectors - rest), rest);
}

} // namespace dg::codegen
