// SPDX-License-Identifier: Apache-2.0
#include "ir/reference/ReferenceExecutor.h"
#include "ir/ops/structure/GraphOps.h"

using namespace mlir;

namespace dg::ir {

FailureOr<TensorMap> ReferenceExecutor::run(GraphOp graph, const TensorMap &inputs, ParameterStore &parameters,
                                            const RunScalars &scalars) const {
  llvm::DenseMap<Value, HostTensor> values;
  for (BlockArgument argument : graph.getBody().getArguments()) {
    std::string name = graph.getInputName(argument.getArgNumber()).str();
    auto found = inputs.find(name);
    if (found == inputs.end())
      return graph.emitOpError() << "has an input '" << name << "' for which no tensor was given";
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getShape() != ArrayRef<int64_t>(found->second.shape))
      return graph.emitOpError() << "has an input '" << name << "' of type " << argument.getType()
                                 << ", expected a tensor of that shape, found " << found->second.data.size()
                                 << " elements in " << found->second.shape.size() << " dimensions";
    roundTo(precision, type, values[argument] = found->second);
  }

  TensorMap results, updates;
  for (Operation &op : graph.getBody().front()) {
    SmallVector<HostTensor> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    if (auto parameter = dyn_cast<ParameterOp>(op)) {
      FailureOr<const HostTensor *> value = parameters.get(parameter);
      if (failed(value))
        return failure();
      roundTo(precision, cast<RankedTensorType>(parameter.getType()), values[parameter.getResult()] = **value);
    } else if (auto update = dyn_cast<UpdateOp>(op)) {
      updates[update.getParam().str()] = std::move(operands[0]);
    } else if (isa<ReturnOp>(op)) {
      for (auto [name, operand] : llvm::zip_equal(resultNames(graph), operands))
        results[name] = std::move(operand);
    } else {
      FailureOr<SmallVector<HostTensor>> outputs = evaluateOp(&op, operands, scalars, precision);
      if (failed(outputs))
        return failure();
      for (auto [result, output] : llvm::zip_equal(op.getResults(), *outputs))
        values[result] = std::move(output);
    }
  }
  for (auto &[name, value] : updates)
    parameters.set(name, std::move(value));
  return results;
}

} // namespace dg::ir
