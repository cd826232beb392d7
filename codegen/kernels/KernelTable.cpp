// SPDX-License-Identifier: Apache-2.0
// Collects the rows of the op families.
#include "codegen/kernels/KernelTable.h"

namespace dg::codegen {

const KernelTable &kernelTable() {
  static const KernelTable table = [] {
    KernelTable rows;
    for (auto add : {addElementwiseKernels, addMatmulKernels, addReduceKernels, addOrderKernels, addShapeKernels,
                     addMovementKernels, addOptimizerKernels, addConvolutionKernels, addWindowConvKernels,
                     addPoolingKernels, addWindowPoolKernels, addNormalizationKernels, addStatisticsKernels,
                     addIndexingKernels, addGatherKernels, addResampleKernels, addRandomKernels, addAttentionKernels})
      add(rows);
    return rows;
  }();
  return table;
}

} // namespace dg::codegen
