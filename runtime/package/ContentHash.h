// SPDX-License-Identifier: Apache-2.0
// The hash by which checkpoints know that their bytes are as they were written.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dg::package {

/// xxh3-128 as 32 hexadecimal digits.
std::string hashOf(std::span<const std::byte> bytes);
inline std::string hashOf(std::string_view text) { return hashOf(std::as_bytes(std::span(text))); }

} // namespace dg::package
