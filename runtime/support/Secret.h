// SPDX-License-Identifier: Apache-2.0
// Bytes that only this process may know: a key or a secret in a page of its own, which the kernel empties in a child
// after fork, leaves out of core dumps, and which is emptied before it is freed.
#pragma once

#include <memory>
#include <string_view>

namespace dg {

/// Copies share the page. One thread may write; reading needs no lock.
class Secret {
public:
  Secret() = default;
  /// Copies the bytes; who had them empties his own with forget(). No memory for a page is the end of the process.
  explicit Secret(std::string_view bytes);

  bool isEmpty() const { return !page; }
  /// In a child after fork: as many zeros.
  std::string_view view() const;

private:
  struct Page;
  std::shared_ptr<const Page> page;
};

/// Overwrites bytes that are not needed any more, where the compiler would leave that out.
void forget(void *bytes, size_t count);

} // namespace dg
