// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/Secret.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace dg {

struct Secret::Page {
  explicit Page(std::string_view text) : bytes(text.size()) {
    start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // A secret that a child would see is worse than no run; Linux has both since 4.14.
    if (start == MAP_FAILED || madvise(start, bytes, MADV_WIPEONFORK) != 0 || madvise(start, bytes, MADV_DONTDUMP) != 0)
      std::abort();
    std::memcpy(start, text.data(), bytes);
  }
  ~Page() {
    forget(start, bytes);
    munmap(start, bytes);
  }
  Page(const Page &) = delete;

  void *start;
  size_t bytes;
};

Secret::Secret(std::string_view bytes) : page(bytes.empty() ? nullptr : std::make_shared<const Page>(bytes)) {}

std::string_view Secret::view() const {
  return page ? std::string_view(static_cast<const char *>(page->start), page->bytes) : std::string_view();
}

void forget(void *bytes, size_t count) {
  if (count > 0)
    explicit_bzero(bytes, count);
}

} // namespace dg
