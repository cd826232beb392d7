// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with a matrix that lies in panels of columns, as dg.panel_product has it: nothing is packed,
// and the matrix is read once, in order. What the steps of a recurrent layer are made of.
#pragma once

#include "codegen/emit/Gemm.h"

namespace dg::codegen {

/// c = a · b with `rows` rows of `depth` elements, and b [panels, depth, panelColumns]. Elements of a row of `left` lie
/// side by side; each row of `result` has room for all columns of all panels.
void emitPanelProduct(KernelBuilder &kernel, int64_t rows, int64_t depth, int64_t panels, const MatrixRef &left,
                      Value panelBuffer, const MatrixRef &result);

} // namespace dg::codegen
