// SPDX-License-Identifier: Apache-2.0
// The only file that knows PMIx.
#include "runtime/launch/ranks/ProcessManager.h"

#include "runtime/launch/link/HeldSignals.h"
#include "runtime/launch/link/LinkTimes.h"

#include <pmix.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace dg {

using Clock = std::chrono::steady_clock;

namespace {

constexpr const char *sharedKey = "dg.rendezvous";

/// A launcher that says in the environment how many processes it has started.
struct Launcher {
  const char *sizeVariable, *name, *advice;
};
constexpr Launcher launchers[] = {
    {"SLURM_STEP_NUM_TASKS", "srun", "start it with: srun --mpi=pmix"},
    {"OMPI_COMM_WORLD_SIZE", "mpirun", "use an OpenMPI that was built with PMIx"},
    {"PMI_SIZE", "mpiexec", "use a launcher with PMIx, as OpenMPI's mpirun or srun --mpi=pmix"},
};

/// The launcher that has started several processes, this one among them.
const Launcher *findLauncher(std::string &size) {
  for (const Launcher &launcher : launchers) {
    const char *text = std::getenv(launcher.sizeVariable);
    // A shell inside an allocation has the variables of its own single task.
    if (text && std::atoll(text) > 1) {
      size = text;
      return &launcher;
    }
  }
  return nullptr;
}

Status unusable(const Launcher *launcher, const std::string &size, const char *why) {
  return Status::error(
      ErrorKind::usage,
      "{} has started {} processes, but PMIx does not work here ({}), so that each would run the whole "
      "job; {}",
      launcher ? launcher->name : "a launcher", launcher ? size : "several", why,
      launcher ? launcher->advice : "unset PMIX_RANK to run on this host alone");
}

/// Runs a call of PMIx in a thread of its own, of which one can tire: a server that has died answers nothing, for ever.
/// What the call writes to must live as long as `call` does.
pmix_status_t callBefore(Deadline deadline, std::function<pmix_status_t()> call) {
  struct State {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<pmix_status_t> status;
  };
  auto state = std::make_shared<State>();
  std::thread([state, call = std::move(call)] {
    const pmix_status_t status = call();
    std::lock_guard lock(state->mutex);
    state->status = status;
    state->ended.notify_all();
  }).detach();
  std::unique_lock lock(state->mutex);
  while (!state->status && Clock::now() < deadline && !isStopAsked())
    state->ended.wait_for(lock, tickTime);
  return state->status.value_or(PMIX_ERR_TIMEOUT);
}

/// The value of a key that a process has published.
pmix_status_t getValue(const std::string &space, pmix_rank_t rank, const char *key, Deadline deadline,
                       std::shared_ptr<pmix_value_t *> &value) {
  value = std::shared_ptr<pmix_value_t *>(new pmix_value_t *(nullptr), [](pmix_value_t **held) {
    if (*held)
      PMIX_VALUE_RELEASE(*held);
    delete held;
  });
  return callBefore(deadline, [space, rank, key, value] {
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, space.c_str(), rank);
    return PMIx_Get(&proc, key, nullptr, 0, value.get());
  });
}

pmix_status_t getNumber(const std::string &space, const char *key, Deadline deadline, int64_t &number) {
  std::shared_ptr<pmix_value_t *> value;
  pmix_status_t status = getValue(space, PMIX_RANK_WILDCARD, key, deadline, value);
  if (status != PMIX_SUCCESS)
    return status;
  if ((*value)->type != PMIX_UINT32)
    return PMIX_ERR_TYPE_MISMATCH;
  number = (*value)->data.uint32;
  return status;
}

} // namespace

Result<std::unique_ptr<ProcessManager>> ProcessManager::find(Deadline deadline) {
  std::string size;
  const Launcher *launcher = findLauncher(size);
  if (!std::getenv("PMIX_RANK") || !std::getenv("PMIX_NAMESPACE")) {
    if (launcher)
      return unusable(launcher, size, "it has given no PMIX_RANK");
    return std::unique_ptr<ProcessManager>();
  }
  auto failed = [&](pmix_status_t status) {
    if (status == PMIX_ERR_TIMEOUT)
      return Status::error(ErrorKind::lost, "the PMIx server of {} does not answer: is the daemon on this host alive?",
                           launcher ? launcher->name : "the launcher");
    return unusable(launcher, size, PMIx_Error_string(status));
  };
  auto me = std::make_shared<pmix_proc_t>();
  if (pmix_status_t status = callBefore(deadline, [me] { return PMIx_Init(me.get(), nullptr, 0); });
      status != PMIX_SUCCESS)
    return failed(status);
  std::unique_ptr<ProcessManager> manager(new ProcessManager());
  manager->self = me->rank;
  manager->space = me->nspace;
  pmix_status_t status = getNumber(manager->space, PMIX_JOB_SIZE, deadline, manager->all);
  if (status == PMIX_SUCCESS)
    status = getNumber(manager->space, PMIX_LOCAL_SIZE, deadline, manager->onHost);
  if (status != PMIX_SUCCESS)
    return failed(status);
  if (manager->all == 1) {
    if (launcher)
      return unusable(launcher, size, "it knows of one process only");
    return std::unique_ptr<ProcessManager>();
  }
  return manager;
}

ProcessManager::~ProcessManager() {
  constexpr std::chrono::milliseconds farewell{5000};
  (void)callBefore(deadlineIn(farewell), [] { return PMIx_Finalize(nullptr, 0); });
}

/// Process 0's part of share().
static pmix_status_t publish(const std::string &text) {
  pmix_value_t value;
  PMIX_VALUE_CONSTRUCT(&value);
  value.type = PMIX_STRING;
  value.data.string = strdup(text.c_str());
  pmix_status_t status = PMIx_Put(PMIX_GLOBAL, sharedKey, &value);
  PMIX_VALUE_DESTRUCT(&value);
  return status == PMIX_SUCCESS ? PMIx_Commit() : status;
}

static pmix_status_t meetEveryone() {
  pmix_info_t collect;
  bool isCollecting = true;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &isCollecting, PMIX_BOOL);
  return PMIx_Fence(nullptr, 0, &collect, 1);
}

Result<std::string> ProcessManager::share(const std::string &text, Deadline deadline) {
  auto failed = [](const char *what, pmix_status_t status) {
    return Status::error(ErrorKind::lost, "PMIx could not {}: {}", what, PMIx_Error_string(status));
  };
  if (self == 0)
    if (pmix_status_t status = callBefore(deadline, [text] { return publish(text); }); status != PMIX_SUCCESS)
      return failed("publish where the processes meet", status);
  pmix_status_t status = callBefore(deadline, meetEveryone);
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
    return failed("bring all processes together", status);
  std::shared_ptr<pmix_value_t *> value;
  status = getValue(space, 0, sharedKey, deadline, value);
  if (status != PMIX_SUCCESS)
    return failed("tell where the processes meet", status);
  return (*value)->type == PMIX_STRING && (*value)->data.string ? std::string((*value)->data.string) : std::string();
}

} // namespace dg
