// SPDX-License-Identifier: Apache-2.0
// One op, evaluated by its own definition, with the results stored in the precision that was asked for.
#pragma once

#include "ir/ops/structure/GraphOps.h"

#include <map>
#include <string>

namespace dg::ir {

/// How results are stored. Arithmetic inside an op is in double in both.
enum class Precision {
  f32, ///< every element of a floating-point result is rounded to its type after each op
  f64, ///< no float is rounded
};

using TensorMap = std::map<std::string, HostTensor>;

/// A tensor of zeros with the shape of the type, which is static.
HostTensor zerosOf(mlir::RankedTensorType type);

/// Rounds the elements as storage in this precision does; integers wrap to their type in both.
void roundTo(Precision precision, mlir::RankedTensorType type, HostTensor &tensor);

/// The results of one op of the reference interface. Emits an error on the op where it has no evaluation or a type that
/// is not deduced.
mlir::FailureOr<llvm::SmallVector<HostTensor>> evaluateOp(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands,
                                                          const RunScalars &scalars, Precision precision);

/// The name of each operand of a graph's dg.return: those it gives, else "loss" for the first one of @loss, else the
/// label or the name of the op that made the value.
llvm::SmallVector<std::string> resultNames(GraphOp graph);

} // namespace dg::ir
