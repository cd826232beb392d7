// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/RowCopy.h"

using namespace mlir;

namespace dg::codegen {

void copyRow(KernelBuilder &k, Value source, Value sourceAt, Value target, Value targetAt, Value from, Value to,
             int64_t columns) {
  k.loopVectors(from, to, columns, [&](Value at, Lanes lanes) {
    k.store(k.load(source, k.add(sourceAt, at), lanes), target, k.add(targetAt, at), lanes);
  });
}

void fillRow(KernelBuilder &k, Value scalar, Value target, Value targetAt, int64_t columns) {
  k.loopVectors(columns, [&](Value at, Lanes lanes) {
    k.store(k.splat(scalar, lanes.width), target, k.add(targetAt, at), lanes);
  });
}

Value numberFor(KernelBuilder &k, Value buffer, double number) {
  Type type = computedOf(k.elementOf(buffer));
  if (isa<FloatType>(type))
    return k.create<arith::ConstantOp>(k.getFloatAttr(type, number));
  return k.create<arith::ConstantOp>(k.getIntegerAttr(type, APInt(type.getIntOrFloatBitWidth(), int64_t(number))));
}

} // namespace dg::codegen
