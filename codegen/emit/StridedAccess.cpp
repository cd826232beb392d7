// SPDX-License-Identifier: Apache-2.0
// Stride 2 is two loads and a shuffle; wider strides gather.
#include "codegen/emit/StridedAccess.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace dg::codegen {

Value loadStrided(KernelBuilder &k, Value buffer, Value at, Lanes lanes, int64_t stride) {
  if (stride == 1 || lanes.active == 1)
    return k.load(buffer, at, lanes);
  int64_t width = lanes.width, elements = (lanes.active - 1) * stride + 1;
  if (stride == 2) {
    Value low = k.load(buffer, at, {width, std::min(width, elements)});
    Value high = elements > width ? k.load(buffer, k.add(at, width), {width, elements - width}) : low;
    SmallVector<int64_t> picks;
    for (int64_t lane = 0; lane < width; ++lane)
      picks.push_back(2 * lane);
    return k.create<vector::ShuffleOp>(low, high, picks);
  }
  SmallVector<int32_t> offsets;
  for (int64_t lane = 0; lane < width; ++lane)
    offsets.push_back(int32_t(std::min(lane, lanes.active - 1) * stride));
  Value places = k.create<arith::ConstantOp>(
      DenseElementsAttr::get(k.vectorOf(width, k.getI32Type()), ArrayRef<int32_t>(offsets)));
  return k.gather(buffer, at, places, lanes);
}

void storePairs(KernelBuilder &k, Value even, Value odd, Value buffer, Value at, Lanes lanes) {
  int64_t width = lanes.width, elements = 2 * lanes.active;
  for (int64_t half = 0; half < 2 && elements > half * width; ++half) {
    SmallVector<int64_t> picks;
    for (int64_t lane = 0; lane < width; ++lane)
      picks.push_back((half * width + lane) / 2 + (lane % 2) * width);
    if (width == 1)
      picks[0] = half;
    Value pairs = k.create<vector::ShuffleOp>(even, odd, picks);
    k.store(pairs, buffer, k.add(at, half * width), {width, std::min(width, elements - half * width)});
  }
}

} // namespace dg::codegen
