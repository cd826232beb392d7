// SPDX-License-Identifier: Apache-2.0
// The safetensors format: an 8-byte little-endian header length, a JSON header of name → dtype, shape, offsets, then
// the bytes of all tensors without holes. Reading checks everything; writing gives a layout that many ranks can fill
// with pwrite.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dg::package {

/// Bytes of one element of a safetensors type ("F32", "BF16", "I64", "BOOL", …); 0 if the type is unknown.
int64_t bytesOfDtype(std::string_view dtype);

/// What a tensor is, without its bytes.
struct TensorSpec {
  std::string name;
  std::string dtype; ///< as in the format: "F32"
  std::vector<int64_t> shape;
};

/// One tensor of a file that was read. `data` points into the span that was given to parse.
struct Tensor : TensorSpec {
  std::span<const std::byte> data;
};

/// A file that passed every check.
class Safetensors {
public:
  /// Checks header size (at most 100 MB), types, shapes with checked multiplication, contiguous offsets without holes
  /// up to the last byte, `__metadata__` strings. Fails with badInput; `file` is for the message. Borrows `bytes`.
  static Result<Safetensors> parse(std::span<const std::byte> bytes, const std::string &file);

  /// nullptr if there is none of that name.
  const Tensor *find(std::string_view name) const;
  /// In the order of their bytes.
  const std::vector<Tensor> &tensors() const { return list; }
  const std::map<std::string, std::string> &metadata() const { return notes; }

private:
  std::vector<Tensor> list;
  std::map<std::string, size_t, std::less<>> byName;
  std::map<std::string, std::string> notes;
};

/// A file to be: write `header` at 0 and the bytes of tensor i at offsets[i]; every byte up to fileBytes is then
/// written.
struct SafetensorsLayout {
  std::string header;            ///< length, JSON and padding to 64 bytes
  std::vector<uint64_t> offsets; ///< in the file, one per tensor, in the order that was asked
  std::vector<uint64_t> sizes;   ///< bytes, likewise
  uint64_t fileBytes = 0;
};

/// Fails with badInput on an unknown type, a negative or too large shape, a double or reserved name.
Result<SafetensorsLayout> layoutSafetensors(const std::vector<TensorSpec> &tensors,
                                            const std::map<std::string, std::string> &metadata = {});

} // namespace dg::package
