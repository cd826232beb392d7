// SPDX-License-Identifier: Apache-2.0
// `dgviz --serve`: the page on loopback, for browsers that may not open files.
#pragma once

#include "runtime/support/Status.h"

#include <functional>
#include <string>

namespace dg::viz {

/// Answers with the page on 127.0.0.1 until SIGINT or SIGTERM arrives; `port` 0 takes a free one. `announce` gets the
/// address once it answers, with a random path, for other users of the host reach the port too. Connections are served
/// side by side, each within ten seconds; requests that name another host are refused, so that no web page can read the
/// plan under a name that points here. Fails with runFailed if the port cannot be had.
Status serve(const std::string &page, uint16_t port, const std::function<void(const std::string &)> &announce);

} // namespace dg::viz
