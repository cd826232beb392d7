// SPDX-License-Identifier: Apache-2.0
// What a shared object would do while it is loaded, found without loading it.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <span>
#include <string>

namespace dg {

/// Whether the object holds kernels of this build's ABI and nothing that acts by itself: no constructor, destructor or
/// indirect function, no other library and no path to one, no memory that is both writable and executable. Everything
/// that the loader would read is checked, and what is not known is refused. Fails with badInput; `name`
/// ("train.native.so") is for messages.
Status checkObject(std::span<const std::byte> bytes, const std::string &name);

} // namespace dg
