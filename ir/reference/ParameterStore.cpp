// SPDX-License-Identifier: Apache-2.0
#include "ir/reference/ParameterStore.h"
#include "ir/ops/structure/GraphOps.h"

#include "runtime/support/CounterRandom.h"

using namespace mlir;

namespace dg::ir {

HostTensor initialValue(ParameterOp op, uint64_t seed) {
  auto type = cast<RankedTensorType>(op.getType());
  HostTensor tensor = zerosOf(type);
  double value = op.getInit().getValue().getValueAsDouble();
  uint64_t stream = streamOf(op.getParam().str());
  float bound = float(value);
  for (size_t i = 0; i < tensor.data.size(); ++i)
    switch (op.getInit().getKind()) {
    case InitKind::constant:
      tensor.data[i] = value;
      break;
    case InitKind::uniform:
      tensor.data[i] = (2.0f * uniformAt(seed, stream, i) - 1.0f) * bound;
      break;
    case InitKind::normal:
      tensor.data[i] = float(double(normalAt(seed, stream, i)) * value);
      break;
    case InitKind::file:
      break;
    }
  // Stored in the declared type also when later arithmetic is in double, so that both precisions start alike.
  roundTo(Precision::f32, type, tensor);
  return tensor;
}

FailureOr<const HostTensor *> ParameterStore::get(ParameterOp op) {
  std::string name = op.getParam().str();
  auto found = values.find(name);
  if (found == values.end()) {
    if (op.getInit().getKind() == InitKind::file)
      return op.emitOpError() << "'" << name << "' starts from a file, and no value was given: set it before the run";
    found = values.emplace(name, initialValue(op, seed)).first;
  }
  ArrayRef<int64_t> declared = cast<RankedTensorType>(op.getType()).getShape();
  if (ArrayRef<int64_t>(found->second.shape) != declared)
    return op.emitOpError() << "'" << name << "' holds " << found->second.data.size() << " elements in "
                            << found->second.shape.size() << " dimensions, expected the declared " << op.getType();
  return &found->second;
}

} // namespace dg::ir
