// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/Report.h"

namespace dg::viz {

namespace {

/// What times are predicted on.
struct Machines {
  partitioner::CostModel costs;
  Prediction prediction;
};

Result<Machines> machinesFor(const Job &job, const std::string &named) {
  auto numRanks = uint32_t(job.plan.mesh.numRanks());
  if (!named.empty()) {
    Result<partitioner::Cluster> found = partitioner::findCluster(named);
    if (!found)
      return found.status();
    return Machines{partitioner::CostModel(found->forRanks(numRanks)), Prediction::elsewhere};
  }
  if (job.cluster)
    return Machines{partitioner::CostModel(*job.cluster), Prediction::own};
  return Machines{partitioner::CostModel(partitioner::hostCluster(numRanks)), Prediction::scaled};
}

Status fillPrograms(Report &report, const Machines &machines) {
  const partitioner::CostModel &costs = machines.costs;
  report.clusterName = costs.cluster().name;
  report.isOwnCluster = machines.prediction != Prediction::elsewhere;
  for (const plan::Program &program : report.job->plan.programs) {
    Result<ProgramView> view = viewOf(report.job->plan, program, costs, machines.prediction, report.trace.get());
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
  Result<Machines> machines = machinesFor(*before, inputs.cluster);
  if (!machines)
    return machines.status();
  for (const ProgramView &after : report.programs)
    if (const plan::Program *program = before->plan.findProgram(after.program->kind)) {
      Result<ProgramView> view = viewOf(before->plan, *program, machines->costs, machines->prediction, nullptr);
      if (!view)
        return view.status();
      report.differences.push_back(
          {plan::nameOf(program->kind), compare(before->plan, *view, report.job->plan, after)});
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
  Result<Machines> machines = machinesFor(*report.job, inputs.cluster);
  if (!machines)
    return machines.status();
  DG_RETURN_IF_ERROR(fillPrograms(report, *machines));
  if (!inputs.before.empty())
    DG_RETURN_IF_ERROR(fillDifferences(report, inputs));
  return report;
}

Result<Report> makeReport(plan::Plan plan) {
  Report report;
  report.job = std::make_unique<Job>(Job{"", std::move(plan), {}, {}, {}, {}, {}});
  Result<Machines> machines = machinesFor(*report.job, "");
  if (!machines)
    return machines.status();
  DG_RETURN_IF_ERROR(fillPrograms(report, *machines));
  return report;
}

} // namespace dg::viz
