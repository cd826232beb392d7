// SPDX-License-Identifier: Apache-2.0
// The pass pipeline of kernels. Each kernel becomes two functions: the body, with one bare noalias pointer for each
// buffer, without which LLVM could not keep accumulators in registers; and the entry point, which reads the pointers
// and scalars.
#include "codegen/cpu/LowerToLlvm.h"

#include "codegen/emit/GemmTiles.h"
#include "codegen/kernels/Kernels.h"
#include "runtime/abi/KernelAbi.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/Module.h"

#include <cstddef>

using namespace mlir;

namespace dg::codegen {

void registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

void loadKernelDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

namespace {
/// All that is left to the LLVM dialect in one conversion.
struct LowerKernelsPass : PassWrapper<LowerKernelsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerKernelsPass)
  StringRef getName() const override { return "LowerKernelsPass"; }

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    {
      RewritePatternSet patterns(context);
      populateMathPolynomialApproximationPatterns(patterns);
      vector::populateVectorMaskOpLoweringPatterns(patterns);
      if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
        return signalPassFailure();
    }
    LowerToLLVMOptions options(context);
    options.useBarePtrCallConv = true;
    LLVMTypeConverter types(context, options);
    RewritePatternSet patterns(context);
    populateVectorToLLVMConversionPatterns(types, patterns);
    populateVectorToLLVMMatrixConversionPatterns(types, patterns);
    populateMathToLLVMConversionPatterns(types, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(types, patterns);
    arith::populateArithToLLVMConversionPatterns(types, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
    populateFuncToLLVMConversionPatterns(types, patterns);
    LLVMConversionTarget conversion(*context);
    conversion.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(getOperation(), conversion, std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

static constexpr llvm::StringLiteral bodySuffix = ".body";

/// Makes every function a body. Kernels that call another call its body, which takes their buffers as they are.
static void nameBodies(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>()) {
    function.setSymName((function.getSymName() + bodySuffix).str());
    function.walk([](func::CallOp call) { call.setCallee((call.getCallee() + bodySuffix).str()); });
  }
}

/// Arguments of a body that `addEntryPoint` adds to its buffers: call (scalars and buffers), step, seed
/// and tile.
static unsigned numBuffersOf(LLVM::LLVMFuncOp body) { return body.getNumArguments() - 4; }

/// Says what LLVM may assume of a body.
static void describeBody(LLVM::LLVMFuncOp body) {
  OpBuilder builder(body.getContext());
  body.setLinkage(LLVM::Linkage::Internal);
  body.setDsoLocal(true);
  for (unsigned i = 0; i < numBuffersOf(body); ++i) {
    body.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    body.setArgAttr(i, LLVM::LLVMDialect::getNoCaptureAttrName(), builder.getUnitAttr());
    body.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), builder.getI64IntegerAttr(DG_BUFFER_ALIGNMENT));
  }
  // Inlined into the entry point the pointers would lose their noalias.
  body.setPassthroughAttr(builder.getArrayAttr({builder.getStringAttr("noinline"), builder.getStringAttr("nounwind")}));
}

/// The entry point of the kernel ABI around a body.
static void addEntryPoint(LLVM::LLVMFuncOp body, StringRef symbol) {
  MLIRContext *context = body.getContext();
  OpBuilder builder(context);
  Location loc = body.getLoc();
  unsigned numBuffers = numBuffersOf(body);
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), {pointer, pointer, builder.getI32Type()});
  builder.setInsertionPointAfter(body);
  auto entry = builder.create<LLVM::LLVMFuncOp>(loc, symbol, type);
  builder.setInsertionPointToStart(entry.addEntryBlock(builder));
  auto load = [&](Value base, Type loaded, int64_t offset) -> Value {
    Value at =
        builder.create<LLVM::GEPOp>(loc, pointer, builder.getI8Type(), base, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
    return builder.create<LLVM::LoadOp>(loc, loaded, at);
  };
  SmallVector<Value> arguments;
  for (unsigned i = 0; i < numBuffers; ++i)
    arguments.push_back(load(entry.getArgument(0), pointer, int64_t(i) * 8));
  auto scalar = [&](unsigned argument, Type loaded, int64_t offset) -> Value {
    if (body.getArgument(argument).use_empty())
      return builder.create<LLVM::UndefOp>(loc, loaded);
    return load(entry.getArgument(1), loaded, offset);
  };
  if (body.getArgument(numBuffers).use_empty()) {
    arguments.push_back(builder.create<LLVM::UndefOp>(loc, pointer));
  } else {
    Value two = builder.create<LLVM::ConstantOp>(loc, builder.getI64IntegerAttr(2));
    Value call = builder.create<LLVM::AllocaOp>(loc, pointer, pointer, two);
    for (unsigned i : {0, 1}) { // the scalars, then the buffers
      Value at = builder.create<LLVM::GEPOp>(loc, pointer, pointer, call, ArrayRef<LLVM::GEPArg>{int32_t(i)});
      builder.create<LLVM::StoreOp>(loc, entry.getArgument(1 - i), at);
    }
    arguments.push_back(call);
  }
  arguments.push_back(scalar(numBuffers + 1, builder.getI64Type(), offsetof(dg_scalars, step)));
  arguments.push_back(scalar(numBuffers + 2, builder.getI64Type(), offsetof(dg_scalars, seed)));
  arguments.push_back(builder.create<LLVM::ZExtOp>(loc, builder.getI64Type(), entry.getArgument(2)));
  builder.create<LLVM::CallOp>(loc, body, arguments);
  builder.create<LLVM::ReturnOp>(loc, ValueRange());
}

static void addNumber(ModuleOp module, const Twine &name, IntegerAttr value) {
  OpBuilder::atBlockBegin(module.getBody())
      .create<LLVM::GlobalOp>(module.getLoc(), value.getType(), /*isConstant=*/true, LLVM::Linkage::External,
                              name.str(), value);
}

void addAbiVersion(ModuleOp module) {
  addNumber(module, DG_ABI_VERSION_SYMBOL, Builder(module.getContext()).getI32IntegerAttr(DG_ABI_VERSION));
}

std::unique_ptr<llvm::Module> lowerToLlvm(ModuleOp module, llvm::LLVMContext &context) {
  nameBodies(module);
  PassManager passes(module.getContext());
  passes.addPass(createCSEPass());
  passes.addPass(createConvertSCFToCFPass());
  passes.addPass(std::make_unique<LowerKernelsPass>());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    return nullptr;
  SmallVector<LLVM::LLVMFuncOp> bodies;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      bodies.push_back(function);
  for (LLVM::LLVMFuncOp body : bodies) {
    describeBody(body);
    if (auto tiles = dyn_cast_or_null<IntegerAttr>(body->removeAttr(tilesName))) {
      StringRef symbol = body.getSymName().drop_back(bodySuffix.size());
      addNumber(module, symbol + DG_TILES_SUFFIX, tiles);
      addEntryPoint(body, symbol);
    }
  }
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(module, context, "dg kernels");
  if (translated)
    defineTileProducts(*translated);
  return translated;
}

} // namespace dg::codegen
