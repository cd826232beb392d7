// SPDX-License-Identifier: Apache-2.0
// Mutations of a JSON text that leave it JSON: for plans and manifests, where a byte changed at random nearly always
// ends in the parser. Works on the text, because a mutator that parsed and printed it would cost more than what it
// tests.
#pragma once

#include "tests/fuzz/Mutation.h"

namespace dg::fuzz {

/// Changes one to four places: numbers become their neighbours, strange, or another number of the text; strings become
/// others of it; entries of lists are removed, doubled, swapped, or replaced by a copy of another place.
std::string mutateJson(std::string text, Random &random);

} // namespace dg::fuzz
