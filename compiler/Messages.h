// SPDX-License-Identifier: Apache-2.0
// What a compilation says to whoever asked for it, as values. Status carries the one reason of a failure; messages also
// carry what MLIR says of the model, and the notes of a compilation that succeeds.
#pragma once

#include "runtime/support/Status.h"

#include <functional>
#include <string>
#include <vector>

namespace dg::compiler {

struct Message {
  enum class Kind {
    error,      ///< about the request; without a place
    note,       ///< likewise
    diagnostic, ///< complete: place, severity, text and perhaps the line of the model
    progress,   ///< how far it is, now and then: "120 of 266 kernels"; the sink gets it, and nobody keeps it
  };
  Kind kind = Kind::error;
  std::string text; ///< one or more lines, without the last line's end
};

/// Is called for each message as it is said, on the thread that compiles.
using MessageSink = std::function<void(const Message &)>;

/// The messages of one compilation, in order. One thread.
class Messages {
public:
  explicit Messages(MessageSink sink) : sink(std::move(sink)) {}
  void add(Message::Kind kind, std::string text);
  /// Adds a diagnostic; returns the failure that it explains.
  Status fail(std::string diagnostic);
  /// The texts of all but notes, one after the other.
  std::string errors() const;
  /// The failure is one of what was asked for, whatever kind the Status of diagnostics has.
  void setUsage() { usage = true; }
  bool isUsage() const { return usage; }
  const std::vector<Message> &all() const { return said; }

private:
  MessageSink sink;
  std::vector<Message> said;
  bool usage = false;
};

/// A failure whose reason is among the messages already.
inline Status diagnosed(ErrorKind kind = ErrorKind::badInput) { return Status::error(kind, ""); }

} // namespace dg::compiler
