// SPDX-License-Identifier: Apache-2.0
#include "compiler/Messages.h"

namespace dg::compiler {

void Messages::add(Message::Kind kind, std::string text) {
  Message message = {kind, std::move(text)};
  if (sink)
    sink(message);
  if (kind != Message::Kind::progress)
    said.push_back(std::move(message));
}

Status Messages::fail(std::string diagnostic) {
  add(Message::Kind::diagnostic, std::move(diagnostic));
  return diagnosed();
}

std::string Messages::errors() const {
  std::string text;
  for (const Message &message : said)
    if (message.kind != Message::Kind::note)
      text += (text.empty() ? "" : "\n") + message.text;
  return text;
}

} // namespace dg::compiler
