// SPDX-License-Identifier: Apache-2.0
// Which of the targets that objects were made for this host can run.
#pragma once

#include <string>

namespace dg::session {

/// 0 if this host cannot run code for the target (as in the object's name, <program>.<target>.so); otherwise its rank
/// among those it can: the higher the better.
int supportOf(const std::string &target);

/// "avx2, fma, …": what this host has, for messages.
std::string describeHost();

} // namespace dg::session
