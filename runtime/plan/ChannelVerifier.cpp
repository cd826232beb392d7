// SPDX-License-Identifier: Apache-2.0
// Channels: a communication that only one side knows is found here, before anything waits for it.
#include "runtime/plan/ChannelVerifier.h"
#include "runtime/plan/PlanIndices.h"

#include <map>

namespace dg::plan {

namespace {

std::string describe(const Plan &plan, TaskId id) {
  return fmt::format("ops[{}] ('{}', stage {})", id, plan.tasks[id].name, plan.tasks[id].stage);
}

/// The tasks of a program that communicate, chunk after chunk of each stage.
std::vector<TaskId> communications(const Plan &plan, const PlanFacts &facts, const Program &program) {
  std::vector<TaskId> found;
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage)
    for (ChunkId chunk : gatherUse(plan, facts, program, stage).chunks)
      for (TaskId task : plan.chunks[chunk].tasks)
        if (needsFinish(plan.tasks[task].kind) || plan.tasks[task].kind == TaskKind::send)
          found.push_back(task);
  return found;
}

Status checkPair(const Plan &plan, const PlanFacts &facts, TaskId sendId, TaskId receiveId) {
  const Task &send = plan.tasks[sendId], &receive = plan.tasks[receiveId];
  auto wrong = [&](std::string_view what) {
    return Status::error(ErrorKind::badInput, "plan: channel {}: {} and {} do not match: {}", send.channel,
                         describe(plan, sendId), describe(plan, receiveId), what);
  };
  if (send.stage == receive.stage || send.peerStage != receive.stage || receive.peerStage != send.stage)
    return wrong(fmt::format("the send goes from stage {} to {}, the receive from stage {} to {}", send.stage,
                             send.peerStage, receive.peerStage, receive.stage));
  const Value &from = plan.values[send.buffers[0]], &to = plan.values[receive.buffers[0]];
  // Not by shape: a reshaped value is the same buffer, and the two sides may know it under different shapes.
  if (from.bytes != to.bytes || from.dtype != to.dtype)
    return wrong(fmt::format("the send has {} bytes of {}[{}], the receive {} bytes of {}[{}]", from.bytes,
                             nameOf(from.dtype), fmt::join(from.shape, ","), to.bytes, nameOf(to.dtype),
                             fmt::join(to.shape, ",")));
  Phase sendPhase = plan.chunks[facts.chunkOf[sendId]].phase,
        receivePhase = plan.chunks[facts.chunkOf[receiveId]].phase;
  if (isPerMicrobatch(sendPhase) != isPerMicrobatch(receivePhase))
    return wrong(fmt::format("the send is in {}, the receive in {}: they do not happen equally often",
                             nameOf(sendPhase), nameOf(receivePhase)));
  return Status::ok();
}

Status matchSends(const Plan &plan, const PlanFacts &facts, const std::vector<TaskId> &tasks) {
  std::map<uint32_t, std::pair<TaskId, TaskId>> channels; // send, receive
  for (TaskId task : tasks) {
    if (isCollective(plan.tasks[task].kind))
      continue;
    auto &[send, receive] = channels.try_emplace(plan.tasks[task].channel, noId, noId).first->second;
    TaskId &side = plan.tasks[task].kind == TaskKind::send ? send : receive;
    if (side != noId)
      return Status::error(ErrorKind::badInput, "plan: channel {}: {} and {} are both {}; a channel has one of each",
                           plan.tasks[task].channel, describe(plan, side), describe(plan, task),
                           plan.tasks[task].kind == TaskKind::send ? "sends" : "receives");
    side = task;
  }
  for (const auto &[channel, pair] : channels) {
    if (pair.first == noId || pair.second == noId)
      return Status::error(ErrorKind::badInput, "plan: channel {}: {} has no matching {}", channel,
                           describe(plan, pair.first == noId ? pair.second : pair.first),
                           pair.first == noId ? "send" : "receive");
    DG_RETURN_IF_ERROR(checkPair(plan, facts, pair.first, pair.second));
  }
  return Status::ok();
}

/// Collectives over pipe join stages: the same one must stand once on each.
Status matchPipeCollectives(const Plan &plan, const PlanFacts &facts, const std::vector<TaskId> &tasks) {
  std::map<uint32_t, std::vector<TaskId>> groups;
  for (TaskId task : tasks)
    if (isCollective(plan.tasks[task].kind) && plan.tasks[task].axis == "pipe")
      groups[plan.tasks[task].channel].push_back(task);
  for (const auto &[channel, members] : groups) {
    const Task &first = plan.tasks[members.front()];
    for (size_t i = 0; i < members.size(); ++i) {
      const Task &task = plan.tasks[members[i]];
      bool same = task.kind == first.kind && task.stage == i &&
                  plan.values[task.buffers[0]].bytes == plan.values[first.buffers[0]].bytes &&
                  isPerMicrobatch(plan.chunks[facts.chunkOf[members[i]]].phase) ==
                      isPerMicrobatch(plan.chunks[facts.chunkOf[members.front()]].phase);
      if (!same)
        return Status::error(ErrorKind::badInput, "plan: {} and {} do not match as one collective over pipe",
                             describe(plan, members.front()), describe(plan, members[i]));
    }
    if (members.size() != plan.numStages())
      return Status::error(ErrorKind::badInput, "plan: {} is a collective over pipe on {} of {} stages",
                           describe(plan, members.front()), members.size(), plan.numStages());
  }
  return Status::ok();
}

Status checkOrder(const Plan &plan, const PlanFacts &facts, const std::vector<TaskId> &tasks) {
  std::map<std::pair<ChunkId, std::string>, TaskId> last;
  for (TaskId task : tasks) {
    if (!isCollective(plan.tasks[task].kind))
      continue;
    auto [at, isFirst] = last.try_emplace({facts.chunkOf[task], plan.tasks[task].axis}, task);
    if (!isFirst && plan.tasks[task].channel <= plan.tasks[at->second].channel)
      return Status::error(ErrorKind::badInput,
                           "plan: {} has position {} in the order of axis {}, but {} before it in its chunk has {}",
                           describe(plan, task), plan.tasks[task].channel, plan.tasks[task].axis,
                           describe(plan, at->second), plan.tasks[at->second].channel);
    at->second = task;
  }
  return Status::ok();
}

} // namespace

Status verifyChannels(const Plan &plan, const PlanFacts &facts, const Program &program) {
  std::vector<TaskId> tasks = communications(plan, facts, program);
  DG_RETURN_IF_ERROR(matchSends(plan, facts, tasks));
  DG_RETURN_IF_ERROR(matchPipeCollectives(plan, facts, tasks));
  return checkOrder(plan, facts, tasks);
}

} // namespace dg::plan
