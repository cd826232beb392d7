// SPDX-License-Identifier: Apache-2.0
// Measures kernels on one thread: kernel_bench < list, one op a line as `dg.relu 64x20xf32` or `dg.pick_grad 64xf32
// 64xi64 {classes = 10 : i64}`; without a terminal or file on stdin, `kernel_bench lenet` and `kernel_bench gpt` take
// the kernels of these models. The figure is the best of many calls in the processor time of the thread; it also prints
// what compiling all of them took.
#include "codegen/kernels/Kernels.h"
#include "ir/dialect/Dialect.h"
#include "runtime/abi/KernelAbi.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <iostream>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace dg::codegen;

namespace {
const char *lenet[] = {"dg.conv2d 64x1x28x28xf32 10x1x5x5xf32",
                       "dg.add 64x10x24x24xf32 10x1x1xf32",
                       "dg.max_pool2d 64x10x24x24xf32 {kernel = array<i64: 2, 2>}",
                       "dg.relu 64x10x12x12xf32",
                       "dg.conv2d 64x10x12x12xf32 20x10x5x5xf32",
                       "dg.max_pool2d 64x20x8x8xf32 {kernel = array<i64: 2, 2>}",
                       "dg.matmul 64x320xf32 50x320xf32 {transpose_rhs}",
                       "dg.matmul 64x50xf32 10x50xf32 {transpose_rhs}",
                       "dg.log_softmax 64x10xf32",
                       "dg.pick 64x10xf32 64xi64",
                       "dg.pick_grad 64xf32 64xi64 {classes = 10 : i64}",
                       "dg.log_softmax_grad 64x10xf32 64x10xf32",
                       "dg.matmul 64x10xf32 10x50xf32",
                       "dg.matmul 64x10xf32 64x50xf32 {transpose_lhs}",
                       "dg.reduce_sum 64x10xf32 {dims = array<i64: 0>}",
                       "dg.matmul 64x50xf32 64x320xf32 {transpose_lhs}",
                       "dg.matmul 64x50xf32 50x320xf32",
                       "dg.relu_grad 64x20x4x4xf32 64x20x4x4xf32",
                       "dg.max_pool2d_grad 64x20x4x4xf32 64x20x8x8xf32 {kernel = array<i64: 2, 2>}",
                       "dg.conv2d_weight_grad 64x20x8x8xf32 64x10x12x12xf32 {kernel_size = array<i64: 5, 5>}",
                       "dg.reduce_sum 64x20x8x8xf32 {dims = array<i64: 0, 2, 3>}",
                       "dg.conv2d_input_grad 64x20x8x8xf32 20x10x5x5xf32 {input_size = array<i64: 12, 12>}",
                       "dg.relu_grad 64x10x12x12xf32 64x10x12x12xf32",
                       "dg.max_pool2d_grad 64x10x12x12xf32 64x10x24x24xf32 {kernel = array<i64: 2, 2>}",
                       "dg.conv2d_weight_grad 64x10x24x24xf32 64x1x28x28xf32 {kernel_size = array<i64: 5, 5>}",
                       "dg.reduce_sum 64x10x24x24xf32 {dims = array<i64: 0, 2, 3>}",
                       "dg.momentum 50x320xf32 50x320xf32 50x320xf32 {momentum = 0.5 : f64}"};
const char *gpt[] = {
    "dg.embedding 8192x384xf32 4x256xi64",
    "dg.layer_norm 4x256x384xf32 384xf32 384xf32",
    "dg.matmul 1024x384xf32 384x384xf32 {transpose_rhs}",
    "dg.transpose 4x256x6x64xf32 {permutation = array<i64: 0, 2, 1, 3>}",
    "dg.matmul 4x6x256x64xf32 4x6x256x64xf32 {transpose_rhs}",
    "dg.softmax 4x6x256x256xf32 {scale = 0.125 : f64, causal}",
    "dg.matmul 4x6x256x256xf32 4x6x256x64xf32",
    "dg.add 1024x1536xf32 1536xf32",
    "dg.gelu 1024x1536xf32",
    "dg.gelu_grad 1024x1536xf32 1024x1536xf32",
    "dg.matmul 1024x384xf32 8192x384xf32 {transpose_rhs}",
    "dg.log_softmax 4x256x8192xf32",
    "dg.log_softmax_grad 4x256x8192xf32 4x256x8192xf32",
    "dg.pick 4x256x8192xf32 4x256xi64",
    "dg.pick_grad 4x256xf32 4x256xi64 {classes = 8192 : i64}",
    "dg.layer_norm_grad 4x256x384xf32 4x256x384xf32 384xf32",
    "dg.softmax_grad 4x6x256x256xf32 4x6x256x256xf32 {scale = 0.125 : f64}",
    "dg.reduce_sum 1024x1536xf32 {dims = array<i64: 0>}",
    "dg.embedding_grad 4x256x384xf32 4x256xi64 {rows = 8192 : i64}",
    "dg.adam 8192x384xf32 8192x384xf32 8192x384xf32 8192x384xf32 {decoupled, weight_decay = 0.01 : f64}"};

double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

Operation *makeOp(OpBuilder &builder, Block *block, llvm::StringRef line) {
  auto [head, attributes] = line.split('{');
  llvm::SmallVector<llvm::StringRef> words;
  llvm::SplitString(head, words);
  OperationState state(builder.getUnknownLoc(), words[0]);
  for (llvm::StringRef word : llvm::ArrayRef(words).drop_front())
    state.addOperands(
        block->addArgument(parseType(("tensor<" + word + ">").str(), builder.getContext()), state.location));
  if (!attributes.empty())
    state.addAttributes(
        cast<DictionaryAttr>(parseAttribute(("{" + attributes).str(), builder.getContext())).getValue());
  auto *infer = state.name.getInterface<InferTypeOpInterface>();
  Operation *probe = Operation::create(state.location, state.name, {}, state.operands,
                                       DictionaryAttr::get(builder.getContext(), state.attributes.getAttrs()),
                                       OpaqueProperties(nullptr), {}, 0);
  llvm::SmallVector<Type> types;
  LogicalResult inferred =
      infer->inferReturnTypes(builder.getContext(), state.location, state.operands,
                              probe->getDiscardableAttrDictionary(), probe->getPropertiesStorage(), {}, types);
  probe->destroy();
  if (failed(inferred))
    return nullptr;
  state.addTypes(types);
  return builder.create(state);
}

/// A buffer of numbers in [0, 1), or of zeros for integers.
void *makeBuffer(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  size_t bytes = size_t(tensor.getNumElements()) * tensor.getElementTypeBitWidth() / 8;
  void *data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  for (size_t i = 0; i < bytes / 4; ++i)
    tensor.getElementType().isF32() ? static_cast<float *>(data)[i] = float(std::rand() % 1000) / 1000
                                    : static_cast<float *>(data)[i] = 0;
  return data;
}
} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> lines;
  if (argc > 1 && std::string(argv[1]) == "lenet")
    lines.assign(std::begin(lenet), std::end(lenet));
  else if (argc > 1 && std::string(argv[1]) == "gpt")
    lines.assign(std::begin(gpt), std::end(gpt));
  else
    for (std::string line; std::getline(std::cin, line);)
      lines.push_back(line);

  MLIRContext context;
  DialectRegistry registry;
  registerKernelDialects(registry);
  registry.insert<dg::ir::DGDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  std::string error;
  const char *name = std::getenv("DG_BENCH_TARGET");
  FailureOr<Target> target = Target::parse(name ? name : "native", error);
  if (failed(target))
    return 2;
  OpBuilder builder(&context);
  OwningOpRef<ModuleOp> holder = ModuleOp::create(builder.getUnknownLoc());
  builder.setInsertionPointToStart(holder->getBody());
  KernelModule kernels(context, *target);
  std::vector<std::pair<Operation *, KernelSpec>> ops;
  double start = seconds();
  for (const std::string &line : lines) {
    Operation *op = makeOp(builder, holder->getBody(), line);
    FailureOr<KernelSpec> spec = op ? kernels.addKernel(op) : FailureOr<KernelSpec>();
    if (failed(spec))
      return 1;
    ops.emplace_back(op, *spec);
  }
  double built = seconds();
  FailureOr<std::string> object = kernels.emitObject();
  if (failed(object))
    return 1;
  std::printf("%zu kernels: emitted in %.2f s, compiled in %.2f s, %zu bytes\n", kernels.size(), built - start,
              seconds() - built, object->size());
  int file = memfd_create("kernels", 0);
  if (write(file, object->data(), object->size()) != ssize_t(object->size()))
    return 1;
  void *handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW);
  double total = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    auto &[op, spec] = ops[i];
    std::vector<void *> pointers;
    for (Type type : op->getOperandTypes())
      pointers.push_back(makeBuffer(type));
    for (unsigned r = 0; r < op->getNumResults(); ++r)
      if (spec.aliasedOperand[r] < 0)
        pointers.push_back(makeBuffer(op->getResult(r).getType()));
    auto kernel = reinterpret_cast<dg_kernel>(dlsym(handle, spec.symbol.c_str()));
    dg_scalars scalars{1, 0, 0.0f};
    double best = 1e9, from = seconds();
    for (int round = 0; round < 2000 && seconds() - from < 0.3; ++round) {
      double before = seconds();
      for (uint32_t tile = 0; tile < spec.tiles; ++tile)
        kernel(pointers.data(), &scalars, tile);
      best = std::min(best, seconds() - before);
    }
    total += best;
    std::printf("%10.1f us %5u tiles  %s\n", best * 1e6, spec.tiles, lines[i].c_str());
    std::fflush(stdout);
    for (void *pointer : pointers)
      std::free(pointer);
  }
  std::printf("%10.1f us in all\n", total * 1e6);
}
