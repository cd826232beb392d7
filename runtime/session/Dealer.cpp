// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/Dealer.h"

#include "runtime/session/Evaluation.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace dg::session {

/// After so many steps, and at every epoch that has as many. The first steps touch memory for the first time and say
/// little, so there is a second look soon.
static constexpr int64_t firstLook = 10, secondLook = 40, leastMeasured = 9;

Dealer::Dealer(const RankRun &run, const DealRule &rule, data::Feeder &feeder)
    : run(run), rule(rule), feeder(feeder), program(indexOfProgram(run.plan, plan::ProgramKind::train)),
      isOn(run.plan.mesh.replicas > 1) {}

Status Dealer::begin(int64_t step) {
  if (!isOn)
    return Status::ok();
  return dealTo(rule.kind == DealRule::Kind::given ? rule.sharesAt(step) : run.plan.programs[program].dealt, step);
}

void Dealer::reportBegin(int64_t step) const {
  if (isOn && rule.kind != DealRule::Kind::even)
    report(step, {});
}

void Dealer::hasRun() {
  if (++steps == 1)
    return;
  microbatchesUs += std::chrono::duration<double, std::micro>(run.executor.microbatchesTime()).count();
  ++stepsMeasured;
}

Status Dealer::dealTo(const Shares &next, int64_t step) {
  plan::Program dealt;
  dealt.dealt = next;
  if (next != run.plan.programs[program].dealt) {
    plan::Plan other = run.plan;
    other.programs[program].dealt = next;
    DG_RETURN_IF_ERROR(plan::verify(other));
  }
  const auto own = dealt.microbatchesOf(run.at().replica);
  run.executor.takeMicrobatches(program, own);
  feeder.takeMicrobatches({own[0], int64_t(own[1]) - own[0]});
  repeat += (repeat.empty() ? "" : fmt::format(",{}:", step)) + nameOf(next);
  shares = next;
  stepsMeasured = 0, microbatchesUs = 0;
  return Status::ok();
}

void Dealer::report(int64_t step, const std::vector<double> &microbatchUs) const {
  DealInfo info;
  info.step = step;
  info.shares = shares;
  info.microbatchUs = microbatchUs;
  info.repeat = repeat;
  run.reporter.dealt(info);
}

Result<std::vector<double>> Dealer::measure() {
  const double mine = microbatchesUs / double(stepsMeasured) / double(shares[size_t(run.at().replica)]);
  auto all = run.gather(std::string(reinterpret_cast<const char *>(&mine), sizeof mine));
  if (!all)
    return all.status();
  // All ranks of a replica wait for each other, so the slowest tells.
  std::vector<double> microbatchUs(shares.size(), 0);
  for (size_t rank = 0; rank < all->size(); ++rank) {
    double theirs = 0;
    std::memcpy(&theirs, (*all)[rank].data(), std::min(sizeof theirs, (*all)[rank].size()));
    double &us = microbatchUs[size_t(run.plan.mesh.coordinatesOf(int64_t(rank)).replica)];
    us = std::max(us, theirs);
  }
  return microbatchUs;
}

Result<bool> Dealer::redeal(int64_t step, bool isEpochsBegin, bool &hasPeerFailed) {
  if (!isOn || rule.kind == DealRule::Kind::even)
    return false;
  std::vector<double> microbatchUs;
  Shares next = shares;
  if (rule.kind == DealRule::Kind::given) {
    next = rule.sharesAt(step);
  } else {
    if (stepsMeasured < leastMeasured || !(isEpochsBegin || steps == firstLook || steps == secondLook))
      return false;
    auto measured = measure();
    if (!measured) {
      hasPeerFailed = true;
      return measured.status();
    }
    // What was known counts as much, so that one slow moment does not change much.
    for (size_t i = 0; i < known.size(); ++i)
      (*measured)[i] = (known[i] + (*measured)[i]) / 2;
    known = microbatchUs = std::move(*measured);
    stepsMeasured = 0, microbatchesUs = 0;
    const Shares best = dealBySpeed(run.plan.programs[program].microbatches, microbatchUs);
    if (isWorthIt(shares, best, microbatchUs))
      next = best;
  }
  if (next == shares)
    return false;
  DG_RETURN_IF_ERROR(dealTo(next, step));
  report(step, microbatchUs);
  return true;
}

} // namespace dg::session
