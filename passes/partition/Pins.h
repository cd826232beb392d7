// SPDX-License-Identifier: Apache-2.0
// A user's wishes for single ops and parameters (dgc --pin), found in the model that the search looks at.
#pragma once

#include "partitioner/search/PlanSearch.h"

#include "llvm/ADT/StringRef.h"

namespace dg::passes {

/// Reads "PATTERN=stage:1", "PATTERN=tensor:0" (this dimension of the parameter, or of the op's result, is cut over the
/// tensor axis) or "PATTERN=whole" (not cut over it) and finds what it means in the model: PATTERN, in which * and ?
/// stand for any text and any character, is compared with parameters, with the author's ops ("fc1") and with the parts
/// they are taken apart into ("fc1/matmul"). Fails with usage: malformed, nothing of that name (with a hint),
/// a dimension that is not there or cannot be cut.
Result<partitioner::Pin> resolvePin(llvm::StringRef text, const partitioner::Model &model);

} // namespace dg::passes
