// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/Report.h"

#include "partitioner/predict/Simulator.h"
#include "runtime/plan/Replication.h"

#include <algorithm>

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
  if (job.cluster) {
    partitioner::Cluster cluster = *job.cluster;
    if (numRanks > cluster.numDevices()) // more of the same machines
      cluster.numNodes = (numRanks + cluster.devicesPerNode - 1) / cluster.devicesPerNode;
    return Machines{partitioner::CostModel(cluster), Prediction::own};
  }
  return Machines{partitioner::CostModel(partitioner::hostCluster(numRanks)), Prediction::scaled};
}

/// Several replicas of the job, as the one with the most micro-batches sees them. What the plan was predicted to take
/// is scaled as the simulated times are.
Status replicate(Job &job, int64_t replicas, const std::string &cluster) {
  if (replicas == 1)
    return Status::ok();
  Result<plan::Plan> several = plan::replicate(job.plan, replicas);
  if (!several)
    return Status::error(several.status().kind(), "{}: {}", job.path, several.status().message());
  auto stepUsOf = [&](const plan::Plan &plan) -> Result<double> {
    Result<Machines> machines = machinesFor({job.path, plan, {}, {}, job.cluster, {}}, cluster);
    if (!machines)
      return machines.status();
    Result<plan::Predicted> predicted = partitioner::simulate(plan, machines->costs);
    return predicted ? Result<double>(predicted->stepUs) : predicted.status();
  };
  Result<double> one = stepUsOf(job.plan), all = stepUsOf(*several);
  if (!one || !all)
    return one ? all.status() : one.status();
  job.plan = std::move(*several);
  if (*one > 0)
    job.plan.predicted.stepUs *= *all / *one;
  for (plan::Program &program : job.plan.programs)
    if (!program.dealt.empty())
      program = plan::programOf(job.plan, program, plan::longestReplica(program));
  return Status::ok();
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
  DG_RETURN_IF_ERROR(replicate(*before, inputs.replicas, inputs.cluster));
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
  DG_RETURN_IF_ERROR(replicate(*job, inputs.replicas, inputs.cluster));
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
