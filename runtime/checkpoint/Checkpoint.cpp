// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Checkpoint.h"

#include "runtime/checkpoint/ShardRuns.h"
#include "runtime/package/ContentHash.h"
#include "runtime/plan/Elements.h"
#include "runtime/plan/SavedValues.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

namespace dg::checkpoint {

namespace fs = std::filesystem;

std::string nameOfStep(int64_t step) { return fmt::format("step-{:06}", step); }

CheckpointTensors tensorsOf(const plan::Plan &plan) {
  CheckpointTensors tensors;
  tensors.ids = plan::savedValues(plan);
  for (plan::ValueId id : tensors.ids)
    tensors.specs.push_back(
        {plan.values[id].name, plan::safetensorsName(plan.values[id].dtype), plan.values[id].globalShape});
  return tensors;
}

static std::optional<int64_t> stepOfName(const std::string &name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix))
    return std::nullopt;
  int64_t step = 0;
  const char *end = name.data() + name.size();
  auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, step);
  if (error != std::errc() || (stop != end && std::string_view(stop, end) != replacedSuffix) || step < 0)
    return std::nullopt;
  return step;
}

Result<Manifest> readManifest(const std::string &folder) {
  std::string path = folder + "/" + manifestFileName;
  auto file = package::MappedFile::open(path);
  if (!file)
    return file.status();
  auto bytes = file->bytes();
  return manifestFromJson(std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size()), path);
}

std::vector<int64_t> namedStepsIn(const std::string &directory) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (auto step = stepOfName(at->path().filename().string()))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

static std::string folderOf(const std::string &directory, int64_t step) {
  const std::string folder = (fs::path(directory) / nameOfStep(step)).string();
  std::error_code error;
  const bool isBetweenRenames = !fs::exists(folder, error) && fs::exists(folder + std::string(replacedSuffix), error);
  return isBetweenRenames ? folder + std::string(replacedSuffix) : folder;
}

std::vector<int64_t> stepsIn(const std::string &directory) {
  std::vector<int64_t> steps = namedStepsIn(directory);
  std::erase_if(steps, [&](int64_t step) {
    auto manifest = readManifest(folderOf(directory, step));
    return !manifest || manifest->state.step != step;
  });
  return steps;
}

bool isUnused(const std::string &directory) {
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (std::string name = at->path().filename().string(); name == manifestFileName || stepOfName(name))
      return false;
  return !error || error == std::errc::no_such_file_or_directory;
}

Result<Checkpoint> Checkpoint::openOne(const std::string &folder) {
  Checkpoint checkpoint;
  checkpoint.folder = folder;
  auto manifest = readManifest(folder);
  if (!manifest)
    return manifest.status();
  checkpoint.manifest = std::move(*manifest);
  std::string tensorPath = folder + "/" + tensorFileName;
  auto file = package::MappedFile::open(tensorPath);
  if (!file)
    return file.status();
  auto bytes = file->bytes();
  if (bytes.size() != checkpoint.manifest.fileBytes)
    return Status::error(ErrorKind::badInput, "{}: has {} bytes, its manifest says {}", tensorPath, bytes.size(),
                         checkpoint.manifest.fileBytes);
  if (package::hashOf(bytes) != checkpoint.manifest.fileHash)
    return Status::error(ErrorKind::badInput, "{}: damaged: its hash is not the manifest's", tensorPath);
  auto tensors = package::Safetensors::parse(bytes, tensorPath);
  if (!tensors)
    return tensors.status();
  checkpoint.file = std::move(*file);
  checkpoint.tensors = std::move(*tensors);
  return checkpoint;
}

Result<Checkpoint> Checkpoint::openStep(const std::string &directory, int64_t step) {
  const std::string folder = folderOf(directory, step);
  auto opened = openOne(folder);
  if (opened && opened->state().step != step)
    return Status::error(ErrorKind::badInput, "{}: its manifest is that of step {}", folder, opened->state().step);
  return opened;
}

Result<std::vector<Verified>> verify(const std::string &path, const plan::Plan *plan, Purpose purpose) {
  std::vector<Verified> all;
  auto add = [&](const std::string &folder, Result<Checkpoint> opened) {
    Verified one{folder, opened.status()};
    if (opened) {
      one.step = opened->state().step, one.bytes = opened->bytes(), one.numTensors = opened->numTensors();
      if (plan)
        one.status = opened->check(*plan, purpose);
    }
    all.push_back(std::move(one));
  };
  std::error_code error;
  const std::vector<int64_t> steps = namedStepsIn(path);
  if (steps.empty())
    add(path, Checkpoint::open(path));
  for (int64_t step : steps) {
    auto opened = Checkpoint::openStep(path, step);
    if (opened || fs::exists(folderOf(path, step), error))
      add(folderOf(path, step), std::move(opened));
  }
  if (steps.empty() && !fs::exists(fs::path(path) / tensorFileName, error))
    return all.front().status;
  return all;
}

Result<Checkpoint> Checkpoint::openLatest(const std::string &directory, Unreadable unreadable) {
  std::vector<int64_t> steps = namedStepsIn(directory);
  std::vector<PassedOver> unread;
  for (; !steps.empty(); steps.pop_back()) {
    auto opened = openStep(directory, steps.back());
    if (opened) {
      opened->unread = std::move(unread);
      return opened;
    }
    unread.push_back({steps.back(), folderOf(directory, steps.back()), opened.status().message()});
    if (unreadable == Unreadable::refuse)
      break;
  }
  if (unread.empty())
    return Status::error(ErrorKind::badInput, "{}: no checkpoint there; expected folders such as {}/{}", directory,
                         directory, nameOfStep(1));
  if (unreadable == Unreadable::passOver)
    return Status::error(ErrorKind::badInput, "{}; none of the {} checkpoints of {} can be read", unread.front().reason,
                         unread.size(), directory);
  steps.pop_back();
  return Status::error(ErrorKind::badInput, "{}; {} is the latest checkpoint of {}: {}", unread.front().reason,
                       nameOfStep(unread.front().step), directory,
                       steps.empty() ? "there is none before it"
                                     : fmt::format("give --resume-older to go back to one before it (the next is {}), "
                                                   "or restore it",
                                                   nameOfStep(steps.back())));
}

Result<Checkpoint> Checkpoint::open(const std::string &path, Unreadable unreadable) {
  std::error_code error;
  const bool isOne = fs::exists(fs::path(path) / manifestFileName, error) ||
                     (namedStepsIn(path).empty() && fs::exists(fs::path(path) / tensorFileName, error));
  return isOne ? openOne(path) : openLatest(path, unreadable);
}

Result<Checkpoint> continueIn(const std::string &directory, Checkpoint from, Unreadable unreadable) {
  std::vector<int64_t> later = namedStepsIn(directory);
  std::erase_if(later, [&](int64_t step) { return step <= from.state().step; });
  std::error_code error;
  if (fs::equivalent(fs::canonical(from.folder, error).parent_path(), directory, error)) {
    for (const PassedOver &one : from.unread)
      std::erase(later, one.step);
    if (later.empty())
      return from;
    return Status::error(
        ErrorKind::usage,
        "--resume {}: {} holds later checkpoints, up to step {}; remove those after step {} to go back "
        "to it, give --checkpoint another folder, or continue the latest with --resume alone",
        from.folder, directory, later.back(), from.state().step);
  }
  const std::string &hash = from.manifest.fileHash;
  for (int64_t step : later)
    // What cannot be read says nothing about where it came from; if it is the latest, opening it fails below.
    if (auto manifest = readManifest(folderOf(directory, step)); manifest && manifest->state.origin != hash)
      return Status::error(ErrorKind::usage,
                           "--checkpoint {}: holds {}, a checkpoint beyond step {} that does not continue {}; choose "
                           "another folder, or continue that training with --resume alone",
                           directory, nameOfStep(step), from.state().step, from.folder);
  if (!later.empty()) {
    auto latest = Checkpoint::openLatest(directory, unreadable);
    if (!latest || latest->state().step > from.state().step)
      return latest;
    from.unread.insert(from.unread.end(), latest->unread.begin(), latest->unread.end());
  }
  from.manifest.state.origin = hash;
  return from;
}

Status setAside(const PassedOver &damaged) {
  const std::string aside = damaged.folder + ".damaged";
  std::error_code error;
  fs::remove_all(aside, error); // of the same step, set aside before
  fs::rename(damaged.folder, aside, error);
  if (error)
    return Status::error(ErrorKind::runFailed, "{}: cannot be renamed to {}: {}; remove it", damaged.folder, aside,
                         error.message());
  return Status::ok();
}

Status Checkpoint::check(const plan::Plan &plan, Purpose purpose) const {
  auto describe = [](const package::TensorSpec &spec) {
    return fmt::format("{} [{}]", spec.dtype, fmt::join(spec.shape, ", "));
  };
  std::set<std::string> known;
  for (const plan::Value &value : plan.values) {
    if (!plan::isSaved(value))
      continue;
    known.insert(value.name);
    package::TensorSpec wanted{value.name, plan::safetensorsName(value.dtype), value.globalShape};
    const package::Tensor *found = tensors.find(value.name);
    if (!found)
      return Status::error(ErrorKind::badInput,
                           "{}: has no tensor '{}' ({}), a {} of model '{}'; the checkpoint was written by '{}'",
                           folder, value.name, describe(wanted),
                           value.kind == plan::ValueKind::parameter ? "parameter" : "state of the optimizer",
                           plan.model.name, state().model);
    if (found->dtype != wanted.dtype || found->shape != wanted.shape)
      return Status::error(ErrorKind::badInput,
                           "{}: tensor '{}' is {}, model '{}' expects {}; give the checkpoint of this model", folder,
                           value.name, describe(*found), plan.model.name, describe(wanted));
  }
  if (purpose == Purpose::training)
    for (const package::Tensor &tensor : tensors.tensors())
      if (!known.contains(tensor.name))
        return Status::error(
            ErrorKind::badInput,
            "{}: tensor '{}' has no place in model '{}' ({}); training on would lose it. Compile the model "
            "with the optimizer that wrote the checkpoint",
            folder, tensor.name, plan.model.name, plan.model.optimizer);
  return Status::ok();
}

Status Checkpoint::restore(const plan::Plan &plan, plan::Coordinates at, ValueAccess &values) const {
  for (plan::ValueId id = 0; id < plan.values.size(); ++id) {
    const plan::Value &value = plan.values[id];
    if (!plan::isSaved(value) || int64_t(value.stage) != at.pipe)
      continue;
    const package::Tensor *tensor = tensors.find(value.name);
    if (!tensor)
      return Status::error(ErrorKind::runFailed, "{}: tensor '{}' cannot be restored", folder, value.name);
    Status filled = values.fill(id, 0, [&](std::span<std::byte> to) {
      size_t elementBytes = size_t(plan::sizeOf(value.dtype));
      std::memset(to.data(), 0, to.size());
      for (const ShardRun &run : shardRunsOf(value, plan.mesh, at))
        std::memcpy(to.data() + size_t(run.local) * elementBytes,
                    tensor->data.data() + size_t(run.global) * elementBytes, size_t(run.elements) * elementBytes);
    });
    if (!filled)
      return Status::error(ErrorKind::runFailed, "{}: tensor '{}' cannot be restored: {}", folder, value.name,
                           filled.message());
  }
  return Status::ok();
}

} // namespace dg::checkpoint
