// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/Reporter.h"

#include "runtime/launch/link/KeptMemory.h"
#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/session/report/JsonLine.h"
#include "runtime/session/report/ProgressBar.h"
#include "runtime/support/Printable.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstring>
#include <optional>
#include <sys/ioctl.h>
#include <utility>

namespace dg::session {

using Clock = std::chrono::steady_clock;

namespace {

class SilentReporter final : public Reporter {};

/// Says yes at most every tenth of a second.
class Throttle {
public:
  bool isDue() {
    auto now = Clock::now();
    if (now - last < std::chrono::milliseconds(100))
      return false;
    last = now;
    return true;
  }

private:
  Clock::time_point last{};
};

/// Where a report goes, and the first error on the way.
class Output {
public:
  explicit Output(FILE *file) : file(file) {}
  void write(const std::string &text) {
    if (error != 0)
      return;
    errno = 0;
    if (std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0)
      return;
    error = errno != 0 ? errno : EIO;
    fmt::print(stderr, "dgrun: warning: {}; the run goes on without it\n", failure().message());
  }
  Status failure() const {
    return error == 0 ? Status::ok()
                      : Status::error(ErrorKind::unwritten, "the report on stdout cannot be written: {}",
                                      std::strerror(error));
  }

private:
  FILE *file;
  int error = 0;
};

/// What was told already, by this process or one before it. Every event of a training has a number that is the same
/// whenever it is told.
class Told {
public:
  enum Kind : uint64_t { ofStep, ofEpoch, ofEvaluation, ofEnd };
  explicit Told(ReportMark *mark) : mark(mark ? mark : &own), before(this->mark->told), maybe(this->mark->telling) {}

  static constexpr uint64_t start = 1; ///< as of a step before the first
  /// After `step` steps.
  static uint64_t numberOf(int64_t step, Kind kind) { return 4 * uint64_t(step + 1) + kind; }
  /// An end may come before steps that were told: who is asked to save does not repeat them first.
  bool has(uint64_t number) const { return isBehind(number, before); }
  bool isRepeated(uint64_t number) const { return isBehind(number, maybe); }
  void willTell(uint64_t number) { mark->telling = std::max<uint64_t>(number, mark->telling); }
  void hasTold() { mark->told = mark->telling.load(); }

private:
  static bool isBehind(uint64_t number, uint64_t mark) { return number % 4 == ofEnd ? number == mark : number <= mark; }
  ReportMark own; ///< where nothing outlives the process
  ReportMark *const mark;
  const uint64_t before, maybe;
};

void warn(const SaveFailedInfo &info) {
  fmt::print(stderr, "dgrun: warning: {}; {}\n", printable(info.message),
             !info.isMissing ? "it is tried once more"
             : info.left == 1
                 ? "the training goes on, until the next save fails too (--max-lost)"
                 : fmt::format("the training goes on, until {} more saves in a row fail (--max-lost)", info.left));
}

std::string meshText(const plan::Mesh &mesh) {
  std::string text = mesh.replicas > 1 ? fmt::format("replica={}", mesh.replicas) : "";
  for (plan::Axis axis : plan::axesOfReplica)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", nameOf(axis), mesh.sizeOf(axis));
  return text;
}

class JsonReporter final : public Reporter {
public:
  JsonReporter(FILE *out, LogPace pace, std::string parameterTable, std::string origin, ReportMark *mark)
      : told(mark), out(out), pace(pace), parameterTable(std::move(parameterTable)), origin(std::move(origin)) {}

  void start(const StartInfo &info) override {
    lastStep = info.step;
    if (told.has(Told::start))
      return;
    const plan::Plan &plan = *info.plan;
    JsonLine line("start");
    line.add("program", nameOf(info.program)).add("model", plan.model.name).add("parameters", plan.model.parameters);
    line.add("ranks", plan.mesh.numRanks()).add("mesh", meshText(plan.mesh)).add("threads", info.threads);
    line.add("batch", info.batch).add("samples", info.samples).add("steps_per_epoch", info.stepsPerEpoch);
    line.add("seed", info.seed).add("step", info.step);
    if (!info.target.empty())
      line.add("target", info.target);
    if (info.copyBytes > 0)
      line.add("save_copy_bytes", info.copyBytes);
    if (!info.resumedFrom.empty())
      line.add("resumed_from", info.resumedFrom);
    print(std::move(line), true, parameterTable.empty() ? Told::start : 0);
    if (!parameterTable.empty())
      print(std::move(JsonLine("parameters").addRaw("parameters", parameterTable)), true, Told::start);
  }
  void step(const StepInfo &info) override {
    lastStep = info.step;
    const uint64_t number = Told::numberOf(info.step, Told::ofStep);
    if (!pace.isDue(info.step) || told.has(number))
      return;
    JsonLine line("step");
    line.add("step", info.step).add("loss", info.loss).add("lr", info.learningRate).add("step_us", info.stepUs);
    if (info.gradientNorm)
      line.add("grad_norm", *info.gradientNorm);
    print(std::move(line.add("samples", info.samples)), throttle.isDue(), number);
  }
  void inferred(const InferredInfo &info) override {
    JsonLine line("step");
    line.add("step", info.step).add("step_us", info.stepUs).add("samples", info.samples).add("batch", info.batch);
    print(std::move(line), throttle.isDue());
  }
  void epoch(const EpochInfo &info) override {
    const uint64_t number = Told::numberOf(lastStep, Told::ofEpoch);
    if (told.has(number))
      return;
    JsonLine line("epoch");
    line.add("epoch", info.epoch).add("loss", info.meanLoss).add("samples", info.samples);
    line.add("seconds", info.seconds).add("lr", info.learningRate);
    print(std::move(line), true, number);
  }
  void evaluation(const EvaluationInfo &info) override {
    const uint64_t number = Told::numberOf(info.step, Told::ofEvaluation);
    if (told.has(number))
      return;
    JsonLine line("eval");
    line.add("epoch", info.epoch).add("step", info.step);
    if (info.hasLoss)
      line.add("loss", info.loss);
    if (info.hasAccuracy)
      line.add("accuracy", info.accuracy);
    for (const auto &[name, value] : info.metrics.numbers)
      line.add(name, value);
    if (!info.metrics.perClass.empty()) {
      std::string list;
      for (double part : info.metrics.perClass)
        list += fmt::format("{}{}", list.empty() ? "" : ",", std::isfinite(part) ? fmt::format("{}", part) : "null");
      line.addRaw("class_accuracy", "[" + list + "]");
    }
    print(std::move(line.add("samples", info.samples).add("seconds", info.seconds)), true, number);
  }
  void dealt(const DealInfo &info) override {
    JsonLine line("deal");
    line.add("step", info.step).addRaw("microbatches", fmt::format("[{}]", fmt::join(info.shares, ",")));
    if (!info.microbatchUs.empty())
      line.addRaw("microbatch_us", fmt::format("[{:.1f}]", fmt::join(info.microbatchUs, ",")));
    print(std::move(line.add("repeat", info.repeat)), true);
  }
  void checkpoint(const CheckpointInfo &info) override {
    JsonLine line("checkpoint");
    line.add("step", info.step).add("path", info.path).add("seconds", info.seconds);
    line.add("stall_seconds", info.stallSeconds);
    print(std::move(line.addRaw("best", info.isBest ? "true" : "false")), true);
  }
  void saveFailed(const SaveFailedInfo &info) override {
    JsonLine line("save_failed");
    line.add("step", info.step).add("message", info.message);
    print(std::move(line.addRaw("missing", info.isMissing ? "true" : "false")), true);
    warn(info);
  }
  void end(const EndInfo &info) override {
    const uint64_t number = Told::numberOf(info.steps, Told::ofEnd);
    if (told.has(number))
      return;
    JsonLine line("end");
    line.add("steps", info.steps).add("epochs", info.epochs).add("seconds", info.seconds);
    line.add("arena_bytes", info.arenaBytes).add("peak_rss_bytes", info.peakBytes);
    line.add("samples", info.samples).add("data_wait_seconds", info.data.waitSeconds);
    line.add("samples_per_second", info.seconds > 0 ? double(info.samples) / info.seconds : 0.0);
    if (info.best) {
      line.add("best_step", info.best->step).add("best_seconds", info.best->seconds);
      if (info.best->found.hasLoss)
        line.add("best_loss", info.best->found.loss);
      if (info.best->found.hasAccuracy)
        line.add("best_accuracy", info.best->found.accuracy);
    }
    if (info.data.readers > 0) {
      line.add("readers", info.data.readers).add("data_read_seconds", info.data.readSeconds);
      line.add("prefetch_steps", info.data.steps).add("prefetch_bytes", info.data.bytes);
    }
    line.addRaw("stopped", info.stopped ? "true" : "false");
    line.addRaw("resumable", info.stopped && !info.saved.empty() ? "true" : "false");
    if (!info.why.empty())
      line.add("why", info.why);
    print(std::move(line), true, number);
  }
  ~JsonReporter() override { flush(); }
  void flush() override {
    told.willTell(pendingNumber);
    out.write(pending);
    told.hasTold();
    pending.clear();
  }
  Status failure() const override { return out.failure(); }

private:
  /// Whole lines leave in one write that a pipe takes at once or not at all, so that a rank that is killed leaves no
  /// half of an event behind.
  void print(JsonLine line, bool now, uint64_t number = 0) {
    if (number != 0 && told.isRepeated(number))
      line.addRaw("repeated", "true");
    std::string text = std::move(line).finish(origin);
    if (pending.size() + text.size() > atomicBytes)
      flush();
    pending += text;
    pendingNumber = std::max(pendingNumber, number);
    if (now)
      flush();
  }
  static constexpr size_t atomicBytes = PIPE_BUF;
  std::string pending;
  uint64_t pendingNumber = 0; ///< of its last event
  int64_t lastStep = 0;
  Told told;
  Output out;
  LogPace pace;
  std::string parameterTable; ///< JSON, or ""
  std::string origin;
  Throttle throttle;
};

/// Of the terminal, which may change at any moment.
size_t columnsOf(FILE *terminal) {
  winsize size{};
  constexpr size_t usual = 80;
  return ::ioctl(::fileno(terminal), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

class TextReporter final : public Reporter {
public:
  TextReporter(FILE *out, FILE *bar, std::optional<LogPace> pace, ReportMark *mark)
      : told(mark), out(out), bar(bar), pace(pace) {}

  void start(const StartInfo &info) override {
    begun = info;
    progress.start(info);
    lastStep = info.step;
    if (told.has(Told::start))
      return;
    told.willTell(Told::start);
    const plan::Plan &plan = *info.plan;
    constexpr uint64_t leastToldBytes = 1 << 20;
    line("{}: {} parameters, {} rank{} ({}), {} thread{} each, batch {}, {} samples{}{}", plan.model.name,
         plan.model.parameters, plan.mesh.numRanks(), plan.mesh.numRanks() == 1 ? "" : "s", meshText(plan.mesh),
         info.threads, info.threads == 1 ? "" : "s", info.batch, info.samples,
         info.resumedFrom.empty() ? "" : fmt::format(", continued from {}", info.resumedFrom),
         info.copyBytes < leastToldBytes ? "" : fmt::format(", saves copy {:.1f} MB", double(info.copyBytes) / 1e6));
  }
  void step(const StepInfo &info) override {
    lastLoss = info.loss;
    lastStep = info.step;
    progress.step(info);
    if (pace && pace->isDue(info.step) && isNew(lastStep, Told::ofStep))
      line("{}", progress.line());
    if (!bar || !throttle.isDue())
      return;
    // One column stays free: a terminal may begin a new line behind the last.
    fmt::print(bar, "\r\x1b[K{}", progress.bar(columnsOf(bar) - 1));
    std::fflush(bar);
    barShown = true;
  }
  void epoch(const EpochInfo &info) override {
    if (!isNew(lastStep, Told::ofEpoch))
      return;
    line("epoch {}{}  loss {:.6f}  {} samples in {:.2f} s ({:.0f} a second)", info.epoch,
         begun.epochs ? fmt::format("/{}", begun.epochs) : "", info.meanLoss, info.samples, info.seconds,
         info.seconds > 0 ? double(info.samples) / info.seconds : 0.0);
  }
  void evaluation(const EvaluationInfo &info) override {
    if (!isNew(info.step, Told::ofEvaluation))
      return;
    std::string more;
    for (const auto &[name, value] : info.metrics.numbers)
      more += fmt::format("  {} {:.6g}", name, value);
    line("  evaluation{}{}{}  {} samples", info.hasLoss ? fmt::format("  loss {:.6f}", info.loss) : "",
         info.hasAccuracy ? fmt::format("  accuracy {:.2f} %", 100 * info.accuracy) : "", more, info.samples);
    printClasses(info.metrics.perClass);
  }
  void dealt(const DealInfo &info) override {
    line("  micro-batches are dealt {}{} after step {}{}", fmt::join(info.shares, "/"),
         info.microbatchUs.empty() ? "" : fmt::format(" (one takes {:.0f} us)", fmt::join(info.microbatchUs, "/")),
         info.step, info.microbatchUs.empty() ? "" : fmt::format("; --deal {} repeats it", info.repeat));
  }
  void checkpoint(const CheckpointInfo &info) override {
    line("  checkpoint {}{}", info.path, info.isBest ? ", the best so far" : "");
  }
  void saveFailed(const SaveFailedInfo &info) override {
    clearBar();
    warn(info);
  }
  void end(const EndInfo &info) override {
    if (!isNew(info.steps, Told::ofEnd))
      return;
    printWait(info);
    line("{} after {} steps{} in {:.2f} s{}{}", info.stopped ? "stopped" : "done", info.steps,
         begun.program != plan::ProgramKind::train ? ""
         : info.epochs == 0                        ? " (less than an epoch)"
                            : fmt::format(" ({} epoch{})", info.epochs, info.epochs == 1 ? "" : "s"),
         info.seconds, lastLoss ? fmt::format(", last loss {:.6f}", *lastLoss) : "",
         !info.why.empty()    ? ": " + info.why
         : !info.stopped      ? ""
         : info.saved.empty() ? "; nothing was saved"
                              : "; saved: continue with --resume");
  }
  void flush() override { clearBar(); }
  Status failure() const override { return out.failure(); }

private:
  /// Whether no process before has told it. What one may have told is told again: people see that.
  bool isNew(int64_t step, Told::Kind kind) {
    const uint64_t number = Told::numberOf(step, kind);
    if (told.has(number))
      return false;
    told.willTell(number);
    return true;
  }
  /// "  by class  0: 97.10 %  1: 93.00 % …"; many classes are for --json.
  void printClasses(const std::vector<double> &parts) {
    constexpr size_t most = 20;
    std::string text;
    for (size_t kind = 0; kind < parts.size() && parts.size() <= most; ++kind)
      if (std::isfinite(parts[kind]))
        text += fmt::format("  {}: {:.2f} %", kind, 100 * parts[kind]);
    if (!text.empty())
      line("  accuracy by class{}", text);
  }
  /// Where steps have waited for data, how many readers it would take.
  void printWait(const EndInfo &info) {
    constexpr double leastPart = 0.01, leastSeconds = 0.1;
    const data::DataWait &data = info.data;
    const double computed = info.seconds - data.waitSeconds;
    if (data.readers == 0 || data.waitSeconds < std::max(leastSeconds, leastPart * info.seconds) || computed <= 0)
      return;
    const int64_t enough = std::max(int64_t(std::ceil(data.readSeconds / computed)), data.readers + 1);
    line("data: steps waited {:.2f} s ({:.0f} %) for {} reader{}; {} readers on free cores would keep up",
         data.waitSeconds, 100 * data.waitSeconds / info.seconds, data.readers, data.readers == 1 ? "" : "s", enough);
  }
  void clearBar() {
    if (!std::exchange(barShown, false))
      return;
    fmt::print(bar, "\r\x1b[K");
    std::fflush(bar);
  }
  template <typename... Args> void line(fmt::format_string<Args...> format, Args &&...args) {
    clearBar();
    out.write(printable(fmt::format(format, std::forward<Args>(args)...)) + "\n");
    told.hasTold();
  }
  Told told;
  int64_t lastStep = 0;
  Output out;
  FILE *bar;
  std::optional<LogPace> pace;
  Throttle throttle;
  StartInfo begun;
  RunProgress progress;
  std::optional<float> lastLoss;
  bool barShown = false;
};

} // namespace

std::optional<double> EvaluationInfo::find(const std::string &metric) const {
  if (hasLoss && metric == "loss")
    return loss;
  if (hasLoss && metric == "perplexity")
    return std::exp(loss);
  return hasAccuracy && metric == "accuracy" ? std::optional(accuracy) : metrics.find(metric);
}

std::unique_ptr<Reporter> makeSilentReporter() { return std::make_unique<SilentReporter>(); }
std::unique_ptr<Reporter> makeJsonReporter(FILE *out, LogPace steps, std::string parameterTable, std::string origin,
                                           ReportMark *mark) {
  return std::make_unique<JsonReporter>(out, steps, std::move(parameterTable), std::move(origin), mark);
}
std::unique_ptr<Reporter> makeTextReporter(FILE *out, FILE *bar, std::optional<LogPace> steps, ReportMark *mark) {
  return std::make_unique<TextReporter>(out, bar, steps, mark);
}

std::string launchEventLine(const LaunchEvent &event) {
  JsonLine line(event.kind);
  line.add("rank", event.rank).add("step", event.step);
  for (const auto &[name, number] : event.numbers)
    line.add(name, number);
  if (!event.text.empty())
    line.add("message", event.text);
  return std::move(line).finish(JsonLine::originOf(event.host, event.job));
}

} // namespace dg::session
