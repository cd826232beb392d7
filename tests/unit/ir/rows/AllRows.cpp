// SPDX-License-Identifier: Apache-2.0
// The table of ops, from one file of rows for each family.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> graphRows();
std::vector<OpSpec> elementwiseRows();
std::vector<OpSpec> mathRows();
std::vector<OpSpec> logicRows();
std::vector<OpSpec> activationRows();
std::vector<OpSpec> reductionRows();
std::vector<OpSpec> orderRows();
std::vector<OpSpec> einsumRows();
std::vector<OpSpec> contractionRows();
std::vector<OpSpec> convolutionRows();
std::vector<OpSpec> shapeRows();
std::vector<OpSpec> movementRows();
std::vector<OpSpec> arrangementRows();
std::vector<OpSpec> attentionRows();
std::vector<OpSpec> normalizationRows();
std::vector<OpSpec> statisticsRows();
std::vector<OpSpec> poolingRows();
std::vector<OpSpec> indexingRows();
std::vector<OpSpec> gatherRows();
std::vector<OpSpec> resampleRows();
std::vector<OpSpec> controlRows();
std::vector<OpSpec> recurrentRows();
std::vector<OpSpec> randomRows();
std::vector<OpSpec> lossRows();
std::vector<OpSpec> optimizerRows();

const std::vector<OpSpec> &opTable() {
  static const std::vector<OpSpec> table = [] {
    std::vector<OpSpec> all;
    for (auto rows : {graphRows,      elementwiseRows, mathRows,        logicRows,       activationRows,
                      reductionRows,  orderRows,       einsumRows,      contractionRows, convolutionRows,
                      shapeRows,      movementRows,    arrangementRows, attentionRows,   normalizationRows,
                      statisticsRows, poolingRows,     indexingRows,    gatherRows,      resampleRows,
                      controlRows,    recurrentRows,   randomRows,      lossRows,        optimizerRows})
      for (OpSpec &spec : rows())
        all.push_back(std::move(spec));
    return all;
  }();
  return table;
}

} // namespace dg::ir::test
