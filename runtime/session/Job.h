// SPDX-License-Identifier: Apache-2.0
// A package opened for running: plan read and verified, kernels loaded, initial tensors checked. All of it happens
// before ranks are forked, so that a bad file is one message, and ranks share the memory.
#pragma once

#include "runtime/executor/ObjectLibrary.h"
#include "runtime/package/Package.h"
#include "runtime/package/Safetensors.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <optional>
#include <string>

namespace dg::session {

/// Immutable once open.
class Job {
public:
  /// Fails with badInput on anything that cannot be run on this host.
  static Result<std::unique_ptr<Job>> open(const std::string &path);

  const plan::Plan &plan() const { return thePlan; }
  const KernelLibrary &kernels() const { return *library; }
  const std::string &path() const { return package.path(); }
  const std::string &identity() const { return package.identity(); }
  /// The global tensor of a value that starts from a file.
  Result<std::span<const std::byte>> initialTensor(const std::string &name) const;

private:
  Job() = default;
  Status readPlan();
  Status loadObjects();
  Status readInitialTensors();
  package::Package package;
  plan::Plan thePlan;
  std::unique_ptr<ObjectLibrary> library;
  std::optional<package::Safetensors> initial;
};

} // namespace dg::session
