// SPDX-License-Identifier: Apache-2.0
// The table of schedules. To add one: a file beside this one that defines its descriptor, and its name in the two lines
// below. The table is explicit because a linker drops objects of a static library that only register themselves.
#include "partitioner/schedule/ScheduleDescriptor.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace dg::partitioner {

extern const ScheduleDescriptor gpipe, oneForwardOneBackward, interleaved, zeroBubbleH1, zeroBubbleV;
static constexpr const ScheduleDescriptor *table[] = {&gpipe, &oneForwardOneBackward, &interleaved, &zeroBubbleH1,
                                                      &zeroBubbleV};

/// More chunks than this are taken for a slip of the pen.
static constexpr uint32_t mostChunks = 1024;

std::span<const ScheduleDescriptor *const> allSchedules() { return table; }

const ScheduleDescriptor &defaultSchedule() { return oneForwardOneBackward; }

std::vector<const ScheduleDescriptor *> searchedSchedules() {
  std::vector<const ScheduleDescriptor *> searched;
  std::copy_if(std::begin(table), std::end(table), std::back_inserter(searched),
               [](const ScheduleDescriptor *schedule) { return schedule->isSearched; });
  return searched;
}

const ScheduleDescriptor *findSchedule(std::string_view name) {
  for (const ScheduleDescriptor *schedule : table)
    if (schedule->name == name)
      return schedule;
  return nullptr;
}

std::string listScheduleNames(std::string_view chunks) {
  std::string names;
  for (const ScheduleDescriptor *schedule : table)
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", schedule->name, schedule->takesChunks() ? chunks : "");
  return names;
}

Result<ScheduleForm> parseSchedule(std::string_view text) {
  const size_t colon = text.find(':');
  const ScheduleDescriptor *schedule = findSchedule(text.substr(0, colon));
  if (!schedule)
    return Status::error(ErrorKind::usage, "unknown schedule '{}'; use one of: {}", text.substr(0, colon),
                         listScheduleNames());
  ScheduleForm form{schedule, schedule->chunksPerStage, colon != std::string_view::npos};
  if (!form.hasChunks)
    return form;
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  auto [last, error] = std::from_chars(begin, end, form.chunksPerStage);
  if (!schedule->takesChunks() || error != std::errc() || last != end || form.chunksPerStage < 1 ||
      form.chunksPerStage > mostChunks)
    return Status::error(ErrorKind::usage, "--schedule {}: expected chunks of a rank, as interleaved:2", text);
  return form;
}

std::string ScheduleDescriptor::textOf(uint32_t chunks) const {
  return takesChunks() ? fmt::format("{}:{}", name, chunks) : std::string(name);
}

Status ScheduleDescriptor::check(const PipelineShape &shape) const {
  // A step of one micro-batch applies its gradients where they are made: there is no update apart, and no backward pass
  // that could be cut.
  if (shape.numMicrobatches == 1 && (splitsBackward || shape.chunksPerStage > 1))
    return Status::error(ErrorKind::usage,
                         "schedule '{}' with one micro-batch to a step: give --microbatches, at least 2",
                         textOf(shape.chunksPerStage));
  return constraint ? constraint(shape) : Status::ok();
}

} // namespace dg::partitioner
