// SPDX-License-Identifier: Apache-2.0
// The only file that knows PMIx.
#include "runtime/launch/ranks/ProcessManager.h"

#include <pmix.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace dg {
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

pmix_status_t getNumber(const pmix_proc_t &proc, const char *key, int64_t &number) {
  pmix_value_t *value = nullptr;
  pmix_status_t status = PMIx_Get(&proc, key, nullptr, 0, &value);
  if (status == PMIX_SUCCESS && value->type == PMIX_UINT32)
    number = value->data.uint32;
  else if (status == PMIX_SUCCESS)
    status = PMIX_ERR_TYPE_MISMATCH;
  if (value)
    PMIX_VALUE_RELEASE(value);
  return status;
}

/// A fence of which one can tire.
struct Fence {
  std::mutex mutex;
  std::condition_variable ended;
  bool isOver = false;
  pmix_status_t status = PMIX_ERR_TIMEOUT;

  static void finish(pmix_status_t status, void *self) {
    Fence &fence = *static_cast<Fence *>(self);
    std::lock_guard lock(fence.mutex);
    fence.isOver = true;
    fence.status = status;
    fence.ended.notify_all();
  }
};

} // namespace

Result<std::unique_ptr<ProcessManager>> ProcessManager::find() {
  std::string size;
  const Launcher *launcher = findLauncher(size);
  if (!std::getenv("PMIX_RANK") || !std::getenv("PMIX_NAMESPACE")) {
    if (launcher)
      return unusable(launcher, size, "it has given no PMIX_RANK");
    return std::unique_ptr<ProcessManager>();
  }
  pmix_proc_t me;
  if (pmix_status_t status = PMIx_Init(&me, nullptr, 0); status != PMIX_SUCCESS)
    return unusable(launcher, size, PMIx_Error_string(status));
  std::unique_ptr<ProcessManager> manager(new ProcessManager());
  manager->self = me.rank;
  manager->space = me.nspace;
  pmix_proc_t job = me;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_status_t status = getNumber(job, PMIX_JOB_SIZE, manager->all);
  if (status == PMIX_SUCCESS)
    status = getNumber(job, PMIX_LOCAL_SIZE, manager->onHost);
  if (status != PMIX_SUCCESS)
    return unusable(launcher, size, PMIx_Error_string(status));
  if (manager->all == 1) {
    if (launcher)
      return unusable(launcher, size, "it knows of one process only");
    return std::unique_ptr<ProcessManager>();
  }
  return manager;
}

ProcessManager::~ProcessManager() { PMIx_Finalize(nullptr, 0); }

Result<std::string> ProcessManager::share(const std::string &text, Deadline deadline) {
  auto failed = [](const char *what, pmix_status_t status) {
    return Status::error(ErrorKind::runFailed, "PMIx could not {}: {}", what, PMIx_Error_string(status));
  };
  if (self == 0) {
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_STRING;
    value.data.string = strdup(text.c_str());
    pmix_status_t status = PMIx_Put(PMIX_GLOBAL, sharedKey, &value);
    PMIX_VALUE_DESTRUCT(&value);
    if (status == PMIX_SUCCESS)
      status = PMIx_Commit();
    if (status != PMIX_SUCCESS)
      return failed("publish where the processes meet", status);
  }
  pmix_info_t collect;
  bool isCollecting = true;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &isCollecting, PMIX_BOOL);
  // Kept alive when the wait is given up: PMIx may still answer.
  static Fence fence;
  pmix_status_t status = PMIx_Fence_nb(nullptr, 0, &collect, 1, Fence::finish, &fence);
  if (status == PMIX_SUCCESS) {
    std::unique_lock lock(fence.mutex);
    fence.ended.wait_until(lock, deadline, [] { return fence.isOver; });
    status = fence.status;
  }
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
    return failed("bring all processes together", status);
  pmix_proc_t first;
  PMIX_LOAD_PROCID(&first, space.c_str(), 0);
  pmix_value_t *value = nullptr;
  status = PMIx_Get(&first, sharedKey, nullptr, 0, &value);
  if (status != PMIX_SUCCESS)
    return failed("tell where the processes meet", status);
  std::string shared = value->type == PMIX_STRING && value->data.string ? value->data.string : "";
  PMIX_VALUE_RELEASE(value);
  return shared;
}

} // namespace dg
