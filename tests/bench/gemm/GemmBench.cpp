// SPDX-License-Identifier: Apache-2.0
// Measures generated matrix products against OpenBLAS on one thread: gemm_bench [m n k | gpt]. Both run in turn; the
// figure of each is the best of many calls in the processor time of the thread, so that a busy machine disturbs it
// little. `gpt`: the products of a training step of examples/gpt.mlir, each call on other matrices, as in a step, where
// nothing of them is in a cache.
#include "codegen/kernels/Kernels.h"
#include "ir/dialect/Dialect.h"
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
#include <vector>

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

/// On huge pages where there are any, as an arena.
float *buffer(int64_t elements) {
  constexpr size_t hugePage = size_t(2) << 20;
  size_t bytes = (size_t(elements) * 4 + hugePage - 1) / hugePage * hugePage;
  auto *data = static_cast<float *>(std::aligned_alloc(hugePage, bytes));
  (void)madvise(data, bytes, MADV_HUGEPAGE);
  for (int64_t i = 0; i < elements; ++i)
    data[i] = float(std::rand() % 1000) / 1000 - 0.5f;
  return data;
}

/// The matrices of one call after the other: one set, or as many as no cache holds.
struct Matrices {
  struct Set {
    float *a, *b, *c;
  };
  std::vector<Set> sets;
  size_t next = 0;

  Matrices(int64_t a, int64_t b, int64_t c, bool isCold) {
    constexpr int64_t largestCacheElements = int64_t(32) << 20;
    int64_t count = isCold ? 2 + largestCacheElements / (a + b + c) : 1;
    for (int64_t i = 0; i < count; ++i)
      sets.push_back({buffer(a), buffer(b), buffer(c)});
  }
  ~Matrices() {
    for (const Set &set : sets)
      std::free(set.a), std::free(set.b), std::free(set.c);
  }
  Matrices(const Matrices &) = delete;
  const Set &take() { return sets[next++ % sets.size()]; }
};

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

/// A bit for each form: a·b, a·bᵀ, aᵀ·b, aᵀ·bᵀ.
constexpr int allForms = 15;

void run(MLIRContext &context, const Target &target, const OpenBlas &openBlas, Shape shape, int forms = allForms,
         bool isCold = false) {
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
  Matrices matrices(shape.m * shape.k, shape.k * shape.n, shape.m * shape.n, isCold);
  double flops = 2.0 * double(shape.m) * double(shape.n) * double(shape.k);
  std::printf("%5ld x %5ld x %5ld ", long(shape.m), long(shape.n), long(shape.k));
  for (int form = 0; form < 4; ++form) {
    if (!(forms >> form & 1))
      continue;
    auto kernel = reinterpret_cast<dg_kernel>(dlsym(handle, specs[form].symbol.c_str()));
    dg_scalars scalars{};
    bool left = form & 2, right = form & 1;
    auto [ours, theirs] = measure(
        [&] {
          auto [a, b, c] = matrices.take();
          void *pointers[] = {a, b, c};
          for (uint32_t tile = 0; tile < specs[form].tiles; ++tile)
            kernel(pointers, &scalars, tile);
        },
        [&] {
          auto [a, b, c] = matrices.take();
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
  if (argc == 2 && std::strcmp(argv[1], "gpt") == 0) {
    // Forward, gradient at the input, gradient at the weight.
    for (auto [out, in] : {std::pair<int64_t, int64_t>{384, 384}, {1536, 384}, {384, 1536}, {8192, 384}}) {
      run(context, *target, openBlas, {1024, out, in}, 2, true);
      run(context, *target, openBlas, {1024, in, out}, 1, true);
      run(context, *target, openBlas, {out, in, 1024}, 4, true);
    }
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
