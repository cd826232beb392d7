// SPDX-License-Identifier: Apache-2.0
// What `dgviz --serve` answers to a request, whose bytes any web page or user of the host may have sent. Apart from the
// sockets, so that it can be tried with any bytes.
#pragma once

#include <cstdint>
#include <string>

namespace dg::viz {

/// Header and body. The page for a GET of `path` that names this host and `port`; else a line that says why not.
std::string answerTo(const std::string &request, const std::string &page, uint16_t port, const std::string &path);

} // namespace dg::viz
