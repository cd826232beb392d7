// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/Report.h"

namespace dg::viz {

namespace {

Result<partitioner::CostModel> costsFor(const plan::Plan &plan, const std::string &cluster) {
  if (cluster.empty())
    return partitioner::CostModel(partitioner::hostCluster(uint32_t(plan.mesh.numRanks())));
  Result<partitioner::Cluster> found = partitioner::findCluster(cluster);
  if (!found)
    return found.status();
  return partitioner::CostModel(std::move(*found));
}

Status fillPrograms(Report &report, const partitioner::CostModel &costs) {
  report.clusterName = costs.cluster().name;
  for (const plan::Program &program : report.job->plan.programs) {
    Result<ProgramView> view = viewOf(report.job->plan, program, costs, report.trace.get());
    if (!view)
      return view.status();
    Result<Advice> advice = adviseOn(report.job->plan, *view, costs);
    if (!advice)
      return advice.status();
    report.programs.push_back(std::move(*view));
    report.advice.push_back(std::move(*advice));
  }
  return Status::ok();
}

Status fillDifferences(Report &report, const ReportInputs &inputs) {
  Result<Job> before = readJob(inputs.before);
  if (!before)
    return before.status();
  report.before = inputs.before;
  Result<partitioner::CostModel> costs = costsFor(before->plan, inputs.cluster);
  if (!costs)
    return costs.status();
  for (const ProgramView &after : report.programs)
    if (const plan::Program *program = before->plan.findProgram(after.program->name)) {
      Result<ProgramView> view = viewOf(before->plan, *program, *costs, nullptr);
      if (!view)
        return view.status();
      report.differences.push_back({program->name, compare(before->plan, *view, report.job->plan, after)});
    }
  return Status::ok();
}

} // namespace

Result<Report> makeReport(const ReportInputs &inputs) {
  Report report;
  Result<Job> job = readJob(inputs.job);
  if (!job)
    return job.status();
  report.job = std::make_unique<Job>(std::move(*job));
  if (!inputs.trace.empty()) {
    Result<Trace> trace = readTrace(inputs.trace, report.job->plan);
    if (!trace)
      return trace.status();
    report.trace = std::make_unique<Trace>(std::move(*trace));
  }
  Result<partitioner::CostModel> costs = costsFor(report.job->plan, inputs.cluster);
  if (!costs)
    return costs.status();
  DG_RETURN_IF_ERROR(fillPrograms(report, *costs));
  if (!inputs.before.empty())
    DG_RETURN_IF_ERROR(fillDifferences(report, inputs));
  return report;
}

Result<Report> makeReport(plan::Plan plan) {
  Report report;
  report.job = std::make_unique<Job>(Job{"", std::move(plan), {}, {}});
  Result<partitioner::CostModel> costs = costsFor(report.job->plan, "");
  if (!costs)
    return costs.status();
  DG_RETURN_IF_ERROR(fillPrograms(report, *costs));
  return report;
}

} // namespace dg::viz
