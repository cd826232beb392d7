// SPDX-License-Identifier: Apache-2.0
// What a compilation says to whoever asked for it, as values. Status carries the one reason of a failure; messages also
// carry what MLIR says of the model, and notes of a compilation that succeeds.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace dg::compiler {

struct Message {
  enum class Kind {
    error,      ///< about the request; without a place
    note,       ///< likewise
    diagnostic, ///< as MLIR renders it: place, severity, text, and the line of the model, to be printed as it is
  };
  Kind kind = Kind::error;
  std::string text;
};
/// In the order in which they were said.
using Messages = std::vector<Message>;

/// A failure whose reason is among the messages already.
inline Status diagnosed(ErrorKind kind = ErrorKind::badInput) { return Status::error(kind, ""); }

} // namespace dg::compiler
