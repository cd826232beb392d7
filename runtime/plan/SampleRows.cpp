// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/SampleRows.h"

#include "runtime/plan/PlanFacts.h"

namespace dg::plan {

/// The program's first input that has a dimension for samples.
static const Value *firstInput(const Plan &plan, const Program &program) {
  for (const Port &port : program.inputs)
    for (ValueId id : port.values)
      if (program.batch > 0 && !plan.values[id].shape.empty())
        return &plan.values[id];
  return nullptr;
}

int64_t sampleRows(const Plan &plan, const Program &program) {
  const Value *input = firstInput(plan, program);
  return input ? input->shape.front() : 0;
}

bool hasSampleRows(const Plan &plan, const Program &program, const Value &value) {
  const Value *input = firstInput(plan, program);
  if (!input || isPersistent(value.kind) || value.shape.empty() || value.shape.front() != input->shape.front() ||
      value.globalShape.front() != input->globalShape.front())
    return false;
  // Plans of earlier versions mark neither inputs nor results where one rank has the whole batch.
  if (value.sharding.front() != input->sharding.front())
    return false;
  for (size_t dim = 1; dim < value.shape.size(); ++dim)
    if (value.shape[dim] != value.globalShape[dim])
      return false;
  return true;
}

} // namespace dg::plan
