// SPDX-License-Identifier: Apache-2.0
// The launcher that started this process, where that is srun or mpirun: which of its processes this is, and one word
// that all of them share. PMIx's types stay in ProcessManager.cpp.
#pragma once

#include "runtime/launch/link/RankContext.h"

#include <memory>
#include <string>

namespace dg {

class ProcessManager {
public:
  /// Null when no such launcher has started this process, or only this one. Fails (usage) when one has started several
  /// and PMIx does not work with it: each of them would take itself for the whole job. Fails (lost) when PMIx does not
  /// answer before the deadline.
  static Result<std::unique_ptr<ProcessManager>> find(Deadline deadline);
  /// Ends the conversation. To be done before other threads or processes are started.
  ~ProcessManager();
  ProcessManager(const ProcessManager &) = delete;

  int64_t rank() const { return self; }
  int64_t size() const { return all; }
  /// Of its processes, those on this host.
  int64_t sizeOnHost() const { return onHost; }
  /// The text of process 0. Every process calls it once.
  Result<std::string> share(const std::string &text, Deadline deadline);

private:
  ProcessManager() = default;
  int64_t self = 0, all = 1, onHost = 1;
  std::string space; ///< PMIx's name of the job
};

} // namespace dg
