// SPDX-License-Identifier: Apache-2.0
// Plain lines with units; nothing depends on a terminal.
#include "tools/dgviz/TextSummary.h"

#include "runtime/plan/SavedValues.h"
#include "tools/dgviz/FlowGraph.h"
#include "tools/dgviz/facts/PlanNumbers.h"

#include <algorithm>
#include <array>
#include <map>

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
    std::map<std::string, size_t> roles;
    for (const Parameter &parameter : report.job->parameters)
      ++roles[parameter.role];
    for (const auto &[role, count] : roles)
      line("tensors    {} {}", count, printable(role));
    for (const Parameter &parameter : report.job->parameters)
      if (parameter.readers.size() > 1) {
        std::string readers;
        for (const std::string &reader : parameter.readers)
          readers += (readers.empty() ? "" : ", ") + printable(reader);
        line("           {} ({}) is shared by {}", printable(parameter.name), printable(parameter.type), readers);
      }
    line("mesh       {}pipe={} data={} tensor={}: {} ranks",
         plan.mesh.replicas > 1 ? fmt::format("replica={} ", plan.mesh.replicas) : "", plan.mesh.sizeOf(Axis::pipe),
         plan.mesh.sizeOf(Axis::data), plan.mesh.sizeOf(Axis::tensor), plan.mesh.numRanks());
    for (const ProgramView &view : report.programs)
      if (isPredictedProgram(plan, *view.program))
        line("predicted  step {}, compute {}, communication {}, bubble {:.1f} %, on {}", timeText(view.figures.stepUs),
             timeText(view.figures.computeUs), timeText(view.figures.commUs), view.figures.bubble * 100,
             printable(report.clusterName));
    for (const auto &[samples, stepUs] : report.job->sizes)
      line("size       {} samples: step {}", samples, timeText(stepUs));
    if (!report.isOwnCluster)
      line("           the plan was made for other machines, where its step takes {}", timeText(plan.predicted.stepUs));
    if (plan.search.lowerBoundUs > 0) {
      // The search judges by closed forms; the plan that it chose is then compiled and predicted op by op.
      line("search     {} in {:.1f} s; it estimated this plan at {}, {:.1f} % above the bound of {} for all plans",
           printable(plan.search.stopped), plan.search.seconds,
           timeText(plan.search.lowerBoundUs * (1 + plan.search.gap)), plan.search.gap * 100,
           timeText(plan.search.lowerBoundUs));
      line("           compiled and predicted op by op it is {}: estimates compare with each other only",
           timeText(plan.predicted.stepUs));
    } else
      line("search     {}: no bound, no alternatives", printable(plan.search.stopped));
    for (const Alternative &alternative : plan.search.alternatives)
      line("           instead of {}: estimated at {}, peak {}", printable(alternative.description),
           timeText(alternative.stepUs), bytesText(double(alternative.peakBytes)));
    std::vector<std::vector<KindMemory>> memory = memoryByKind(plan);
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      std::string kinds;
      for (const KindMemory &kind : memory[stage])
        kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind.kind, bytesText(double(kind.bytes)));
      if (plan.memory[stage].device != DeviceKind::cpu)
        kinds += fmt::format("{}on {}", kinds.empty() ? "" : ", ", nameOf(plan.memory[stage].device));
      line("stage {:<4} arena {} ({} kept): {}", stage, bytesText(double(plan.memory[stage].arenaBytes)),
           bytesText(double(plan.memory[stage].persistentBytes)), kinds);
      if (plan.findProgram(ProgramKind::train))
        line("           a save during training copies {} more", bytesText(double(plan::saveCopyBytes(plan, stage))));
    }
  }

  void writeProgram(const ProgramView &view, const Advice &advice) {
    const Program &program = *view.program;
    line("");
    if (program.role != Role::worker)
      line("role       {}", nameOf(program.role));
    line("program    {}: batch {}, {} micro-batch{}, schedule {}", plan::nameOf(program.kind), program.batch,
         program.microbatches, program.microbatches == 1 ? "" : "es",
         program.schedule.empty() ? "none" : printable(program.schedule));
    if (!program.dealt.empty())
      line("           dealt to {} replicas: {}; what follows is of the first", program.dealt.size(),
           fmt::join(program.dealt, ", "));
    line("limit      {}", advice.limit);
    for (const std::string &fact : advice.facts)
      line("           {}", printable(fact));
    for (size_t i = 0; i < advice.changes.size(); ++i) {
      const Change &change = advice.changes[i];
      line("try {}      {}: {} of {} less. {}", i + 1, printable(change.title), timeText(change.gainUs),
           timeText(change.ofUs), printable(change.how));
    }
    if (advice.changes.empty())
      line("try        nothing known would save more than 1 % of the step");
    for (const Traffic &traffic : trafficOf(plan, program))
      line("traffic    stage {}: {} over {}: {} calls, {} a step", traffic.stage, traffic.op, printable(traffic.axis),
           traffic.calls, bytesText(double(traffic.bytes)));
    line(
        "timeline   predicted, {}; a column shows what took most of it: 0-9 forward and a-z backward of a micro-batch,",
        timeText(view.predicted.totalUs));
    line("           U update, - other, ~ communication that nothing hides, . waiting");
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
      return '-';
    }
  }

  using Columns = std::array<double, timelineColumns>;

  /// Adds to each column the part of the span that lies in it.
  static void spread(const Span &span, double perColumn, Columns &columns) {
    auto first = std::min(timelineColumns - 1, size_t(std::max(0.0, span.startUs) / perColumn));
    for (size_t i = first; i < timelineColumns && double(i) * perColumn < span.endUs; ++i)
      columns[i] += std::min(span.endUs, double(i + 1) * perColumn) - std::max(span.startUs, double(i) * perColumn);
  }

  /// A column shows what took most of it; computing counts before the communication that it hides.
  void drawRows(const ProgramView &view, const Timeline &timeline, const char *what) {
    double perColumn = std::max(timeline.totalUs, 1e-9) / timelineColumns;
    std::vector<std::map<char, Columns>> letters(timeline.numRows);
    for (const TimelineEvent &event : timeline.events)
      if (view.work[event.task] != Work::communication)
        spread({event.startUs, event.endUs}, perColumn,
               letters[event.row][letterFor(view.work[event.task], event.microbatch)]);
    std::vector<BusyTimes> busy = busyTimes(plan, timeline);
    std::vector<std::string> rows(timeline.numRows, std::string(timelineColumns, '.'));
    for (size_t row = 0; row < rows.size(); ++row) {
      Columns computing{}, all{};
      for (const Span &span : busy[row].computing)
        spread(span, perColumn, computing);
      for (const Span &span : busy[row].all)
        spread(span, perColumn, all);
      for (size_t i = 0; i < timelineColumns; ++i) {
        double communicating = all[i] - computing[i], waiting = perColumn - all[i];
        if (computing[i] > 0 && computing[i] >= std::max(communicating, waiting))
          rows[row][i] = std::max_element(letters[row].begin(), letters[row].end(), [&](const auto &a, const auto &b) {
                           return a.second[i] < b.second[i];
                         })->first;
        else if (communicating > waiting)
          rows[row][i] = '~';
      }
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
    if (!difference.models.empty())
      line("           {}", printable(difference.models));
    for (const SettingChange &setting : difference.settings)
      line("           {:<26} {}", printable(setting.name),
           setting.before == setting.after ? printable(setting.after)
                                           : printable(setting.before) + " -> " + printable(setting.after));
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
