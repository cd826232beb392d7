// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Job.h"

#include "runtime/session/TargetSupport.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace dg::session {

static constexpr const char *planEntry = "plan.json", *initialEntry = "init.safetensors";

Result<std::unique_ptr<Job>> Job::open(const std::string &path) {
  auto package = package::Package::open(path);
  if (!package)
    return package.status();
  std::unique_ptr<Job> job(new Job());
  job->package = std::move(*package);
  DG_RETURN_IF_ERROR(job->readPlan());
  DG_RETURN_IF_ERROR(job->readInitialTensors());
  DG_RETURN_IF_ERROR(job->loadObjects());
  return job;
}

Status Job::readPlan() {
  auto text = package.text(planEntry);
  if (!text)
    return text.status();
  auto read = plan::fromJson(std::string(*text));
  if (!read)
    return Status::error(read.status().kind(), "{}: {}: {}", path(), planEntry, read.status().message());
  thePlan = std::move(*read);
  if (Status status = plan::verify(thePlan); !status)
    return Status::error(status.kind(), "{}: {}: {}", path(), planEntry, status.message());
  return Status::ok();
}

/// "train.x86-64-v3.so" → train, x86-64-v3.
static std::pair<std::string, std::string> splitObjectName(const std::string &name) {
  std::string stem = name.substr(0, name.size() - 3);
  size_t dot = stem.find('.');
  return {stem.substr(0, dot), dot == std::string::npos ? "" : stem.substr(dot + 1)};
}

Status Job::loadObjects() {
  struct Choice {
    std::string entry;
    size_t numFeatures = 0;
    std::string refused; ///< each target that this host cannot run, with what it lacks
  };
  std::map<std::string, Choice> choices;
  for (const std::string &entry : package.entries()) {
    if (!entry.ends_with(".so"))
      continue;
    auto [program, target] = splitObjectName(entry);
    Choice &choice = choices[program];
    // Without a list of needs the object asks for nothing beyond the baseline.
    auto listed = package.text("target." + target + ".txt");
    std::string_view needed = listed ? *listed : std::string_view();
    if (auto missing = missingFeatures(needed); !missing.empty()) {
      choice.refused += fmt::format("{}{} (this host lacks {})", choice.refused.empty() ? "" : ", ", target,
                                    fmt::join(missing, ", "));
      continue;
    }
    // The target that asks for most of what the host has is the fastest.
    size_t numFeatures = 1 + size_t(std::count(needed.begin(), needed.end(), ','));
    if (numFeatures > choice.numFeatures)
      choice.entry = entry, choice.numFeatures = numFeatures;
  }
  for (const auto &[program, choice] : choices) {
    if (choice.entry.empty())
      return Status::error(ErrorKind::badInput,
                           "{}: program '{}' was compiled for {}. Compile it on this host, or with --target x86-64-v3",
                           path(), program, choice.refused);
    auto bytes = package.entry(choice.entry);
    if (!bytes)
      return bytes.status();
    if (library) {
      DG_RETURN_IF_ERROR(library->add(*bytes, choice.entry));
      continue;
    }
    auto loaded = ObjectLibrary::load(*bytes, choice.entry);
    if (!loaded)
      return loaded.status();
    library = std::move(*loaded);
  }
  if (!library)
    return Status::error(ErrorKind::badInput, "{}: holds no compiled object; compile the model again", path());
  return Status::ok();
}

Status Job::readInitialTensors() {
  if (!package.has(initialEntry))
    return Status::ok();
  auto bytes = package.entry(initialEntry);
  if (!bytes)
    return bytes.status();
  auto parsed = package::Safetensors::parse(*bytes, path() + ":" + initialEntry);
  if (!parsed)
    return parsed.status();
  initial.emplace(std::move(*parsed));
  return Status::ok();
}

Result<std::span<const std::byte>> Job::initialTensor(const std::string &name) const {
  const package::Tensor *tensor = initial ? initial->find(name) : nullptr;
  if (!tensor)
    return Status::error(ErrorKind::badInput, "{}: has no initial tensor '{}'; compile the model again", path(), name);
  return tensor->data;
}

} // namespace dg::session
