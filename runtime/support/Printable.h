// SPDX-License-Identifier: Apache-2.0
// Text from outside (names in models, packages, checkpoints and data; paths) as it may reach a terminal.
#pragma once

#include <string>
#include <string_view>

namespace dg {

/// The text with each control character but line feed and tab, C1 ones and bytes that are no UTF-8 included, as \xNN:
/// no name can move the cursor, set a title or hide another line.
std::string printable(std::string_view text);

} // namespace dg
