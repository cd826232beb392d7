// SPDX-License-Identifier: Apache-2.0
// Which tensor of a file of weights is for which parameter: --weights-rename and --weights-skip, for files that were
// written under other names and for heads of another shape.
#pragma once

#include "runtime/package/Safetensors.h"

#include <map>
#include <string>
#include <vector>

namespace dg::compiler {

/// The tensors of a file by the names that parameters have.
struct NamedWeights {
  std::map<std::string, const package::Tensor *, std::less<>> tensors;
  std::map<std::string, const package::Tensor *, std::less<>> skipped;
};

/// `renames` are "OLD=NEW", where each * of OLD takes as little text as it can and goes to the * of NEW at its place;
/// the first that matches a tensor names it. `skips` are patterns of the names after that, with * and ?. Fails (usage)
/// where one of them is malformed or matches no tensor of `file`, and where two tensors get one name.
Result<NamedWeights> nameWeights(const package::Safetensors &file, const std::string &path,
                                 const std::vector<std::string> &renames, const std::vector<std::string> &skips);

} // namespace dg::compiler
