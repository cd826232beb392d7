// SPDX-License-Identifier: Apache-2.0
// What the user wrote for an argument (`a.npy,b.npy:nhwc`, `{000..099}.tar:jpg:resize`), read once into files, what is
// taken of each, and how its samples are arranged.
#pragma once

#include "runtime/data/source/Argument.h"
#include "runtime/data/source/ImageSets.h"
#include "runtime/data/source/SampleSet.h"
#include "runtime/support/Status.h"

#include <memory>
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
  std::string member; ///< of an archive its array or part, of a table its columns, of a token file "+1"; empty: none
  Arrangement arrangement = Arrangement::same;
  ImageOptions images;
  bool wantsClass = false; ///< `:class`: of a folder the numbers of the classes, not the images
  std::string text;        ///< path and suffix, for messages
};

/// The files of a list, braces and globs opened out. A suffix that only the last one has is of the whole list; else
/// each has one or none has. Fails with usage, or with badInput where a glob finds nothing.
Result<std::vector<Source>> parseSources(const std::string &list);

/// Opens one file or folder, whatever its format.
Result<std::shared_ptr<const SampleSet>> openSource(const Source &source, const Argument &argument);

} // namespace dg::data
