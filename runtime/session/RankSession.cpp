// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/RankSession.h"

#include "runtime/executor/RequestBound.h"
#include "runtime/executor/Staging.h"
#include "runtime/launch/link/KeptMemory.h"
#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/launch/ranks/RankProcess.h"
#include "runtime/session/DryRun.h"
#include "runtime/session/report/EventFile.h"
#include "runtime/session/report/JsonLine.h"
#include "runtime/support/HostCores.h"
#include "runtime/support/PeakRate.h"
#include "runtime/transport/TlsTransport.h"
#include "runtime/transport/UcxTransport.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace dg::session {

static constexpr int exitStoppedResumable = 75, exitTerminated = 128 + SIGTERM;
/// Ranks meet around a checkpoint, between steps that may take long.
static constexpr std::chrono::milliseconds longestMeeting = std::chrono::minutes(30);
/// Who comes with a failure of its own waits no longer for ranks that do not come: they may be waiting for it in a
/// step, and it must tell the cause before they tell that it is silent.
static constexpr std::chrono::milliseconds longestWithFailure = std::chrono::seconds(2);

/// Who has failed stays until the launcher has found the cause, which takes it the time-out and this at most.
static constexpr std::chrono::milliseconds longestExplanation = std::chrono::seconds(20);

/// What LossChannel has open at most, and some for meetings.
static constexpr uint32_t lossRequests = 64;

namespace {

/// The rank while it runs: what it made, and how it failed.
class RankSession {
public:
  RankSession(RankContext &context, const Assignment &assignment) : context(context), assignment(assignment) {}
  int run();

private:
  void takeCore();
  Status connect();
  Status chooseTarget();
  Status makeExecutor();
  Result<int> work();
  Status agree(const Status &mine);
  Result<std::unique_ptr<Reporter>> makeReporter() const;

  RankContext &context;
  const Assignment &assignment;
  const plan::Plan &plan = assignment.job->plan();
  CoreUse cores;
  std::string target; ///< the same on every rank
  /// A forked process has fewer pages of libraries at first than the one that it came from.
  const uint64_t startBytes = std::min(assignment.residentBytes, residentBytes());
  std::unique_ptr<Transport> transport;
  std::unique_ptr<KernelLibrary> kernels;
  std::unique_ptr<TraceRecorder> trace;
  std::unique_ptr<Executor> executor;
  bool hasPeerFailed = false;
};

} // namespace

/// A status as bytes: nothing, or the kind and the message.
static std::string pack(const Status &status) {
  return status ? std::string() : char('0' + int(status.kind())) + status.message();
}

Status RankSession::agree(const Status &mine) {
  const auto patience =
      mine ? std::max(longestMeeting, assignment.timeout) : std::min(longestWithFailure, assignment.timeout / 4);
  auto said = context.allGather(pack(mine), deadlineIn(patience));
  if (!mine)
    return mine;
  if (!said) {
    hasPeerFailed = true;
    return said.status();
  }
  for (size_t rank = 0; rank < said->size(); ++rank) {
    const std::string &text = (*said)[rank];
    if (text.empty())
      continue;
    hasPeerFailed = true;
    return Status::error(ErrorKind(text[0] - '0'), "rank {}: {}", rank, text.substr(1));
  }
  return Status::ok();
}

/// Before any thread is started and any page of the arena touched.
void RankSession::takeCore() {
  const RankPlacement &place = context.placement();
  const int64_t index = place.firstLocalRank + context.rank() - place.firstRank;
  cores = coreUseOf(index, assignment.ranksOnHost, assignment.threads, usableCores());
  if (cores.core)
    stayOnCore(*cores.core); // if not, the rank is only slower
}

Status RankSession::connect() {
  context.board().phase.store(uint32_t(RankPhase::connecting), std::memory_order_relaxed);
  if (context.numRanks() == 1)
    return Status::ok();
  const RankPlacement &place = context.placement();
  UcxOptions options;
  const bool isSecure = !place.runId.empty();
  options.spansHosts = place.spansHosts && !isSecure;
  options.hostId = place.hostId;
  options.networkDevice = place.networkDevice;
  options.onCrash = outliveTransport;
  const uint32_t stage = uint32_t(plan.mesh.coordinatesOf(context.rank()).pipe);
  options.maxRequests = std::max(options.maxRequests, requestsNeeded(plan, stage) + lossRequests);
  // Ranks of a host reduce in each other's memory.
  options.sharedBytes = std::max<size_t>(Staging(plan, stage, assignment.device.isHost).bytes(), 1);
  auto exchange = [this](const std::string &mine) { return context.allGather(mine, deadlineIn(assignment.timeout)); };
  auto made = makeUcxTransport(context.rank(), context.numRanks(), exchange, options);
  if (made && isSecure) {
    TlsOptions tls;
    tls.maxRequests = options.maxRequests;
    tls.hostId = place.hostId;
    tls.address = place.networkAddress;
    tls.keys = context.takeKeys();
    tls.timeout = assignment.timeout;
    made = makeTlsTransport(std::move(*made), exchange, std::move(tls));
  }
  if (!made) {
    hasPeerFailed = true; // most often a rank that died while this one mapped its memory
    return made.status();
  }
  transport = std::move(*made);
  return Status::ok();
}

/// All ranks run objects of one target, so that replicas compute the same bits: the best that every host can run.
Status RankSession::chooseTarget() {
  std::vector<std::string> mine = assignment.job->targets();
  // What a rank can run on the first line, what it cannot and why on the second.
  auto said = context.allGather(fmt::format("{}\n{}", fmt::join(mine, ","), assignment.job->refusedTargets()),
                                deadlineIn(assignment.timeout));
  if (!said) {
    hasPeerFailed = true;
    return said.status();
  }
  auto runs = [](const std::string &text) { return text.substr(0, text.find('\n')); };
  auto canRun = [&](const std::string &text, const std::string &name) {
    return ("," + runs(text) + ",").find("," + name + ",") != std::string::npos;
  };
  for (const std::string &name : mine)
    if (std::all_of(said->begin(), said->end(), [&](const std::string &text) { return canRun(text, name); })) {
      target = name;
      return Status::ok();
    }
  // Whichever rank is heard says the same: rank 0's best target, and the first rank that cannot run it.
  const std::string first = runs(said->front()), best = first.substr(0, first.find(','));
  size_t other = 1;
  while (other + 1 < said->size() && canRun((*said)[other], best))
    ++other;
  const std::string &theirs = (*said)[other];
  std::string why = theirs.substr(runs(theirs).size() + 1);
  return Status::error(ErrorKind::badInput,
                       "{}: there is no target that every rank can run: rank 0 runs {}, rank {} only {}{}; compile it "
                       "for a processor that all hosts have, as --target {}x86-64-v3",
                       assignment.job->path(), first, other, runs(theirs),
                       why.empty() ? "" : fmt::format(", not {}", why), best == "x86-64-v3" ? "" : best + ",");
}

Status RankSession::makeExecutor() {
  context.board().phase.store(uint32_t(RankPhase::loading), std::memory_order_relaxed);
  ExecutorOptions options;
  options.threads = assignment.threads;
  options.timeout = assignment.timeout;
  options.sharesCore = cores.isShared;
  options.seed = assignment.seed;
  options.progress = &context.board();
  options.checkNumerics = assignment.checkNumerics;
  std::span<const std::byte> last;
  options.initialTensor = [this, &last](const std::string &name) {
    assignment.job->forget(last);
    auto found = assignment.job->initialTensor(name);
    last = found ? *found : std::span<const std::byte>();
    return found;
  };
  if (!assignment.tracePath.empty() || assignment.profile) {
    TraceRecorder::Uses uses = {!assignment.tracePath.empty(), assignment.profile};
    trace = std::make_unique<TraceRecorder>(plan, context.rank(), uses);
    options.trace = trace->hook();
  }
  auto loaded = assignment.job->loadKernels(target);
  if (!loaded)
    return loaded.status();
  kernels = std::move(*loaded);
  auto made = Executor::create(plan, plan.mesh.coordinatesOf(context.rank()), assignment.device.make(*kernels),
                               transport.get(), options);
  assignment.job->forget(last);
  if (!made)
    return made.status();
  executor = std::move(*made);
  return Status::ok();
}

Result<std::unique_ptr<Reporter>> RankSession::makeReporter() const {
  if (context.rank() != 0)
    return makeSilentReporter();
  std::unique_ptr<Reporter> printed;
  ReportMark *mark = context.kept() ? &context.kept()->mark() : nullptr;
  if (assignment.json) {
    const RankPlacement &place = context.placement();
    printed = makeJsonReporter(stdout, assignment.jsonEvery, assignment.parameterTable,
                               JsonLine::originOf(place.hostName, place.jobId), mark);
  } else {
    constexpr double secondsBetweenLines = 10;
    FILE *bar = isatty(STDERR_FILENO) ? stderr : nullptr;
    std::optional<LogPace> pace = assignment.logEvery;
    if (!pace && !bar)
      pace = LogPace::everySeconds(secondsBetweenLines);
    printed =
        makeTextReporter(assignment.inference && assignment.inference->memory >= 0 ? stderr : stdout, bar, pace, mark);
  }
  if (assignment.logDirectory.empty())
    return printed;
  auto events = makeEventReporter(assignment.logDirectory);
  if (!events)
    return events.status();
  return makeBoth(std::move(printed), std::move(*events));
}

Result<int> RankSession::work() {
  takeCore();
  DG_RETURN_IF_ERROR(connect());
  if (assignment.dryRun) {
    DG_RETURN_IF_ERROR(runDry(context, transport.get(), assignment.timeout, assignment.json));
    return 0;
  }
  DG_RETURN_IF_ERROR(chooseTarget());
  DG_RETURN_IF_ERROR(makeExecutor());
  // No rank starts a step, with its deadlines, before every rank is ready.
  if (Status ready = context.barrier(deadlineIn(std::max(longestMeeting, assignment.timeout))); !ready) {
    hasPeerFailed = true;
    return ready;
  }
  Result<std::unique_ptr<Reporter>> made = makeReporter();
  // A folder that cannot be written to is rank 0's failure; the others would wait for it in a step.
  DG_RETURN_IF_ERROR(agree(made.status()));
  std::unique_ptr<Reporter> reporter = std::move(*made);
  RankRun run{plan, context.rank(), *executor, *reporter};
  run.transport = transport.get();
  run.agree = [this](const Status &mine) { return agree(mine); };
  run.exchange = [this](const std::string &mine) { // a step of another may take long; its disk holds no rank
    return context.allGather(mine, deadlineIn(std::max(longestMeeting, assignment.timeout)));
  };
  run.gather = [this](const std::string &mine) { return context.allGather(mine, deadlineIn(assignment.timeout)); };
  run.mayStartStep = [this](uint64_t step) { return context.mayStartStep(step); };
  run.isSaveDue = [this](uint64_t step) { return context.isSaveDue(step); };
  std::optional<checkpoint::RankSnapshots> snapshots;
  if (KeptMemory *kept = context.kept(); kept && !kept->regions(context.index())[0].empty()) {
    snapshots.emplace(plan, run.at(), kept->regions(context.index()));
    run.snapshots.emplace();
    run.snapshots->memory = &*snapshots;
    run.snapshots->from = assignment.restart.snapshot;
    run.snapshots->report = [this](int64_t step) { context.reportSnapshot(step); };
    run.snapshots->whole = [this] { return context.wholeSnapshot(); };
  }
  run.saved = assignment.saved;
  run.progress = &context.board();
  run.trace = trace.get();
  run.timeout = assignment.timeout;
  run.readAhead = assignment.readAhead;
  run.readAhead.timeout = assignment.timeout;
  run.target = target;
  run.residentBytes = startBytes;
  int code = 0;
  bool isPeers = false;
  Status status = Status::ok();
  if (assignment.training) {
    auto outcome = runTraining(run, *assignment.training, *assignment.dataset,
                               assignment.evalDataset ? &*assignment.evalDataset : nullptr,
                               assignment.resume ? &*assignment.resume : nullptr, isPeers);
    if (outcome && *outcome == Outcome::stopped)
      code = assignment.training->checkpointDirectory.empty() ? exitTerminated : exitStoppedResumable;
    status = outcome.status();
  } else {
    if (assignment.resume)
      status = assignment.resume->restore(plan, run.at(), *executor);
    if (status && assignment.inference) {
      status = runInference(run, *assignment.inference, *assignment.dataset, isPeers);
    } else if (status) {
      auto isWhole = runEvaluation(run, *assignment.evaluation, *assignment.dataset, isPeers);
      status = isWhole.status();
      code = isWhole && !*isWhole ? exitTerminated : 0;
    }
  }
  hasPeerFailed = hasPeerFailed || isPeers;
  if (status)
    status = reporter->failure();
  if (status && !assignment.tracePath.empty())
    status = trace->write(assignment.tracePath, run.agree);
  // Replicas and shards do the same work: one rank of each stage tells.
  if (plan::Coordinates at = run.at();
      status && assignment.profile && at.replica == 0 && at.data == 0 && at.tensor == 0)
    std::fputs(trace->profile().table(measurePeakFlops()).c_str(), stderr);
  if (!status)
    return status;
  // No rank leaves while another may still need its answers.
  if (Status last = context.barrier(deadlineIn(std::max(longestMeeting, assignment.timeout))); !last) {
    hasPeerFailed = true;
    return last;
  }
  context.board().phase.store(uint32_t(RankPhase::done), std::memory_order_relaxed);
  return code;
}

int RankSession::run() {
  Result<int> code = work();
  std::fflush(stdout);
  if (code)
    return *code;
  bool isOwn = !hasPeerFailed || (executor && executor->hasOwnFailure());
  if (!context.reportFailure(code.status(), isOwn ? FailureOrigin::own : FailureOrigin::peer)) {
    std::fputs((code.status().message() + "\n").c_str(), stderr); // the launcher has only its end
    return code.status().exitCode();
  }
  context.awaitStop(deadlineIn(longestExplanation + 2 * assignment.timeout));
  return code.status().exitCode();
}

uint64_t snapshotBytes(const Assignment &assignment, int64_t rank) {
  const bool takes = assignment.training &&
                     (assignment.training->snapshotEvery.steps > 0 || assignment.training->snapshotEvery.epochs > 0);
  const plan::Plan &plan = assignment.job->plan();
  return takes ? checkpoint::RankSnapshots::bytesNeeded(plan, plan.mesh.coordinatesOf(rank)) : 0;
}

std::optional<int64_t> latestCheckpoint(const Assignment &assignment) {
  if (!assignment.training || assignment.training->checkpointDirectory.empty())
    return std::nullopt;
  const std::vector<int64_t> steps = checkpoint::stepsIn(assignment.training->checkpointDirectory);
  return steps.empty() ? std::nullopt : std::optional(steps.back());
}

Status restartAt(Assignment &assignment, const RestartPoint &point) {
  assignment.restart = point;
  if (!point.checkpoint)
    return Status::ok();
  const std::string &directory = assignment.training->checkpointDirectory;
  assignment.saved = {*point.checkpoint, directory + "/" + checkpoint::nameOfStep(*point.checkpoint)};
  if (point.snapshot)
    return Status::ok();
  auto opened = checkpoint::Checkpoint::openStep(directory, *point.checkpoint);
  if (!opened)
    return opened.status();
  DG_RETURN_IF_ERROR(opened->check(assignment.job->plan(), checkpoint::Purpose::training));
  assignment.resume.emplace(std::move(*opened));
  return Status::ok();
}

void removeUnfinished(const Assignment &assignment, bool hadRankZero) {
  if (assignment.inference)
    removeUnfinishedResults(*assignment.inference);
  if (hadRankZero && assignment.training && !assignment.training->checkpointDirectory.empty())
    if (const auto &training = *assignment.training;
        checkpoint::checkFence(training.checkpointDirectory, training.checkpointRun))
      checkpoint::removeUnfinished(training.checkpointDirectory);
  if (!assignment.tracePath.empty())
    TraceRecorder::removeUnfinished(assignment.tracePath, assignment.job->plan().mesh.numRanks());
}

int runRank(RankContext &context, const Assignment &assignment) {
  // A file that may not grow is an error of write, not a signal.
  std::signal(SIGXFSZ, SIG_IGN);
  // Never destroyed: the process ends, and the end of UCX would touch connections whose other ends may be gone.
  return (new RankSession(context, assignment))->run();
}

} // namespace dg::session
