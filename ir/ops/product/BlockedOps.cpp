// SPDX-License-Identifier: Apache-2.0
// Ops on images with blocked channels and on matrices in panels: types, cost, evaluation.
#include "ir/ops/product/BlockedOps.h"
#include "ir/dialect/FusedBody.h"
#include "ir/ops/structure/ControlBodies.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

//===- Types -----------------------------------------------------------------------------------------------------===//

bool BlockedConvOp::isPlain() { return tensorOf(getInput()).getRank() == 4; }

RankedTensorType BlockedConvOp::sumsTypeOf(RankedTensorType input, RankedTensorType weight, ArrayRef<int64_t> strides) {
  int64_t rows = (input.getDimSize(2) - weight.getDimSize(2)) / strides[0] + 1;
  int64_t columns = (input.getDimSize(3) - weight.getDimSize(3)) / strides[1] + 1;
  return RankedTensorType::get({input.getDimSize(0), weight.getDimSize(0), rows, columns, blockSize},
                               input.getElementType());
}

RankedTensorType BlockedConvOp::getSumsType() {
  return sumsTypeOf(tensorOf(getInput()), tensorOf(getWeight()), getStrides());
}

LogicalResult BlockedConvOp::verify() {
  auto input = dyn_cast<RankedTensorType>(getInput().getType()),
       weight = dyn_cast<RankedTensorType>(getWeight().getType()),
       result = dyn_cast<RankedTensorType>(getResult().getType());
  if (!input || !weight || !result || !input.hasStaticShape() || !weight.hasStaticShape() || !result.hasStaticShape())
    return emitOpError() << "has input " << getInput().getType() << ", weight " << getWeight().getType()
                         << " and result " << getResult().getType() << ", expected static shapes";
  bool isBlocked = input.getRank() == 5;
  if ((!isBlocked && input.getRank() != 4) || weight.getRank() != input.getRank() + 1 ||
      weight.getDimSize(1) != input.getDimSize(1) || weight.getShape().back() != blockSize ||
      (isBlocked && (input.getDimSize(4) != blockSize || weight.getDimSize(4) != blockSize)))
    return emitOpError() << "has input " << input << " and weight " << weight << ", expected [n, c / " << blockSize
                         << ", h, w, " << blockSize << "] and [o / " << blockSize << ", c / " << blockSize
                         << ", kh, kw, " << blockSize << ", " << blockSize << "], or [n, c, h, w] and [o / "
                         << blockSize << ", c, kh, kw, " << blockSize << "]";
  ArrayRef<int64_t> strides = getStrides(), frame = getFrame();
  if (strides.size() != 2 || strides[0] < 1 || strides[1] < 1 || frame.size() != 2 || frame[0] < 0 || frame[1] < 0)
    return emitOpError() << "has strides " << getStridesAttr() << " and frame " << getFrameAttr()
                         << ", expected two strides above 0 and two frames of 0 or more";
  if (input.getDimSize(2) < weight.getDimSize(2) || input.getDimSize(3) < weight.getDimSize(3))
    return emitOpError() << "has input " << input << " and weight " << weight << ", expected a kernel that fits";
  RankedTensorType sums = getSumsType();
  SmallVector<int64_t> framed(sums.getShape());
  framed[2] += 2 * frame[0], framed[3] += 2 * frame[1];
  if (result.getShape() != ArrayRef(framed))
    return emitOpError() << "has result " << result << ", expected the shape "
                         << RankedTensorType::get(framed, input.getElementType());
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 + getExtras().size() || body.getArgument(0).getType() != sums)
    return emitOpError() << "has a region of " << body.getNumArguments() << " arguments, expected the sums " << sums
                         << " and " << getExtras().size() << " extra operands";
  for (auto [argument, extra] : llvm::zip_equal(body.getArguments().drop_front(), getExtras()))
    if (argument.getType() != extra.getType() ||
        broadcastShapes(tensorOf(extra).getShape(), sums.getShape()) != SmallVector<int64_t>(sums.getShape()))
      return emitOpError() << "has an extra operand " << extra.getType() << " for an argument " << argument.getType()
                           << ", expected equal types that broadcast to " << sums;
  auto end = body.empty() ? ReturnOp() : dyn_cast<ReturnOp>(body.back());
  if (!end || end->getNumOperands() != 1 || tensorOf(end->getOperand(0)).getShape() != sums.getShape())
    return emitOpError() << "has a region that does not return one value of the shape of " << sums;
  return success();
}

//===- Cost and evaluation ---------------------------------------------------------------------------------------===//

OpCost BlockedConvOp::getCost() {
  auto weight = tensorOf(getWeight());
  double taps = double(weight.getNumElements()) / double(weight.getDimSize(0) * blockSize);
  return {2 * taps * double(getSumsType().getNumElements()), operandAndResultBytes(getOperation())};
}

LogicalResult BlockedConvOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  const HostTensor &input = operands[0], &weight = operands[1];
  int64_t perBlock = isPlain() ? 1 : blockSize, blocks = input.shape[1], height = input.shape[2],
          width = input.shape[3];
  HostTensor sums{getSumsType().getShape().vec(), {}};
  sums.data.resize(sums.numElements());
  int64_t at = 0;
  for (int64_t n = 0; n < sums.shape[0]; ++n)
    for (int64_t o = 0; o < sums.shape[1]; ++o)
      for (int64_t row = 0; row < sums.shape[2]; ++row)
        for (int64_t column = 0; column < sums.shape[3]; ++column)
          for (int64_t lane = 0; lane < blockSize; ++lane, ++at)
            for (int64_t b = 0; b < blocks; ++b)
              for (int64_t y = 0; y < weight.shape[2]; ++y)
                for (int64_t x = 0; x < weight.shape[3]; ++x)
                  for (int64_t c = 0; c < perBlock; ++c) {
                    int64_t line = (n * blocks + b) * height + row * getStrides()[0] + y;
                    int64_t from = (line * width + column * getStrides()[1] + x) * perBlock + c;
                    int64_t tap = ((o * blocks + b) * weight.shape[2] + y) * weight.shape[3] + x;
                    sums.data[at] += input.data[from] * weight.data[(tap * perBlock + c) * blockSize + lane];
                  }
  SmallVector<HostTensor> arguments{sums};
  arguments.append(operands.begin() + 2, operands.end());
  auto elements = evaluateBody(getBody(), arguments, scalars);
  if (failed(elements))
    return failure();
  int64_t frameRows = getFrame()[0], frameColumns = getFrame()[1], rowSize = sums.shape[3] * blockSize;
  int64_t framedHeight = sums.shape[2] + 2 * frameRows, framedWidth = (sums.shape[3] + 2 * frameColumns) * blockSize;
  for (int64_t image = 0; image < sums.shape[0] * sums.shape[1]; ++image)
    for (int64_t row = 0; row < sums.shape[2]; ++row)
      std::copy_n((*elements)[0].data.begin() + (image * sums.shape[2] + row) * rowSize, rowSize,
                  results[0].data.begin() + (image * framedHeight + row + frameRows) * framedWidth +
                      frameColumns * blockSize);
  return success();
}

//===- PanelProductOp --------------------------------------------------------------------------------------------===//

FailureOr<Type> PanelProductOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), panels = tensorOf(op.getPanels());
  int64_t columns = op.getColumns(), numPanels = llvm::divideCeil(std::max<int64_t>(columns, 0), panelColumns);
  bool fits = input.getRank() == 2 && panels.getRank() == 3 && columns > 0 &&
              mayBeEqual(panels.getDimSize(0), numPanels) && mayBeEqual(panels.getDimSize(1), input.getDimSize(1)) &&
              mayBeEqual(panels.getDimSize(2), panelColumns) && input.getElementType() == panels.getElementType() &&
              (input.getElementType().isF32() || input.getElementType().isF64());
  if (!fits)
    return reject("has input ", input, ", panels ", panels, " and ", columns,
                  " columns, expected [rows, depth] and [columns / ", panelColumns, ", depth, ", panelColumns,
                  "] of f32 or f64");
  return RankedTensorType::get({input.getDimSize(0), columns}, input.getElementType());
}

ShardingRule PanelProductOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  int32_t rows = rule.addFactor(tensorOf(getInput()).getDimSize(0));
  int32_t depth = rule.addFactor(tensorOf(getInput()).getDimSize(1));
  rule.operands[0][0].push_back(rows);
  rule.results[0][0].push_back(rows);
  rule.operands[0][1].push_back(depth);
  rule.operands[1][1].push_back(depth);
  return rule;
}

OpCost PanelProductOp::getCost() {
  return {2 * double(tensorOf(getInput()).getDimSize(1)) * double(tensorOf(getResult()).getNumElements()),
          operandAndResultBytes(*this)};
}

void PanelProductOp::compute(HostOperands operands, HostResults results) {
  int64_t rows = operands[0].shape[0], depth = operands[0].shape[1], columns = getColumns();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t i = 0; i < depth; ++i)
        results[0].data[row * columns + column] +=
            operands[0].data[row * depth + i] *
            operands[1].data[(column / panelColumns * depth + i) * panelColumns + column % panelColumns];
}

} // namespace dg::ir

#define DG_OPS "ir/ops/product/BlockedOps.cpp.inc"
#define DG_ADD_OPS addBlockedOps
#include "ir/ops/Family.inc"
