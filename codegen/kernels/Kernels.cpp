// SPDX-License-Identifier: Apache-2.0
// The kernels of one program: equal ops share one, each is a function of flat buffers until the object is emitted.
#include "codegen/kernels/Kernels.h"

#include "codegen/cpu/LowerToLlvm.h"
#include "codegen/cpu/NativeObject.h"
#include "codegen/emit/KernelBuilder.h"
#include "codegen/kernels/ControlKernels.h"
#include "codegen/kernels/KernelTable.h"
#include "codegen/kernels/RowScanKernels.h"
#include "ir/dialect/Dialect.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/structure/ControlOps.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace dg::codegen {

KernelModule::KernelModule(MLIRContext &context, const Target &target)
    : target(target), module(ModuleOp::create(UnknownLoc::get(&context))) {
  context.loadDialect<func::FuncDialect>();
  loadKernelDialects(context);
}
KernelModule::KernelModule(KernelModule &&) = default;
KernelModule::~KernelModule() = default;

/// An op that runs a graph of its own calls the kernels of the graph's ops.
static bool runsBody(Operation *op) { return isa<ir::ScanOp, ir::IfOp, ir::WhileOp>(op); }

bool needsKernel(Operation *op) { return runsBody(op) || kernelTable().contains(op->getName().getStringRef()); }

/// What makes two kernels equal, as text. Names, places and locations do not count.
static std::string keyOf(Operation *op) {
  std::string key;
  llvm::raw_string_ostream os(key);
  DenseMap<Value, unsigned> numbers;
  // Nested ops refer to arguments and to each other; numbering them in order makes the text canonical.
  std::function<void(Operation *)> print = [&](Operation *inner) {
    os << inner->getName() << '(';
    if (inner != op)
      for (Value operand : inner->getOperands())
        os << '%' << numbers.try_emplace(operand, numbers.size()).first->second << ' ';
    os << ')';
    for (NamedAttribute attr : inner->getAttrDictionary())
      if (attr.getName() != ir::placeName && attr.getName() != "accumulator" && attr.getName() != "names")
        os << attr.getName() << '=' << attr.getValue() << ';';
    os << inner->getOperandTypes() << "->" << inner->getResultTypes() << '\n';
    for (Region &region : inner->getRegions())
      for (Block &block : region) {
        for (Value argument : block.getArguments())
          numbers.try_emplace(argument, numbers.size());
        for (Operation &nested : block)
          print(&nested);
      }
    if (inner != op)
      for (Value result : inner->getResults())
        numbers.try_emplace(result, numbers.size());
  };
  print(op);
  return key;
}

/// The op's name and the shape of what it makes, for people who read a profile, and a hash of what makes it unlike
/// others: a name means the same kernel in every object of a job.
static std::string symbolOf(Operation *op, StringRef key) {
  std::string symbol = op->getName().stripDialect().str();
  Type type = op->getNumResults() ? op->getResult(0).getType() : op->getOperand(0).getType();
  char separator = '_';
  for (int64_t size : cast<RankedTensorType>(type).getShape()) {
    symbol += separator + std::to_string(size);
    separator = 'x';
  }
  return symbol + "_" + llvm::utohexstr(llvm::xxh3_64bits(key), /*LowerCase=*/true, /*Width=*/16);
}

static LogicalResult checkType(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return op->emitOpError() << "has the type " << type
                             << " where a kernel needs a static shape: bind every dimension with --bind";
  Type element = tensor.getElementType();
  if (!ir::isElementType(element))
    return op->emitOpError() << "has elements of type " << element << "; kernels exist for " << ir::elementTypeNames;
  return success();
}

static bool isEmpty(Type type) { return cast<RankedTensorType>(type).getNumElements() == 0; }

static MemRefType flatBufferOf(RankedTensorType tensor) {
  return MemRefType::get({tensor.getNumElements()}, storageOf(tensor.getElementType()));
}

const KernelSpec *KernelModule::find(Operation *op) const {
  auto known = kernels.find(keyOf(op));
  return known == kernels.end() ? nullptr : &known->second;
}

FailureOr<KernelSpec> KernelModule::addKernel(Operation *op) {
  FailureOr<KernelSpec> spec = makeKernel(op);
  if (succeeded(spec))
    exported.insert(spec->symbol);
  return spec;
}

FailureOr<KernelSpec> KernelModule::makeKernel(Operation *op) {
  if (!needsKernel(op))
    return op->emitOpError() << "has no kernel: it is memory, set-up or communication, or it must be decomposed first";
  for (Type type : op->getOperandTypes())
    if (failed(checkType(op, type)))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(checkType(op, type)))
      return failure();

  if (op->getNumResults() > 0 && llvm::all_of(op->getResultTypes(), isEmpty)) {
    KernelSpec none;
    none.tiles = 0;
    none.aliasedOperand.resize(op->getNumResults(), -1);
    return none;
  }

  std::string key = keyOf(op);
  if (auto known = kernels.find(key); known != kernels.end())
    return known->second;

  BodyKernels inBody;
  auto scan = dyn_cast<ir::ScanOp>(op);
  const bool isByRows = scan && isRowScan(scan), callsBody = runsBody(op) && !isByRows;
  if (callsBody)
    for (Region &body : op->getRegions())
      for (Operation &inner : body.front())
        if (needsKernel(&inner)) {
          FailureOr<KernelSpec> made = makeKernel(&inner);
          if (failed(made))
            return failure();
          inBody[&inner] = *made;
        }

  KernelEmitter emitter = kernelTable().lookup(op->getName().getStringRef());
  KernelSpec spec;
  spec.symbol = symbolOf(op, key);
  spec.aliasedOperand = emitter.aliasedOperand;
  spec.aliasedOperand.resize(op->getNumResults(), -1);
  if (emitter.overwritable >= 0 && op->hasAttr("overwrites"))
    spec.aliasedOperand[0] = emitter.overwritable;

  SmallVector<Type> arguments, elements;
  auto addBuffer = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    arguments.push_back(flatBufferOf(tensor));
    elements.push_back(tensor.getElementType());
  };
  for (Type type : op->getOperandTypes())
    addBuffer(type);
  if (emitter.accumulates)
    addBuffer(op->getOperand(0).getType());
  for (auto [result, aliased] : llvm::zip_equal(op->getResults(), spec.aliasedOperand))
    if (aliased < 0)
      addBuffer(result.getType());
  if (callsBody)
    spec.workspaces = workspacesOf(op, inBody);
  for (RankedTensorType type : spec.workspaces) {
    addBuffer(type);
    spec.scratchBytes.push_back(type.getNumElements() * ir::elementBytes(type.getElementType()));
  }
  OpBuilder builder(module->getContext());
  arguments.append({LLVM::LLVMPointerType::get(module->getContext()), builder.getI64Type(), builder.getI64Type(),
                    builder.getIndexType()});
  // Without a place: the same kernel has the same text in every model.
  auto function = func::FuncOp::create(builder.getUnknownLoc(), spec.symbol, builder.getFunctionType(arguments, {}));
  module->push_back(function);
  KernelBuilder kernel(function, elements, target);
  LogicalResult emitted = success();
  if (isByRows)
    emitRowScan(kernel, scan);
  else
    emitted = callsBody ? emitControl(kernel, op, inBody) : emitter.emit(kernel, op);
  if (succeeded(emitted) && kernel.stackBytes() > KernelBuilder::mostStackBytes)
    emitted = op->emitOpError() << "needs " << kernel.stackBytes() << " bytes of stack in a kernel, of at most "
                                << KernelBuilder::mostStackBytes << ": cut the op or its batch";
  if (failed(emitted)) {
    function.erase();
    return failure();
  }
  kernel.create<func::ReturnOp>();
  spec.tiles = uint32_t(kernel.tiles());
  function->setAttr(tilesName, builder.getI32IntegerAttr(int32_t(spec.tiles)));
  kernels[key] = spec;
  return spec;
}

LogicalResult KernelModule::emitLinalg(llvm::raw_ostream &os) {
  module->print(os);
  os << '\n';
  return success();
}

/// Lowers a copy, so that more kernels can be added afterwards.
static std::unique_ptr<llvm::Module> lower(ModuleOp module, llvm::LLVMContext &llvmContext, const Target &target) {
  OwningOpRef<ModuleOp> copy = module.clone();
  addAbiVersion(*copy);
  std::unique_ptr<llvm::Module> llvmModule = lowerToLlvm(*copy, llvmContext);
  if (llvmModule)
    optimize(*llvmModule, target);
  return llvmModule;
}

LogicalResult KernelModule::emitLlvmIr(llvm::raw_ostream &os) {
  llvm::LLVMContext llvmContext;
  auto llvmModule = lower(*module, llvmContext, target);
  if (!llvmModule)
    return failure();
  llvmModule->print(os, nullptr);
  return success();
}

LogicalResult KernelModule::emitAsm(llvm::raw_ostream &os) {
  llvm::LLVMContext llvmContext;
  auto llvmModule = lower(*module, llvmContext, target);
  if (!llvmModule)
    return failure();
  FailureOr<std::string> text = generate(*llvmModule, target, CodeForm::assembly);
  if (failed(text))
    return failure();
  os << *text;
  return success();
}

static std::string toBytecode(ModuleOp module) {
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  if (failed(writeBytecodeToFile(module, stream)))
    llvm::report_fatal_error("kernels cannot be written as bytecode");
  return bytes;
}

/// The number of the ABI, then each exported kernel with the kernels, functions and tables that it uses.
std::vector<std::string> KernelModule::units() {
  SymbolTable symbols(*module);
  OwningOpRef<ModuleOp> unit = ModuleOp::create(module->getLoc());
  addAbiVersion(*unit);
  std::vector<std::string> all = {toBytecode(*unit)};
  for (auto function : module->getOps<func::FuncOp>()) {
    if (!exported.contains(function.getSymName()))
      continue;
    unit = ModuleOp::create(module->getLoc());
    llvm::SetVector<Operation *> parts;
    parts.insert(function);
    for (size_t i = 0; i < parts.size(); ++i)
      if (std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(parts[i]))
        for (SymbolTable::SymbolUse use : *uses)
          parts.insert(symbols.lookup(use.getSymbolRef().getLeafReference()));
    for (Operation *part : parts) {
      Operation *copy = part->clone();
      if (part != function)
        copy->removeAttr(tilesName);
      unit->push_back(copy);
    }
    all.push_back(toBytecode(*unit));
  }
  return all;
}

FailureOr<std::string> KernelModule::emitObject(const CodeOptions &options) {
  std::string error;
  FailureOr<std::vector<std::string>> objects = compileKernels(units(), target, options, error);
  FailureOr<std::string> shared = failure();
  if (succeeded(objects))
    shared = linkShared(*objects, error);
  if (failed(shared))
    return emitError(module->getLoc()) << "the kernels could not be compiled: " << error;
  return shared;
}

} // namespace dg::codegen
