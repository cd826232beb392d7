// SPDX-License-Identifier: Apache-2.0
// Plain lines with units; nothing depends on a terminal.
#include "tools/dgviz/TextSummary.h"
#include "tools/dgviz/FlowGraph.h"
#include "tools/dgviz/PlanNumbers.h"

#include <algorithm>

namespace dg::viz {

using namespace dg::plan;

namespace {

constexpr size_t timelineColumns = 88, maxTimelineRows = 32;

std::string printable(const std::string &text) {
  std::string result = text;
  for (char &c : result)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  return result;
}

class TextWriter {
public:
  explicit TextWriter(const Report &report) : report(report), plan(report.job->plan) {}

  std::string write() {
    header();
    for (size_t i = 0; i < report.programs.size(); ++i)
      writeProgram(report.programs[i], report.advice[i]);
    for (const auto &[name, difference] : report.differences)
      writeDifference(name, difference);
    return std::move(out);
  }

private:
  template <typename... Args> void line(fmt::format_string<Args...> format, Args &&...args) {
    out += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void header() {
    line("model      {} ({}), {} parameters, {}", printable(plan.model.name), printable(plan.model.source),
         countText(double(plan.model.parameters)),
         plan.model.optimizer.empty() ? "no optimizer" : printable(plan.model.optimizer));
    line("mesh       pipe={} data={} tensor={}: {} ranks", plan.mesh.sizeOf("pipe"), plan.mesh.sizeOf("data"),
         plan.mesh.sizeOf("tensor"), plan.mesh.numRanks());
    line("predicted  step {}, compute {}, communication {}, bubble {:.1f} %", timeText(plan.predicted.stepUs),
         timeText(plan.predicted.computeUs), timeText(plan.predicted.commUs), plan.predicted.bubble * 100);
    if (plan.search.lowerBoundUs > 0)
      line("search     {}, lower bound {}, gap {:.1f} %, {:.1f} s", printable(plan.search.stopped),
           timeText(plan.search.lowerBoundUs), plan.search.gap * 100, plan.search.seconds);
    else
      line("search     {}: no bound, no alternatives", printable(plan.search.stopped));
    for (const Alternative &alternative : plan.search.alternatives)
      line("           instead of {}: step {}, peak {}", printable(alternative.description),
           timeText(alternative.stepUs), bytesText(double(alternative.peakBytes)));
    std::vector<std::vector<KindMemory>> memory = memoryByKind(plan);
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      std::string kinds;
      for (const KindMemory &kind : memory[stage])
        kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind.kind, bytesText(double(kind.bytes)));
      line("stage {:<4} arena {} ({} kept): {}", stage, bytesText(double(plan.memory[stage].arenaBytes)),
           bytesText(double(plan.memory[stage].persistentBytes)), kinds);
    }
  }

  void writeProgram(const ProgramView &view, const Advice &advice) {
    const Program &program = *view.program;
    line("");
    line("program    {}: batch {}, {} micro-batches, schedule {}", printable(program.name), program.batch,
         program.microbatches, program.schedule.empty() ? "none" : printable(program.schedule));
    line("limit      {}", advice.limit);
    for (const std::string &fact : advice.facts)
      line("           {}", printable(fact));
    for (size_t i = 0; i < advice.changes.size(); ++i) {
      const Change &change = advice.changes[i];
      line("try {}      {}: up to {} of {} less. {}", i + 1, printable(change.title), timeText(change.gainUs),
           timeText(view.figures.stepUs), printable(change.how));
    }
    if (advice.changes.empty())
      line("try        nothing known would save more than 1 % of the step");
    for (const Traffic &traffic : trafficOf(plan, program))
      line("traffic    stage {}: {} over {}: {} calls, {} a step", traffic.stage, traffic.op, printable(traffic.axis),
           traffic.calls, bytesText(double(traffic.bytes)));
    line("timeline   predicted, {}; 0-9 forward, a-z backward of a micro-batch, U update, ~ communication, . idle",
         timeText(view.predicted.totalUs));
    drawRows(view, view.predicted, "stage");
    if (!view.trace)
      return;
    line("timeline   measured, step {}, {}", view.trace->shownStep, timeText(view.measured.totalUs));
    drawRows(view, view.measured, "rank");
  }

  static char letterFor(Work work, uint32_t microbatch) {
    switch (work) {
    case Work::forward:
      return char('0' + microbatch % 10);
    case Work::inputGradient:
    case Work::weightGradient:
      return char('a' + microbatch % 26);
    case Work::update:
      return 'U';
    default:
      return '~';
    }
  }

  /// A cell shows computation before communication, and the later of two ops.
  void drawRows(const ProgramView &view, const Timeline &timeline, const char *what) {
    std::vector<std::string> rows(timeline.numRows, std::string(timelineColumns, '.'));
    double perColumn = std::max(timeline.totalUs, 1e-9) / timelineColumns;
    for (bool computes : {false, true})
      for (const TimelineEvent &event : timeline.events) {
        Work work = view.work[event.task];
        if ((work != Work::communication) != computes || work == Work::other)
          continue;
        auto from = size_t(event.startUs / perColumn), to = size_t(event.endUs / perColumn);
        for (size_t column = from; column <= to && column < timelineColumns; ++column)
          if (event.endUs - event.startUs >= perColumn / 2 || rows[event.row][column] == '.')
            rows[event.row][column] = letterFor(work, event.microbatch);
      }
    for (size_t row = 0; row < std::min(rows.size(), maxTimelineRows); ++row)
      line("{:>6} {:<4}{}", what, row, rows[row]);
    if (rows.size() > maxTimelineRows)
      line("           and {} more", rows.size() - maxTimelineRows);
  }

  static std::string valueText(const FigureChange &change, double value) {
    switch (change.unit) {
    case Unit::time:
      return timeText(value);
    case Unit::bytes:
      return bytesText(value);
    case Unit::share:
      return fmt::format("{:.1f} %", value * 100);
    case Unit::count:
      return fmt::format("{}", value);
    }
    return "";
  }

  void writeDifference(const std::string &name, const PlanDifference &difference) {
    line("");
    line("difference of program {}, from {} to this plan", printable(name), printable(report.before));
    for (const std::vector<FigureChange> *list : {&difference.figures, &difference.traffic})
      for (const FigureChange &change : *list)
        line("           {:<26} {:>12} -> {:>12}", printable(change.name), valueText(change, change.before),
             valueText(change, change.after));
    line("ops        {} the same, {} moved, {} added, {} removed", difference.numSame, difference.numMoved,
         difference.numAdded, difference.numRemoved);
  }

  const Report &report;
  const Plan &plan;
  std::string out;
};

} // namespace

std::string textSummary(const Report &report) { return TextWriter(report).write(); }

} // namespace dg::viz
