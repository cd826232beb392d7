// SPDX-License-Identifier: Apache-2.0
// What the user wrote for an argument (`a.npy,b.npy:nhwc`), read once into files, what is taken of each, and how its
// samples are arranged.
#pragma once

#include "runtime/data/format/Tensor.h"
#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace dg::data {

/// How the dimensions of a file's samples become the argument's.
enum class Arrangement {
  same,         ///< they are equal, but for ones
  channelsLast, ///< `:nhwc`: the last one becomes the first
  reshape,      ///< `:reshape`: the elements in their order, whatever the dimensions
};

struct Source {
  std::string path;
  std::string member; ///< of an archive its array or tensor, of a token file "+1"; empty: none given
  Arrangement arrangement = Arrangement::same;
  std::string text; ///< path and suffix, for messages
};

/// The files of a list. A suffix that only the last one has is of the whole list; else each has one or none has. Fails
/// with usage.
Result<std::vector<Source>> parseSources(const std::string &list);

/// Opens one file, whatever its format. `argument` names the tensor of a .safetensors file that is not said, and
/// `sampleShape` is what a token file is cut into.
Result<Tensor> openSource(const Source &source, const std::string &argument, const std::vector<int64_t> &sampleShape);

} // namespace dg::data
