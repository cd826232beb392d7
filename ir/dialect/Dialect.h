// SPDX-License-Identifier: Apache-2.0
// The dg dialect in C++: its types, attributes and interfaces. Ops are in the header of their family, so that a new op
// compiles what names its family again, and nothing else.
#pragma once

#include "ir/dialect/OpContract.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/dialect/DialectEnums.h.inc"

#include "ir/dialect/Dialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/dialect/DialectAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/dialect/DialectTypes.h.inc"

#include "ir/dialect/OpFacts.h"

namespace dg::ir {
/// The text form that all ops share (see OpBase.td). The label is taken from the name of the first result.
mlir::ParseResult parseOp(mlir::OpAsmParser &parser, mlir::OperationState &state, unsigned numResults);
void printOp(mlir::OpAsmPrinter &printer, mlir::Operation *op);

/// The name of the attribute that says what the compiler has decided about an op.
inline constexpr llvm::StringLiteral placeName = "place";
/// The op's place, or the default one.
PlaceAttr getPlace(mlir::Operation *op);
void setPlace(mlir::Operation *op, PlaceAttr place);
/// A copy of the place with one field changed.
PlaceAttr withStage(PlaceAttr place, int64_t stage);
PlaceAttr withOrigin(PlaceAttr place, int64_t origin, Phase phase);
PlaceAttr withShardings(PlaceAttr place, llvm::ArrayRef<ShardingAttr> shardings);
PlaceAttr withLabel(PlaceAttr place, llvm::StringRef label);

/// The names of the attributes that carry other decisions: a MeshAttr and an array of PrecisionAttr of a module, a
/// CutAttr of an op, and, without a value, of a forward op whose results are made again in the backward pass.
inline constexpr llvm::StringLiteral meshName = "dg.mesh", precisionName = "dg.precision", cutName = "dg.cut",
                                     recomputeName = "dg.recompute";

/// Of an axis and of the whole mesh; three such axes can be multiplied in 64 bits.
inline constexpr int64_t maxRanks = 1 << 20;

/// A new op about which nothing is decided yet.
template <typename Op, typename... Args> Op create(mlir::OpBuilder &builder, mlir::Location loc, Args &&...args) {
  return builder.create<Op>(loc, std::forward<Args>(args)..., PlaceAttr());
}

/// A sharding in which every dimension is whole.
ShardingAttr wholeSharding(mlir::MLIRContext *context, int64_t rank);

/// True where the type is not deduced yet.
inline bool isAny(mlir::Type type) { return mlir::isa<AnyType>(type); }
inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

} // namespace dg::ir
