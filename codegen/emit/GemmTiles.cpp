// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/GemmTiles.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace dg::codegen {

static constexpr int64_t rowBytes = 64;

static std::string nameOf(int64_t rowTiles, int64_t columnTiles) {
  return "dg_tile_product_" + std::to_string(rowTiles) + "x" + std::to_string(columnTiles);
}

/// Declared once for all kernels of a module.
static LLVM::LLVMFuncOp productOf(KernelBuilder &k, int64_t rowTiles, int64_t columnTiles) {
  auto module = k.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  std::string name = nameOf(rowTiles, columnTiles);
  if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
    return known;
  Type pointer = LLVM::LLVMPointerType::get(k.getContext()), word = k.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(k.getContext()),
                                          {pointer, word, pointer, word, pointer, word, word});
  return OpBuilder::atBlockBegin(module.getBody()).create<LLVM::LLVMFuncOp>(k.getLoc(), name, type);
}

void multiplyTiles(KernelBuilder &k, const TilesRef &left, const TilesRef &right, const TilesRef &sums,
                   int64_t rowTiles, int64_t columnTiles, Value depth) {
  Type word = k.getI64Type(), pointer = LLVM::LLVMPointerType::get(k.getContext());
  auto asWord = [&](Value index) -> Value { return k.create<arith::IndexCastOp>(word, index); };
  KernelBuilder::Values arguments;
  for (const TilesRef &tiles : {left, right, sums}) {
    auto element = cast<MemRefType>(tiles.buffer.getType()).getElementType();
    // LLVM folds the way to an integer and back: the address stays one inside the buffer.
    Value base =
        k.create<LLVM::IntToPtrOp>(pointer, asWord(k.create<memref::ExtractAlignedPointerAsIndexOp>(tiles.buffer)));
    arguments.push_back(
        k.create<LLVM::GEPOp>(pointer, element, base, ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(asWord(tiles.at))}));
    int64_t strideBytes = tiles.rowStride * element.getIntOrFloatBitWidth() / 8;
    arguments.push_back(k.create<arith::ConstantOp>(k.getI64IntegerAttr(strideBytes)));
  }
  arguments.push_back(asWord(k.div(k.add(depth, tileRows - 1), tileRows)));
  k.create<LLVM::CallOp>(productOf(k, rowTiles, columnTiles), arguments);
}

/// The sums are carried through the loop in tile registers: with 2 × 2 of them and two tiles of each factor, all eight.
static void defineProduct(llvm::Function &product, int64_t rowTiles, int64_t columnTiles) {
  product.setLinkage(llvm::GlobalValue::InternalLinkage);
  product.addFnAttr(llvm::Attribute::AlwaysInline);
  product.addFnAttr(llvm::Attribute::NoUnwind);
  llvm::Module *module = product.getParent();
  llvm::Value *left = product.getArg(0), *leftStride = product.getArg(1), *right = product.getArg(2),
              *rightStride = product.getArg(3), *sums = product.getArg(4), *sumStride = product.getArg(5),
              *steps = product.getArg(6);
  auto block = [&](const char *name) { return llvm::BasicBlock::Create(module->getContext(), name, &product); };
  llvm::BasicBlock *entry = block("entry"), *loop = block("depth"), *exit = block("exit");
  llvm::IRBuilder<> builder(entry);
  auto call = [&](llvm::Intrinsic::ID intrinsic, llvm::ArrayRef<llvm::Value *> arguments) -> llvm::Value * {
    return builder.CreateCall(llvm::Intrinsic::getDeclaration(module, intrinsic), arguments);
  };
  llvm::Value *rows = builder.getInt16(tileRows), *bytes = builder.getInt16(rowBytes);
  auto tileAt = [&](llvm::Value *base, llvm::Value *stride, int64_t rowTile, int64_t columnTile) {
    llvm::Value *offset = builder.CreateAdd(builder.CreateMul(stride, builder.getInt64(rowTile * tileRows)),
                                            builder.getInt64(columnTile * rowBytes));
    return builder.CreatePtrAdd(base, offset);
  };
  llvm::SmallVector<llvm::Value *> zeros;
  for (int64_t i = 0; i < rowTiles * columnTiles; ++i)
    zeros.push_back(call(llvm::Intrinsic::x86_tilezero_internal, {rows, bytes}));
  builder.CreateBr(loop);

  builder.SetInsertPoint(loop);
  llvm::PHINode *step = builder.CreatePHI(builder.getInt64Ty(), 2);
  step->addIncoming(builder.getInt64(0), entry);
  llvm::SmallVector<llvm::PHINode *> carried;
  for (llvm::Value *zero : zeros) {
    carried.push_back(builder.CreatePHI(zero->getType(), 2));
    carried.back()->addIncoming(zero, entry);
  }
  llvm::Value *leftAt = builder.CreatePtrAdd(left, builder.CreateMul(step, builder.getInt64(rowBytes)));
  llvm::Value *rightAt =
      builder.CreatePtrAdd(right, builder.CreateMul(step, builder.CreateMul(rightStride, builder.getInt64(tileRows))));
  auto load = [&](llvm::Value *at, llvm::Value *stride) {
    return call(llvm::Intrinsic::x86_tileloadd64_internal, {rows, bytes, at, stride});
  };
  llvm::SmallVector<llvm::Value *> columns, next;
  for (int64_t j = 0; j < columnTiles; ++j)
    columns.push_back(load(tileAt(rightAt, rightStride, 0, j), rightStride));
  for (int64_t i = 0; i < rowTiles; ++i) {
    llvm::Value *row = load(tileAt(leftAt, leftStride, i, 0), leftStride);
    for (llvm::Value *column : columns)
      next.push_back(
          call(llvm::Intrinsic::x86_tdpbf16ps_internal, {rows, bytes, bytes, carried[next.size()], row, column}));
  }
  for (auto [phi, sum] : llvm::zip_equal(carried, next))
    phi->addIncoming(sum, loop);
  llvm::Value *nextStep = builder.CreateAdd(step, builder.getInt64(1));
  step->addIncoming(nextStep, loop);
  builder.CreateCondBr(builder.CreateICmpULT(nextStep, steps), loop, exit); // there is at least one

  builder.SetInsertPoint(exit);
  for (auto [number, sum] : llvm::enumerate(next))
    call(llvm::Intrinsic::x86_tilestored64_internal,
         {rows, bytes, tileAt(sums, sumStride, int64_t(number) / columnTiles, int64_t(number) % columnTiles), sumStride,
          sum});
  builder.CreateRetVoid();
}

void defineTileProducts(llvm::Module &module) {
  for (int64_t rowTiles : {1, 2})
    for (int64_t columnTiles : {1, 2})
      if (llvm::Function *product = module.getFunction(nameOf(rowTiles, columnTiles)))
        defineProduct(*product, rowTiles, columnTiles);
}

} // namespace dg::codegen
