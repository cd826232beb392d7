// SPDX-License-Identifier: Apache-2.0
// Where dgc puts what was compiled: a package or a text in a file, whole or not at all, and text on stdout.
#pragma once

#include "compiler/Compile.h"
#include "runtime/package/Signature.h"

namespace dg::tools {

/// Whether `path` can be written, asked before the long work, and is none of the files that are `read`. Fails with
/// usage.
Status checkOutput(const std::string &path, const std::vector<std::string> &read);

/// Writes text to stdout or, where a path is given, to a file.
Status writeText(const std::string &path, std::string_view text);

/// Writes the package to `path` and the reports to stdout, or the text of --emit to `path` or stdout.
/// `key` signs the package, or is null.
Status writeOutput(const compiler::Output &output, const std::string &path, const package::SigningKey *key);

} // namespace dg::tools
