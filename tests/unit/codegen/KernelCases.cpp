// SPDX-License-Identifier: Apache-2.0
// How the cases are built, run and compared.
#include "tests/unit/codegen/KernelCases.h"

#include "codegen/emit/KernelBuilder.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/reference/OpEvaluation.h"
#include "runtime/abi/KernelAbi.h"
#include "runtime/support/BFloat16.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace dg::codegen {

LoadedObject::LoadedObject(const std::string &bytes) {
  int file = memfd_create("kernels", 0);
  if (file < 0 || write(file, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
    return;
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  close(file);
}
LoadedObject::~LoadedObject() {
  if (handle)
    dlclose(handle);
}
void *LoadedObject::find(const std::string &symbol) const { return dlsym(handle, symbol.c_str()); }

namespace {
/// Bytes at an aligned address with a pattern after them that must survive.
class GuardedBuffer {
public:
  explicit GuardedBuffer(size_t bytes) : bytes(bytes) {
    size_t whole = (bytes + guard + DG_BUFFER_ALIGNMENT - 1) / DG_BUFFER_ALIGNMENT * DG_BUFFER_ALIGNMENT;
    memory.reset(static_cast<char *>(std::aligned_alloc(DG_BUFFER_ALIGNMENT, whole)));
    std::memset(memory.get(), 0xff, bytes); // NaN
    std::memset(memory.get() + bytes, 0x5a, guard);
  }
  char *data() const { return memory.get(); }
  bool isGuardWhole() const {
    for (size_t i = 0; i < guard; ++i)
      if (memory.get()[bytes + i] != 0x5a)
        return false;
    return true;
  }
  size_t size() const { return bytes; }

private:
  static constexpr size_t guard = 128;
  struct Free {
    void operator()(char *p) const { std::free(p); }
  };
  size_t bytes;
  std::unique_ptr<char, Free> memory;
};

size_t bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return size_t(tensor.getNumElements() * ir::elementBytes(tensor.getElementType()));
}

/// Calls `visit` with a null pointer of the C type whose bytes an element is.
template <typename Visit> auto withCType(Type element, Visit visit) {
  if (element.isF32())
    return visit(static_cast<float *>(nullptr));
  if (element.isF64())
    return visit(static_cast<double *>(nullptr));
  if (element.isF16())
    return visit(static_cast<_Float16 *>(nullptr));
  if (element.isBF16())
    return visit(static_cast<BFloat16 *>(nullptr));
  bool isUnsigned = ir::isUnsigned(element);
  switch (ir::elementBytes(element)) {
  case 1:
    return isUnsigned ? visit(static_cast<uint8_t *>(nullptr)) : visit(static_cast<int8_t *>(nullptr));
  case 2:
    return isUnsigned ? visit(static_cast<uint16_t *>(nullptr)) : visit(static_cast<int16_t *>(nullptr));
  case 4:
    return isUnsigned ? visit(static_cast<uint32_t *>(nullptr)) : visit(static_cast<int32_t *>(nullptr));
  default:
    return isUnsigned ? visit(static_cast<uint64_t *>(nullptr)) : visit(static_cast<int64_t *>(nullptr));
  }
}

void fill(char *data, Type type, const ir::HostTensor &from) {
  withCType(cast<RankedTensorType>(type).getElementType(), [&]<typename T>(T *) {
    for (size_t i = 0; i < from.data.size(); ++i)
      if constexpr (std::is_same_v<T, BFloat16>)
        reinterpret_cast<T *>(data)[i] = BFloat16(float(from.data[i]));
      else
        reinterpret_cast<T *>(data)[i] = T(from.data[i]);
  });
}

double elementAt(const char *data, Type type, size_t index) {
  return withCType(cast<RankedTensorType>(type).getElementType(),
                   [&]<typename T>(T *) { return double(reinterpret_cast<const T *>(data)[index]); });
}

/// What rounding one stored result costs, relative to it.
double roundingOf(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return element.isF16() ? 0x1p-11 : element.isBF16() ? 0x1p-8 : 0;
}

/// Leaves NaN where kernels will have their workspace: what they read there they must have written.
[[gnu::noinline]] void poisonStack() {
  char below[KernelBuilder::mostStackBytes + 65536];
  std::memset(below, 0xff, sizeof below);
  asm volatile("" : : "r"(below) : "memory");
}

ir::HostTensor shapedLike(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  ir::HostTensor host;
  host.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  host.data.resize(size_t(tensor.getNumElements()));
  return host;
}
} // namespace

KernelCases::KernelCases(const char *target) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  registry.insert<ir::DGDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  std::string error;
  FailureOr<Target> parsed = Target::parse(target, error);
  EXPECT_TRUE(succeeded(parsed)) << error;
  module = std::make_unique<KernelModule>(context, *parsed);
  holder = ModuleOp::create(UnknownLoc::get(&context));
}

Operation *KernelCases::make(const std::string &op, const std::vector<std::string> &operandTypes,
                             const std::string &attributes) {
  OpBuilder builder(&context);
  auto inner = ModuleOp::create(builder.getUnknownLoc());
  holder->push_back(inner);
  builder.setInsertionPointToStart(inner.getBody());
  OperationState state(builder.getUnknownLoc(), op);
  for (const std::string &text : operandTypes)
    state.addOperands(inner.getBody()->addArgument(parseType("tensor<" + text + ">", &context), state.location));
  if (!attributes.empty())
    state.addAttributes(cast<DictionaryAttr>(parseAttribute("{" + attributes + "}", &context)).getValue());
  if (auto *infer = state.name.getInterface<InferTypeOpInterface>()) {
    SmallVector<Type> types;
    // Properties are set from the attributes when the op is made; inference wants them before.
    Operation *probe =
        Operation::create(state.location, state.name, {}, state.operands,
                          DictionaryAttr::get(&context, state.attributes.getAttrs()), OpaqueProperties(nullptr), {}, 0);
    LogicalResult inferred =
        infer->inferReturnTypes(&context, state.location, state.operands, probe->getDiscardableAttrDictionary(),
                                probe->getPropertiesStorage(), {}, types);
    probe->destroy();
    if (failed(inferred))
      return nullptr;
    state.addTypes(types);
  }
  return builder.create(state);
}

void KernelCases::addOp(Operation *op, CaseOptions options, const std::string &name) {
  ASSERT_NE(op, nullptr) << name << ": no types";
  FailureOr<KernelSpec> spec = module->addKernel(op);
  ASSERT_TRUE(succeeded(spec)) << name;
  cases.push_back({op, *spec, options, name});
}

void KernelCases::add(const std::string &op, const std::vector<std::string> &operandTypes,
                      const std::string &attributes, CaseOptions options) {
  std::string name = op;
  for (const std::string &type : operandTypes)
    name += " " + type;
  addOp(make(op, operandTypes, attributes), options, name + " {" + attributes + "}");
}

void KernelCases::addText(const std::string &op, const std::string &text, CaseOptions options) {
  auto parsed = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(parsed) << text;
  Operation *found = nullptr;
  parsed->walk([&](Operation *inner) {
    if (!found && inner->getName().getStringRef() == op)
      found = inner;
  });
  texts.push_back(std::move(parsed));
  addOp(found, options, text);
}

void KernelCases::run(const Case &one, const LoadedObject &object) {
  SCOPED_TRACE(one.name);
  if (one.spec.tiles == 0)
    return;
  auto kernel = reinterpret_cast<dg_kernel>(object.find(one.spec.symbol));
  ASSERT_NE(kernel, nullptr) << one.spec.symbol;
  bool accumulates = one.op->getName().getStringRef() == "dg.accumulate";
  std::vector<Type> inputTypes(one.op->operand_type_begin(), one.op->operand_type_end());
  if (accumulates)
    inputTypes.push_back(inputTypes[0]);

  std::vector<ir::HostTensor> inputs;
  std::normal_distribution<double> normal(0, one.options.spread);
  std::uniform_real_distribution<double> uniform(0.5, 2);
  for (Type type : inputTypes) {
    ir::HostTensor input = shapedLike(type);
    Type elementType = cast<RankedTensorType>(type).getElementType();
    for (double &element : input.data) {
      if (isa<FloatType>(elementType))
        element = one.options.positive ? uniform(random) : normal(random);
      else if (one.options.wholeRange)
        // At most 52 bits, which a double holds also as an unsigned number.
        element = double(int64_t(random() | uint64_t(random()) << 32) >> (12 + random() % 50));
      else
        element = double(random() % uint32_t(one.options.indexBound));
      if (elementType.isUnsignedInteger(64))
        element = std::abs(element);
      element = ir::storedElement(element, elementType);
    }
    if (one.options.specials && isa<FloatType>(elementType)) {
      // Different starts and steps, so that operands meet in many pairs.
      double specials[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 100, -100};
      size_t start = inputs.size() * 5;
      for (size_t i = 0; i < std::min(input.data.size(), 3 * std::size(specials)); ++i)
        input.data[i] = specials[(i * (1 + inputs.size()) + start) % std::size(specials)];
    }
    inputs.push_back(std::move(input));
  }
  std::vector<ir::HostTensor> expected;
  if (accumulates) {
    expected.push_back(inputs[1]);
    for (size_t i = 0; i < expected[0].data.size(); ++i)
      expected[0].data[i] += inputs[0].data[i];
  } else {
    auto evaluated = ir::evaluateOp(one.op, inputs, {one.options.lr, one.options.step, one.options.seed},
                                    one.options.stored ? ir::Precision::f32 : ir::Precision::f64);
    ASSERT_TRUE(succeeded(evaluated));
    expected.assign(evaluated->begin(), evaluated->end());
  }

  dg_scalars scalars{one.options.step, one.options.seed, float(one.options.lr)};
  std::vector<std::string> firstBytes;
  for (int round = 0; round < 3; ++round) {
    std::vector<GuardedBuffer> buffers;
    for (size_t i = 0; i < inputs.size(); ++i)
      fill(buffers.emplace_back(bytesOf(inputTypes[i])).data(), inputTypes[i], inputs[i]);
    std::vector<size_t> resultBuffers;
    for (unsigned i = 0; i < one.op->getNumResults(); ++i) {
      if (one.spec.aliasedOperand[i] >= 0) {
        resultBuffers.push_back(size_t(one.spec.aliasedOperand[i]));
        continue;
      }
      resultBuffers.push_back(buffers.size());
      buffers.emplace_back(bytesOf(one.op->getResult(i).getType()));
    }
    if (accumulates)
      resultBuffers.push_back(1);
    for (int64_t bytes : one.spec.scratchBytes)
      buffers.emplace_back(size_t(bytes));
    std::vector<void *> pointers;
    for (const GuardedBuffer &buffer : buffers)
      pointers.push_back(buffer.data());
    std::vector<uint32_t> order(one.spec.tiles);
    std::iota(order.begin(), order.end(), 0u);
    if (round > 0)
      std::shuffle(order.begin(), order.end(), random);
    poisonStack();
    for (uint32_t tile : order)
      kernel(pointers.data(), &scalars, tile);

    for (size_t i = 0; i < buffers.size(); ++i)
      ASSERT_TRUE(buffers[i].isGuardWhole()) << "bytes after buffer " << i << " were changed";
    for (size_t r = 0; r < resultBuffers.size(); ++r) {
      const GuardedBuffer &buffer = buffers[resultBuffers[r]];
      std::string bytes(buffer.data(), buffer.size());
      if (round > 0) {
        ASSERT_EQ(bytes == firstBytes[r], true) << "result " << r << " depends on the order of its tiles";
        continue;
      }
      firstBytes.push_back(bytes);
      Type resultType = accumulates ? inputTypes[1] : one.op->getResult(unsigned(r)).getType();
      double tolerance = one.options.tolerance + (one.options.stored ? 0 : roundingOf(resultType));
      double largest = 0;
      for (double value : expected[r].data)
        largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
      int wrong = 0;
      for (size_t i = 0; i < expected[r].data.size() && wrong < 3; ++i) {
        double want = expected[r].data[i], got = elementAt(buffer.data(), resultType, i),
               scale = one.options.relative ? std::abs(want) + 1e-30 : std::max(largest, 1e-30);
        // What overflows, or becomes subnormal, is compared with what the type holds.
        double stored = ir::storedElement(want, cast<RankedTensorType>(resultType).getElementType());
        bool isEqual = got == want || got == stored || (std::isnan(got) && std::isnan(want));
        if (!isEqual && !(std::abs(got - want) <= tolerance * scale)) {
          ADD_FAILURE() << "result " << r << ", element " << i << ": found " << got << ", expected " << want;
          ++wrong;
        }
      }
    }
  }
}

void KernelCases::check() {
  FailureOr<std::string> bytes = module->emitObject();
  ASSERT_TRUE(succeeded(bytes));
  LoadedObject object(*bytes);
  ASSERT_TRUE(object.isLoaded());
  const auto *version = static_cast<const uint32_t *>(object.find(DG_ABI_VERSION_SYMBOL));
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(*version, DG_ABI_VERSION);
  for (const Case &one : cases)
    run(one, object);
}

} // namespace dg::codegen
