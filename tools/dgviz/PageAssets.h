// SPDX-License-Identifier: Apache-2.0
// The page's files, embedded at build time by EmbedPage.cmake.
#pragma once

#include <string_view>

namespace dg::viz {

extern const std::string_view pageHtml, pageCss, pageJs;
/// "sha256-…" of the two inline blocks, for the page's Content-Security-Policy.
extern const std::string_view styleHash, scriptHash;

} // namespace dg::viz
