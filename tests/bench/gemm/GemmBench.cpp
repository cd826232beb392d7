// SPDX-License-Identifier: Apache-2.0
// Measures generated matrix products against OpenBLAS on one thread: gemm_bench [m n k]. Both run in turn; the figure
// of each is the best of many calls in the processor time of the thread, so that a busy machine disturbs it little.
#include "codegen/Kernels.h"
#include "ir/Dialect.h"
#include "runtime/abi/KernelAbi.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace dg::codegen;

namespace {
/// OpenBLAS, told which processor it has: it does not know every one, and then takes a kernel of 20 years ago.
struct OpenBlas {
  using Sgemm = void (*)(int order, int transposeA, int transposeB, int m, int n, int k, float alpha, const float *a,
                         int lda, const float *b, int ldb, float beta, float *c, int ldc);
  Sgemm sgemm = nullptr;
  const char *core = "";

  explicit OpenBlas(const Target &target) {
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_CORETYPE", target.vectorBytes == 64 ? "SkylakeX" : "Haswell", 0);
    void *library = dlopen("libopenblas.so.0", RTLD_NOW);
    if (!library) {
      std::fprintf(stderr, "%s\ninstall libopenblas0\n", dlerror());
      std::exit(1);
    }
    sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    core = reinterpret_cast<const char *(*)()>(dlsym(library, "openblas_get_corename"))();
  }
};

struct Shape {
  int64_t m, n, k;
};

double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

float *buffer(int64_t elements) {
  auto *data = static_cast<float *>(std::aligned_alloc(64, size_t(elements * 4 + 63) / 64 * 64));
  for (int64_t i = 0; i < elements; ++i)
    data[i] = float(std::rand() % 1000) / 1000 - 0.5f;
  return data;
}

/// The best time of one call, of both in turn.
std::pair<double, double> measure(llvm::function_ref<void()> ours, llvm::function_ref<void()> theirs, double flops) {
  int calls = int(std::max(1.0, 2e6 / flops));
  double best[2] = {1e9, 1e9}, start = seconds();
  for (int round = 0; round < 1000 && seconds() - start < 1.0; ++round)
    for (int side = 0; side < 2; ++side) {
      double from = seconds();
      for (int call = 0; call < calls; ++call)
        side ? theirs() : ours();
      best[side] = std::min(best[side], (seconds() - from) / calls);
    }
  return {best[0], best[1]};
}

void run(MLIRContext &context, const Target &target, const OpenBlas &openBlas, Shape shape) {
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> holder = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToStart(holder->getBody());
  KernelModule kernels(context, target);
  KernelSpec specs[4];
  auto type = [&](int64_t rows, int64_t columns) {
    return RankedTensorType::get({rows, columns}, builder.getF32Type());
  };
  for (int form = 0; form < 4; ++form) {
    bool left = form & 2, right = form & 1;
    OperationState state(builder.getUnknownLoc(), "dg.matmul");
    Type a = left ? type(shape.k, shape.m) : type(shape.m, shape.k),
         b = right ? type(shape.n, shape.k) : type(shape.k, shape.n);
    state.addOperands(
        {holder->getBody()->addArgument(a, state.location), holder->getBody()->addArgument(b, state.location)});
    state.addTypes(type(shape.m, shape.n));
    if (left)
      state.addAttribute("transpose_lhs", builder.getUnitAttr());
    if (right)
      state.addAttribute("transpose_rhs", builder.getUnitAttr());
    FailureOr<KernelSpec> spec = kernels.addKernel(builder.create(state));
    if (failed(spec))
      std::exit(1);
    specs[form] = *spec;
  }
  FailureOr<std::string> object = kernels.emitObject();
  if (failed(object))
    std::exit(1);
  int file = memfd_create("kernels", 0);
  if (write(file, object->data(), object->size()) != ssize_t(object->size()))
    std::exit(1);
  void *handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW);
  float *a = buffer(shape.m * shape.k), *b = buffer(shape.k * shape.n), *c = buffer(shape.m * shape.n);
  double flops = 2.0 * double(shape.m) * double(shape.n) * double(shape.k);
  std::printf("%5ld x %5ld x %5ld ", long(shape.m), long(shape.n), long(shape.k));
  for (int form = 0; form < 4; ++form) {
    auto kernel = reinterpret_cast<dg_kernel>(dlsym(handle, specs[form].symbol.c_str()));
    void *pointers[] = {a, b, c};
    dg_scalars scalars{};
    bool left = form & 2, right = form & 1;
    auto [ours, theirs] = measure(
        [&] {
          for (uint32_t tile = 0; tile < specs[form].tiles; ++tile)
            kernel(pointers, &scalars, tile);
        },
        [&] {
          openBlas.sgemm(101, left ? 112 : 111, right ? 112 : 111, int(shape.m), int(shape.n), int(shape.k), 1, a,
                         int(left ? shape.m : shape.k), b, int(right ? shape.k : shape.n), 0, c, int(shape.n));
        },
        flops);
    std::printf("| %s%s %6.1f /%6.1f = %4.2f (%u tiles of %.0f us) ", left ? "At" : "A ", right ? "Bt" : "B ",
                flops / ours * 1e-9, flops / theirs * 1e-9, theirs / ours, specs[form].tiles,
                ours * 1e6 / specs[form].tiles);
  }
  std::printf("\n");
  std::fflush(stdout);
  dlclose(handle);
  close(file);
  std::free(a), std::free(b), std::free(c);
}
} // namespace

int main(int argc, char **argv) {
  MLIRContext context;
  DialectRegistry registry;
  registerKernelDialects(registry);
  registry.insert<dg::ir::DGDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  std::string error;
  const char *name = std::getenv("DG_BENCH_TARGET");
  FailureOr<Target> target = Target::parse(name ? name : "native", error);
  if (failed(target)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 2;
  }
  OpenBlas openBlas(*target);
  std::printf("GFLOP/s ours / OpenBLAS (%s), target %s (%s)\n", openBlas.core, target->name.c_str(),
              target->cpu.c_str());
  if (argc == 4) {
    run(context, *target, openBlas, {std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3])});
    return 0;
  }
  for (Shape shape : {Shape{256, 1024, 784},
                      {256, 1024, 1024},
                      {1024, 384, 1536},
                      {1024, 1536, 384},
                      {1024, 8192, 384},
                      {256, 10, 1024},
                      {64, 50, 320},
                      {64, 10, 50},
                      {64, 20, 10},
                      {256, 256, 64}})
    run(context, *target, openBlas, shape);
}
