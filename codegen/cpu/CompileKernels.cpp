// SPDX-License-Identifier: Apache-2.0
#include "codegen/cpu/CompileKernels.h"

#include "codegen/cpu/LowerToLlvm.h"
#include "codegen/cpu/NativeObject.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Threading.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

using namespace mlir;

namespace dg::codegen {

namespace {

/// The units that are left, and what the workers have made of the others.
struct Work {
  llvm::ArrayRef<std::string> units;
  std::vector<size_t> order; ///< the largest first, so that no core is left with one at the end
  std::vector<std::string> objects;
  std::atomic<size_t> next = 0;

  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  size_t done = 0, workers = 0;
  std::string error;
  CodeTimes times;
};

/// Seconds that this thread has computed since it was made or last asked.
class Watch {
public:
  double lap() {
    double before = std::exchange(last, now());
    return last - before;
  }

private:
  static double now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
  }
  double last = now();
};

/// One thread's part. MLIR's contexts are not shared: creating a type in one takes no lock.
void runWorker(Work &work, const Target &target, const ObjectCache *cache) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadKernelDialects(context);
  std::string error;
  ScopedDiagnosticHandler collect(&context, [&](Diagnostic &diagnostic) { error += diagnostic.str(); });
  auto compile = [&](llvm::StringRef unit, CodeTimes &times) -> FailureOr<std::string> {
    Watch watch;
    llvm::LLVMContext llvmContext;
    std::unique_ptr<llvm::Module> module;
    {
      auto lock = useLlvm();
      OwningOpRef<ModuleOp> kernels = parseSourceString<ModuleOp>(unit, &context);
      module = kernels ? lowerToLlvm(*kernels, llvmContext) : nullptr;
    }
    times.lowering += watch.lap();
    if (!module)
      return failure();
    optimize(*module, target);
    times.optimizing += watch.lap();
    FailureOr<std::string> object = generate(*module, target, CodeForm::object);
    times.generating += watch.lap();
    return object;
  };
  for (size_t at = work.next++; at < work.order.size(); at = work.next++) {
    llvm::StringRef unit = work.units[work.order[at]];
    std::string key = cache ? cache->keyOf(unit, target) : "";
    CodeTimes times;
    FailureOr<std::string> object = failure();
    if (std::optional<std::string> known = cache ? cache->find(key) : std::nullopt) {
      object = std::move(*known);
      times.cached = 1;
    } else if (object = compile(unit, times); succeeded(object) && cache) {
      cache->store(key, *object);
    }
    std::lock_guard lock(work.mutex);
    work.times.cached += times.cached;
    work.times.lowering += times.lowering;
    work.times.optimizing += times.optimizing;
    work.times.generating += times.generating;
    ++work.done;
    if (succeeded(object)) {
      work.objects[work.order[at]] = std::move(*object);
      continue;
    }
    work.error = error.empty() ? "the processor's code generator failed" : error;
    work.next = work.order.size();
  }
  std::lock_guard lock(work.mutex);
  --work.workers;
  work.changed.notify_all();
}

} // namespace

FailureOr<std::vector<std::string>> compileKernels(llvm::ArrayRef<std::string> units, const Target &target,
                                                   const CodeOptions &options, std::string &error) {
  Work work;
  work.units = units;
  work.objects.resize(units.size());
  work.order.resize(units.size());
  std::iota(work.order.begin(), work.order.end(), 0);
  llvm::stable_sort(work.order, [&](size_t a, size_t b) { return units[a].size() > units[b].size(); });
  work.workers = std::min<size_t>(llvm::hardware_concurrency().compute_thread_count(), units.size());
  std::vector<std::thread> threads;
  for (size_t i = 0, count = work.workers; i < count; ++i)
    threads.emplace_back([&] { runWorker(work, target, options.cache); });
  {
    std::unique_lock lock(work.mutex);
    while (!work.changed.wait_for(lock, std::chrono::milliseconds(200), [&] { return work.workers == 0; }))
      if (options.progress) {
        size_t done = work.done;
        lock.unlock();
        options.progress(done, units.size());
        lock.lock();
      }
  }
  for (std::thread &thread : threads)
    thread.join();
  if (options.times) {
    options.times->kernels += units.size();
    options.times->cached += work.times.cached;
    options.times->lowering += work.times.lowering;
    options.times->optimizing += work.times.optimizing;
    options.times->generating += work.times.generating;
  }
  if (!work.error.empty()) {
    error = work.error;
    return failure();
  }
  return std::move(work.objects);
}

} // namespace dg::codegen
