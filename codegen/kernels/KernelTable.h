// SPDX-License-Identifier: Apache-2.0
// The table from op name to emitter. Each family of ops adds its rows; a new op with a kernel is a new row.
#pragma once

#include "codegen/emit/KernelBuilder.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <functional>

namespace dg::codegen {

struct KernelEmitter {
  /// Sets the tiles and writes the body for the op's types. The builder's buffers are those of KernelSpec.
  std::function<mlir::LogicalResult(KernelBuilder &kernel, mlir::Operation *op)> emit;
  /// For each result the operand it overwrites; empty: no result is in place.
  llvm::SmallVector<int> aliasedOperand = {};
  /// The kernel adds its operand to one more buffer of the same type.
  bool accumulates = false;
  /// The operand that the first result takes the place of where the op has `overwrites`; -1: none.
  int overwritable = -1;
};

struct KernelTable : llvm::StringMap<KernelEmitter> {
  /// Adds the row of the op that `emit` takes.
  template <typename Op> KernelEmitter &add(mlir::LogicalResult (*emit)(KernelBuilder &, Op)) {
    KernelEmitter &row = (*this)[Op::getOperationName()];
    row.emit = [emit](KernelBuilder &kernel, mlir::Operation *op) { return emit(kernel, mlir::cast<Op>(op)); };
    return row;
  }
  /// The same where nothing can fail.
  template <typename Op> KernelEmitter &add(void (*emit)(KernelBuilder &, Op)) {
    KernelEmitter &row = (*this)[Op::getOperationName()];
    row.emit = [emit](KernelBuilder &kernel, mlir::Operation *op) {
      emit(kernel, mlir::cast<Op>(op));
      return mlir::success();
    };
    return row;
  }
};

/// All rows. Made at the first call; any thread may call it.
const KernelTable &kernelTable();

void addElementwiseKernels(KernelTable &table);
void addMatmulKernels(KernelTable &table);
void addReduceKernels(KernelTable &table);
void addOrderKernels(KernelTable &table);
void addShapeKernels(KernelTable &table);
void addMovementKernels(KernelTable &table);
void addOptimizerKernels(KernelTable &table);
void addConvolutionKernels(KernelTable &table);
void addWindowConvKernels(KernelTable &table);
void addPoolingKernels(KernelTable &table);
void addWindowPoolKernels(KernelTable &table);
void addNormalizationKernels(KernelTable &table);
void addStatisticsKernels(KernelTable &table);
void addIndexingKernels(KernelTable &table);
void addGatherKernels(KernelTable &table);
void addResampleKernels(KernelTable &table);
void addAttentionKernels(KernelTable &table);
void addRandomKernels(KernelTable &table);

} // namespace dg::codegen
