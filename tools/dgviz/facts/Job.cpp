// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/Job.h"

#include "runtime/package/Package.h"

#include <fstream>

namespace dg::viz {

bool looksLikePackage(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char magic[2] = {};
  return file.read(magic, 2) && magic[0] == 'P' && magic[1] == 'K';
}

Result<Job> readJob(const std::string &path) {
  Result<package::Package> package = package::Package::open(path);
  if (!package)
    return package.status();
  Result<std::string_view> text = package->text("plan.json");
  if (!text)
    return text.status();
  Result<plan::Plan> plan = plan::fromJson(std::string(*text));
  if (!plan)
    return Status::error(plan.status().kind(), "{}: {}", path, plan.status().message());
  Job job{path, std::move(*plan), {}, {}, {}, {}, {}};
  for (const std::string &entry : package->entries()) {
    if (!entry.starts_with("plan-") || !entry.ends_with(".json"))
      continue;
    Result<std::string_view> other = package->text(entry);
    Result<plan::Plan> smaller = other ? plan::fromJson(std::string(*other)) : Result<plan::Plan>(other.status());
    if (!smaller)
      return Status::error(smaller.status().kind(), "{}: {}: {}", path, entry, smaller.status().message());
    if (const plan::Program *program = smaller->findProgram(plan::ProgramKind::infer))
      job.sizes[program->batch] = smaller->predicted.stepUs;
  }
  if (package->has("parameters.json")) {
    Result<std::vector<Parameter>> parameters = parametersFromJson(std::string(*package->text("parameters.json")));
    if (!parameters)
      return Status::error(parameters.status().kind(), "{}: {}", path, parameters.status().message());
    job.parameters = std::move(*parameters);
  }
  if (package->has("phases.json")) {
    Result<std::vector<CompilerPhase>> phases = phasesFromJson(std::string(*package->text("phases.json")));
    if (!phases)
      return Status::error(phases.status().kind(), "{}: {}", path, phases.status().message());
    job.phases = std::move(*phases);
  }
  if (package->has("explain.json")) {
    Result<SearchReasons> reasons = reasonsFromJson(std::string(*package->text("explain.json")));
    if (!reasons)
      return Status::error(reasons.status().kind(), "{}: {}", path, reasons.status().message());
    job.reasons = std::move(*reasons);
  }
  if (package->has("cluster.json")) {
    Result<partitioner::Cluster> cluster =
        partitioner::parseCluster(std::string(*package->text("cluster.json")), path + ": cluster.json");
    if (!cluster)
      return cluster.status();
    job.cluster = std::move(*cluster);
  }
  return job;
}

} // namespace dg::viz
