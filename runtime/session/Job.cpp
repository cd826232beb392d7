// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Job.h"

#include "runtime/data/Dataset.h"
#include "runtime/device/host/ObjectFile.h"
#include "runtime/device/host/ObjectLibrary.h"
#include "runtime/plan/Replication.h"
#include "runtime/plan/SampleRows.h"
#include "runtime/session/TargetSupport.h"
#include "runtime/support/Json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace dg::session {

static constexpr const char *planEntry = "plan.json", *initialEntry = "init.safetensors",
                            *parametersEntry = "parameters.json";

Result<std::unique_ptr<Job>> Job::open(const std::string &path, const std::string &target,
                                       const package::TrustedKeys *trusted) {
  auto package = package::Package::open(path);
  if (!package)
    return package.status();
  if (trusted)
    DG_RETURN_IF_ERROR(package->checkSignature(*trusted));
  std::unique_ptr<Job> job(new Job());
  job->package = std::move(*package);
  DG_RETURN_IF_ERROR(job->readPlans());
  DG_RETURN_IF_ERROR(job->readInitialTensors());
  DG_RETURN_IF_ERROR(job->checkObjects(target));
  return job;
}

Result<plan::Plan> Job::readPlan(const std::string &entry) const {
  auto text = package.text(entry);
  if (!text)
    return text.status();
  auto read = plan::fromJson(std::string(*text));
  Status status = read ? plan::verify(*read) : read.status();
  if (!status)
    return Status::error(status.kind(), "{}: {}: {}", path(), entry, status.message());
  if (read->mesh.replicas > 1)
    return Status::error(ErrorKind::badInput,
                         "{}: {}: the plan is for {} replicas, expected one: dgrun -n says how many", path(), entry,
                         read->mesh.replicas);
  return read;
}

/// Samples of a step of the inference; 0: it has none, or no batch.
static int64_t batchOf(const plan::Plan &plan) {
  const plan::Program *program = plan.findProgram(plan::ProgramKind::infer);
  return program ? program->batch : 0;
}

/// Whether `plan` takes and gives the same samples as `whole`, fewer at once: feeding and results rely on it.
static Status checkSmaller(const plan::Plan &whole, const plan::Plan &plan) {
  auto differs = [](const std::string &what) {
    return Status::error(ErrorKind::badInput, "{} differs from plan.json; compile the model again", what);
  };
  const int64_t batch = batchOf(plan);
  if (batch < 1 || batch >= batchOf(whole) || plan.mesh.numRanks() != 1 || whole.mesh.numRanks() != 1)
    return Status::error(ErrorKind::badInput, "a batch of {} on {} ranks, expected fewer samples than {}, on one rank",
                         batch, plan.mesh.numRanks(), batchOf(whole));
  const plan::Program &program = *plan.findProgram(plan::ProgramKind::infer),
                      &other = *whole.findProgram(plan::ProgramKind::infer);
  auto arguments = data::argumentsOf(plan, program), expected = data::argumentsOf(whole, other);
  if (!arguments || !expected)
    return arguments ? expected.status() : arguments.status();
  auto isSame = [](const data::Argument &a, const data::Argument &b) {
    return a.name == b.name && a.dtype == b.dtype && a.sampleShape == b.sampleShape && a.isWhole == b.isWhole;
  };
  if (!std::ranges::equal(*arguments, *expected, isSame))
    return differs("an argument");
  if (program.outputs.size() != other.outputs.size())
    return differs("the number of outputs");
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const plan::Port &port = program.outputs[i], &of = other.outputs[i];
    if (port.name != of.name || port.values.size() != of.values.size())
      return differs(fmt::format("output '{}'", port.name));
    if (port.values.empty())
      continue;
    const plan::Value &value = plan.values[port.values.front()], &model = whole.values[of.values.front()];
    const bool hasRows = plan::hasSampleRows(plan, program, value);
    auto rowOf = [](const plan::Value &v) {
      return std::vector<int64_t>(v.globalShape.begin() + (v.globalShape.empty() ? 0 : 1), v.globalShape.end());
    };
    if (value.dtype != model.dtype || hasRows != plan::hasSampleRows(whole, other, model) ||
        (hasRows && rowOf(value) != rowOf(model)))
      return differs(fmt::format("output '{}'", port.name));
  }
  return Status::ok();
}

Status Job::readPlans() {
  auto whole = readPlan(planEntry);
  if (!whole)
    return whole.status();
  thePlan = std::move(*whole);
  for (const std::string &entry : package.entries()) {
    if (!entry.starts_with("plan-") || !entry.ends_with(".json"))
      continue;
    auto read = readPlan(entry);
    if (!read)
      return read.status();
    if (Status status = checkSmaller(thePlan, *read); !status)
      return Status::error(status.kind(), "{}: {}: {}", path(), entry, status.message());
    smaller.push_back(std::move(*read));
  }
  std::ranges::sort(smaller, {}, batchOf);
  return Status::ok();
}

Status Job::replicate(int64_t replicas) {
  if (replicas == 1)
    return Status::ok();
  if (!smaller.empty())
    return Status::error(ErrorKind::usage,
                         "{}: has {} batch sizes, which run on one rank: run it with -n 1, or compile it with one "
                         "--batch",
                         path(), smaller.size() + 1);
  auto made = plan::replicate(thePlan, replicas);
  if (!made)
    return Status::error(made.status().kind(), "{}: {}", path(), made.status().message());
  if (Status status = plan::verify(*made); !status)
    return Status::error(status.kind(), "{}: {} replicas of its plan: {}", path(), replicas, status.message());
  thePlan = std::move(*made);
  return Status::ok();
}

const plan::Plan &Job::planFor(int64_t samples) const {
  for (const plan::Plan &plan : smaller)
    if (batchOf(plan) >= samples)
      return plan;
  return thePlan;
}

/// "train.x86-64-v3.so" → x86-64-v3.
static std::string targetOfObject(const std::string &entry) {
  size_t dot = entry.find('.'), end = entry.size() - 3;
  return dot < end ? entry.substr(dot + 1, end - dot - 1) : "";
}

/// Every target of the package with what it needs of a processor. Without a list it asks for nothing beyond the
/// baseline; a job without kernels has only the list.
static std::map<std::string, std::string_view> needsOfTargets(const package::Package &package) {
  constexpr std::string_view listBegin = "target.", listEnd = ".txt";
  std::map<std::string, std::string_view> needs;
  for (const std::string &entry : package.entries())
    if (entry.ends_with(".so")) {
      needs.try_emplace(targetOfObject(entry));
    } else if (entry.starts_with(listBegin) && entry.ends_with(listEnd)) {
      auto listed = package.text(entry);
      needs[entry.substr(listBegin.size(), entry.size() - listBegin.size() - listEnd.size())] =
          listed ? *listed : std::string_view();
    }
  return needs;
}

Status Job::checkObjects(const std::string &wanted) {
  std::map<std::string, std::string_view> needs = needsOfTargets(package);
  if (needs.empty())
    return Status::error(ErrorKind::badInput, "{}: holds no compiled object; compile the model again", path());
  if (!wanted.empty() && !needs.contains(wanted)) {
    std::vector<std::string> names;
    for (const auto &[target, needed] : needs)
      names.push_back(target);
    return Status::error(ErrorKind::usage, "--target {}: {} was compiled for {}", wanted, path(),
                         fmt::join(names, ", "));
  }
  for (const auto &[target, needed] : needs) {
    if (!wanted.empty() && target != wanted)
      continue;
    if (std::string refusal = refusalOf(needed); !refusal.empty()) {
      refused += fmt::format("{}{} ({})", refused.empty() ? "" : ", ", target, refusal);
      continue;
    }
    runnable.push_back({target, 1 + size_t(std::count(needed.begin(), needed.end(), ',')), {}});
  }
  if (runnable.empty())
    return Status::error(ErrorKind::badInput,
                         "{} was compiled for {}. Compile it on this host, or with --target x86-64-v3", path(),
                         refused);
  // The target that asks for most of what the host has is the fastest. The order is the same on every host.
  std::stable_sort(runnable.begin(), runnable.end(),
                   [](const Objects &a, const Objects &b) { return a.numFeatures > b.numFeatures; });
  for (const std::string &entry : package.entries())
    for (Objects &objects : runnable)
      if (entry.ends_with(".so") && targetOfObject(entry) == objects.target) {
        auto bytes = package.entry(entry);
        DG_RETURN_IF_ERROR(bytes ? checkObject(*bytes, entry) : bytes.status());
        objects.entries.push_back(entry);
      }
  return Status::ok();
}

std::vector<std::string> Job::targets() const {
  std::vector<std::string> names;
  for (const Objects &objects : runnable)
    names.push_back(objects.target);
  return names;
}

Result<std::unique_ptr<KernelLibrary>> Job::loadKernels(const std::string &target) const {
  auto library = std::make_unique<ObjectLibrary>();
  for (const Objects &objects : runnable)
    if (objects.target == target)
      for (const std::string &entry : objects.entries) {
        auto bytes = package.copyOf(entry);
        DG_RETURN_IF_ERROR(bytes ? library->add(*bytes, entry) : bytes.status());
      }
  return std::unique_ptr<KernelLibrary>(std::move(library));
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

Result<std::string> Job::parameterTable() const {
  if (!package.has(parametersEntry))
    return std::string();
  auto text = package.text(parametersEntry);
  if (!text)
    return text.status();
  const std::string file = path() + ":" + parametersEntry;
  auto table = parseJson<nlohmann::ordered_json>(*text, file);
  if (!table)
    return table.status();
  if (!table->is_object() || !table->contains("parameters") || !(*table)["parameters"].is_array())
    return Status::error(ErrorKind::badInput,
                         "{}: expected an object with a list 'parameters'; compile the model again", file);
  return (*table)["parameters"].dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace dg::session
