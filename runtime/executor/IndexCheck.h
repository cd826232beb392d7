// SPDX-License-Identifier: Apache-2.0
// What kernels report of indices outside their tables (dg_index_fault of the kernel ABI), and its words. A step only
// looks at one number; the rest is looked up when it has failed.
#pragma once

#include "runtime/executor/PreparedProgram.h"
#include "runtime/support/Status.h"

#include <functional>

namespace dg {

/// The number in the data set of the sample in a row of a micro-batch.
using SampleAt = std::function<int64_t(uint32_t microbatch, int64_t row)>;

/// Of one executor, whose thread calls it.
class IndexCheck {
public:
  explicit IndexCheck(const plan::Plan &plan) : plan(plan) {}

  /// Where kernels report.
  dg_index_fault *word() { return &fault; }
  bool hasFound() const { return fault.buffers != 0; }
  /// Of what was found, in this step of program number `index`. `microbatch` is that of the action which has just run.
  Status failure(size_t index, const PreparedProgram &program, int64_t step, uint32_t microbatch,
                 const SampleAt &sampleAt) const;

private:
  std::string describeRow(size_t index, const plan::Value &value, uint32_t microbatch, const SampleAt &sampleAt) const;

  const plan::Plan &plan;
  dg_index_fault fault{};
};

} // namespace dg
