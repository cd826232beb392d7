// SPDX-License-Identifier: Apache-2.0
// The hash by which checkpoints know that their bytes are as they were written.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dg::package {

/// xxh3-128 of bytes that come in parts, as 32 hexadecimal digits. One thread.
class ContentHash {
public:
  ContentHash();
  ContentHash(ContentHash &&) noexcept;
  ContentHash &operator=(ContentHash &&) noexcept;
  ~ContentHash();
  void add(std::span<const std::byte> bytes);
  std::string text() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// That of one span.
std::string hashOf(std::span<const std::byte> bytes);
inline std::string hashOf(std::string_view text) { return hashOf(std::as_bytes(std::span(text))); }

} // namespace dg::package
