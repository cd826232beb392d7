// SPDX-License-Identifier: Apache-2.0
// A package opened for running: plan read and verified, objects and initial tensors checked. All of it happens before
// ranks are forked, so that a bad file is one message, and ranks share the memory. Code is loaded in ranks only.
#pragma once

#include "runtime/device/host/KernelLibrary.h"
#include "runtime/package/Package.h"
#include "runtime/package/Safetensors.h"
#include "runtime/plan/Plan.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dg::session {

/// Immutable once open.
class Job {
public:
  /// Fails with badInput on anything that cannot be run on this host. `target`: the only one to be looked at, or "".
  /// `trusted`: the keys of which one must have signed the package, or null.
  static Result<std::unique_ptr<Job>> open(const std::string &path, const std::string &target = "",
                                           const package::TrustedKeys *trusted = nullptr);

  /// Runs so many replicas of the package's plan: once, before anybody has looked at the plan. Fails (usage) where it
  /// has too few micro-batches for them.
  Status replicate(int64_t replicas);
  const plan::Plan &plan() const { return thePlan; }
  /// The plans of the same inference for smaller batches (dgc --batch 1,8,64), the smallest first.
  const std::vector<plan::Plan> &smallerPlans() const { return smaller; }
  /// The plan with the smallest batch that holds so many samples; plan() where none does.
  const plan::Plan &planFor(int64_t samples) const;
  /// The targets of the package that this host can run, the best first.
  std::vector<std::string> targets() const;
  /// The others, each with what this host lacks; "" if there are none.
  const std::string &refusedTargets() const { return refused; }
  /// Loads the code for one of them into this process: only a rank that is about to run it does.
  Result<std::unique_ptr<KernelLibrary>> loadKernels(const std::string &target) const;
  const std::string &path() const { return package.path(); }
  const std::string &identity() const { return package.identity(); }
  /// The global tensor of a value that starts from a file.
  Result<std::span<const std::byte>> initialTensor(const std::string &name) const;
  /// The table of parameters that dgc prints, as a JSON array; "" if the package has none. Fails with badInput.
  Result<std::string> parameterTable() const;
  /// Says that such bytes were copied and need no memory in this process any more.
  void forget(std::span<const std::byte> tensor) const { package.forget(tensor); }

private:
  /// The objects of one target.
  struct Objects {
    std::string target;
    size_t numFeatures = 0;
    std::vector<std::string> entries;
  };
  Job() = default;
  Result<plan::Plan> readPlan(const std::string &entry) const;
  Status readPlans();
  Status checkObjects(const std::string &wanted);
  Status readInitialTensors();
  package::Package package;
  plan::Plan thePlan;
  std::vector<plan::Plan> smaller;
  std::vector<Objects> runnable; ///< the best first
  std::string refused;
  std::optional<package::Safetensors> initial;
};

} // namespace dg::session
