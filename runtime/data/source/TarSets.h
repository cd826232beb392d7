// SPDX-License-Identifier: Apache-2.0
// WebDataset archives: files that follow each other in a tar and share their path up to the first dot of the name are
// one sample; what follows the dot says which part of it.
#pragma once

#include "runtime/data/source/ImageSets.h"

#include <string>

namespace dg::data {

/// The part `member` of every sample of the archive at `path`: npy, cls, txt, jpg, jpeg, png, or json:FIELD (of nested
/// objects FIELD.FIELD), also behind another name as in `left.png`. `source` is what the user wrote. Fails with
/// badInput if a sample has no such part, or has it twice.
Result<std::shared_ptr<const SampleSet>> openTarSamples(const std::string &path, const std::string &source,
                                                        const std::string &member, const Argument &argument,
                                                        const ImageOptions &options);

} // namespace dg::data
