// SPDX-License-Identifier: Apache-2.0
// The pages of docs/reference on ops, which the build puts into the library (EmbedText.cmake).
#pragma once

namespace dg::compiler {

extern const char *const opPages; ///< one after the other

} // namespace dg::compiler
