// SPDX-License-Identifier: Apache-2.0
// Events are taken out while the text is parsed: a trace of a hundred steps has hundreds of megabytes, its events some
// ten.
#include "tools/dgviz/time/Trace.h"

#include "runtime/support/FileReading.h"
#include "runtime/support/Json.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace dg::viz {

using Json = nlohmann::json;

namespace {

constexpr uint32_t maxLanes = 1024;

class TraceReader {
public:
  TraceReader(const std::string &path, const plan::Plan &plan) : path(path), plan(plan) {}

  Result<Trace> read() {
    auto text = readText(path, JsonBounds().bytes);
    if (!text)
      return Status::error(ErrorKind::badInput, "{}; give the file that dgrun --trace wrote", text.status().message());
    auto rest = parseJson(*text, path, [this](int depth, Json::parse_event_t event, Json &parsed) {
      if (event == Json::parse_event_t::key && depth == 1)
        isInEvents = parsed == "traceEvents", hasEvents |= isInEvents;
      if (event != Json::parse_event_t::object_end || depth != 2 || !isInEvents)
        return true;
      if (failure)
        take(parsed);
      return false;
    });
    if (!rest || !hasEvents)
      return Status::error(ErrorKind::badInput,
                           "{}: is no whole trace: expected the JSON that dgrun --trace writes, with \"traceEvents\"{}",
                           path, rest ? "" : " (" + rest.status().message() + ")");
    if (!failure)
      return failure;
    if (steps.empty())
      return Status::error(ErrorKind::badInput, "{}: has no event of an op: run at least one step with --trace", path);
    return choose();
  }

private:
  void take(const Json &event) {
    if (!event.contains("ph") || event["ph"] != "X")
      return;
    ++numEvents;
    const Json args = event.value("args", Json::object());
    auto number = [&](const Json &object, const char *key, double most) -> double {
      auto found = object.find(key);
      if (found != object.end() && found->is_number() && found->get<double>() >= 0 && found->get<double>() <= most)
        return found->get<double>();
      if (failure)
        failure = Status::error(ErrorKind::badInput,
                                "{}: event {} has no number from 0 to {} under \"{}\": expected what dgrun --trace of "
                                "this version writes",
                                path, numEvents, most, key);
      return 0;
    };
    double start = number(event, "ts", 1e18), length = number(event, "dur", 1e15);
    auto rank = uint32_t(number(event, "pid", double(plan.mesh.numRanks() - 1)));
    auto lane = uint32_t(number(event, "tid", maxLanes));
    auto task = uint32_t(number(args, "op", double(std::numeric_limits<uint32_t>::max())));
    auto microbatch = uint32_t(number(args, "microbatch", 1 << 17));
    auto step = int64_t(number(args, "step", 1e15));
    if (!failure)
      return;
    auto text = [](const Json &object, const char *key) {
      auto found = object.find(key);
      return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    if (task >= plan.tasks.size() || plan.tasks[task].name != text(event, "name")) {
      failure = Status::error(
          ErrorKind::badInput,
          "{}: is a trace of another job: its op {} is '{}', but the plan's {}: trace the job that is drawn", path,
          task, text(event, "name"),
          task >= plan.tasks.size() ? fmt::format("last one is {}", plan.tasks.size() - 1)
                                    : fmt::format("is '{}'", plan.tasks[task].name));
      return;
    }
    steps[text(args, "program")][step].push_back({task, microbatch, rank, lane, start, start + length});
  }

  Result<Trace> choose() {
    Trace trace{path, {}};
    for (auto &[name, events] : steps) {
      std::optional<plan::ProgramKind> kind = enumNamed<plan::ProgramKind>(name);
      if (!kind || !plan.findProgram(*kind))
        return Status::error(ErrorKind::badInput, "{}: is a trace of another job: the plan has no program '{}'", path,
                             name);
      MeasuredProgram &program = trace.programs[*kind];
      std::vector<std::pair<double, int64_t>> byLength;
      for (auto &[step, own] : events) {
        auto [first, last] = limits(own);
        program.steps.push_back({step, last - first});
        if (events.size() == 1 || program.steps.size() > 1) // the first one is warming up
          byLength.push_back({last - first, step});
      }
      std::sort(byLength.begin(), byLength.end());
      program.shownStep = byLength[byLength.size() / 2].second;
      program.timeline = timelineOf(std::move(events[program.shownStep]));
    }
    return trace;
  }

  static std::pair<double, double> limits(const std::vector<TimelineEvent> &events) {
    double first = events[0].startUs, last = events[0].endUs;
    for (const TimelineEvent &event : events) {
      first = std::min(first, event.startUs);
      last = std::max(last, event.endUs);
    }
    return {first, last};
  }

  Timeline timelineOf(std::vector<TimelineEvent> events) const {
    Timeline timeline;
    auto [first, last] = limits(events);
    timeline.totalUs = last - first;
    timeline.numRows = uint32_t(plan.mesh.numRanks());
    timeline.numLanes = 0;
    for (TimelineEvent &event : events) {
      event.startUs -= first;
      event.endUs -= first;
      timeline.numLanes = std::max(timeline.numLanes, event.lane + 1);
    }
    std::sort(events.begin(), events.end(), [](const TimelineEvent &a, const TimelineEvent &b) {
      return std::tie(a.startUs, a.row, a.lane, a.task) < std::tie(b.startUs, b.row, b.lane, b.task);
    });
    timeline.events = std::move(events);
    findMeetings(plan, timeline);
    return timeline;
  }

  const std::string &path;
  const plan::Plan &plan;
  bool isInEvents = false, hasEvents = false;
  size_t numEvents = 0;
  Status failure = Status::ok();
  std::map<std::string, std::map<int64_t, std::vector<TimelineEvent>>> steps;
};

} // namespace

Result<Trace> readTrace(const std::string &path, const plan::Plan &plan) { return TraceReader(path, plan).read(); }

} // namespace dg::viz
