// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Retention.h"

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/support/FileWriting.h"

#include <filesystem>
#include <sys/statvfs.h>

namespace dg::checkpoint {

namespace fs = std::filesystem;

/// It loses its name first: what a run leaves that is ended meanwhile is not taken for a checkpoint, and is reclaimed.
static void removeCheckpoint(const std::string &folder) {
  std::error_code error;
  const std::string partial = folder + partialSuffix;
  fs::remove_all(partial, error);
  fs::rename(folder, partial, error);
  if (!error)
    fs::remove_all(partial, error);
}

/// A link with that name points there from now on; at no moment there is none.
static void link(const fs::path &directory, const std::string &target) {
  std::error_code error;
  const fs::path made = directory / (std::string(bestName) + ".partial");
  fs::remove(made, error);
  fs::create_symlink(target, made, error);
  if (!error)
    fs::rename(made, directory / bestName, error);
  if (!error)
    syncFolder(directory.string()); // before the one that it pointed to is removed
}

void retain(const std::string &directory, const Retention &retention) {
  std::error_code error;
  if (retention.best && fs::exists(fs::path(directory) / nameOfStep(*retention.best), error))
    link(directory, nameOfStep(*retention.best));
  if (retention.keep == 0)
    return;
  std::vector<int64_t> steps = stepsIn(directory);
  for (size_t i = 0; i + size_t(retention.keep) < steps.size(); ++i)
    if (steps[i] != retention.best)
      removeCheckpoint((fs::path(directory) / nameOfStep(steps[i])).string());
}

uint64_t bytesNeeded(const plan::Plan &plan) {
  constexpr uint64_t manifestBytes = 4096;
  auto layout = package::layoutSafetensors(tensorsOf(plan).specs, {{"model", plan.model.name}});
  return layout ? layout->fileBytes + manifestBytes : 0;
}

std::optional<uint64_t> bytesFree(const std::string &directory) {
  std::error_code error;
  fs::path at = fs::absolute(directory, error);
  while (!fs::exists(at, error) && at.has_relative_path())
    at = at.parent_path();
  struct statvfs disk{};
  if (::statvfs(at.c_str(), &disk) != 0 || disk.f_blocks == 0) // not a disk, as /proc
    return std::nullopt;
  return uint64_t(disk.f_bavail) * disk.f_frsize;
}

} // namespace dg::checkpoint
