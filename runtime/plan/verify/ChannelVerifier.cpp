// SPDX-License-Identifier: Apache-2.0
// Channels: a communication that only one side knows is found here, before anything waits for it.
#include "runtime/plan/verify/ChannelVerifier.h"
#include "runtime/plan/TaskTraits.h"

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
        if (isCommunication(plan.tasks[task].kind()))
          found.push_back(task);
  return found;
}

Status checkPair(const Plan &plan, const PlanFacts &facts, TaskId sendId, TaskId receiveId) {
  const Send &send = *plan.tasks[sendId].as<Send>();
  const Receive &receive = *plan.tasks[receiveId].as<Receive>();
  const uint32_t sender = plan.tasks[sendId].stage, receiver = plan.tasks[receiveId].stage;
  auto wrong = [&](std::string_view what) {
    return Status::error(ErrorKind::badInput, "plan: channel {}: {} and {} do not match: {}", send.channel,
                         describe(plan, sendId), describe(plan, receiveId), what);
  };
  if (sender == receiver || send.peerStage != receiver || receive.peerStage != sender)
    return wrong(fmt::format("the send goes from stage {} to {}, the receive from stage {} to {}", sender,
                             send.peerStage, receive.peerStage, receiver));
  const Value &from = plan.values[send.value], &to = plan.values[receive.value];
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
    if (isCollective(plan.tasks[task].kind()))
      continue;
    const uint32_t channel = channelOf(plan.tasks[task]);
    const bool isSend = plan.tasks[task].as<Send>();
    auto &[send, receive] = channels.try_emplace(channel, noId, noId).first->second;
    TaskId &side = isSend ? send : receive;
    if (side != noId)
      return Status::error(ErrorKind::badInput, "plan: channel {}: {} and {} are both {}; a channel has one of each",
                           channel, describe(plan, side), describe(plan, task), isSend ? "sends" : "receives");
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
    if (isCollective(plan.tasks[task].kind()) && axisOf(plan.tasks[task]) == Axis::pipe)
      groups[channelOf(plan.tasks[task])].push_back(task);
  for (const auto &[channel, members] : groups) {
    const Task &first = plan.tasks[members.front()];
    for (size_t i = 0; i < members.size(); ++i) {
      const Task &task = plan.tasks[members[i]];
      bool same = task.kind() == first.kind() && task.stage == i &&
                  plan.values[valuesOf(task)[0]].bytes == plan.values[valuesOf(first)[0]].bytes &&
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
  std::map<std::pair<ChunkId, Axis>, TaskId> last;
  for (TaskId task : tasks) {
    if (!isCollective(plan.tasks[task].kind()))
      continue;
    const Axis axis = *axisOf(plan.tasks[task]);
    const uint32_t order = channelOf(plan.tasks[task]);
    auto [at, isFirst] = last.try_emplace({facts.chunkOf[task], axis}, task);
    if (!isFirst && order <= channelOf(plan.tasks[at->second]))
      return Status::error(
          ErrorKind::badInput, "plan: {} has position {} in the order of axis {}, but {} before it in its chunk has {}",
          describe(plan, task), order, nameOf(axis), describe(plan, at->second), channelOf(plan.tasks[at->second]));
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
