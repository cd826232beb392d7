// SPDX-License-Identifier: Apache-2.0
// One function per file format; each returns a tensor whose shape and size were checked against the file before
// anything was allocated. Every failure is badInput and names the file. Files are foreign bytes: nothing here trusts
// them.
#pragma once

#include "runtime/data/format/Tensor.h"
#include "runtime/support/Status.h"

#include <span>
#include <string>

namespace dg::data {

/// IDX, the format of MNIST: zero, zero, type, rank, then big-endian dimensions and values. Plain files of one-byte
/// elements stay mapped; others, and gzip, are read into memory.
Result<Tensor> openIdx(const std::string &path);
/// The same from memory, as all read… functions: `where` names the file in messages, `owner` keeps the bytes alive.
Result<Tensor> readIdx(const std::string &where, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// NumPy's .npy, versions 1 to 3, C order, numbers and booleans only (no objects, no structures). Stays mapped.
Result<Tensor> openNpy(const std::string &path);
Result<Tensor> readNpy(const std::string &where, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// Array `name` of NumPy's .npz. With an empty name the archive must hold exactly one array. Read into memory.
Result<Tensor> openNpz(const std::string &path, const std::string &name);
Result<Tensor> readNpz(const std::string &where, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                       const std::string &name);

/// Tensor `name` of a safetensors file. Stays mapped.
Result<Tensor> openSafetensors(const std::string &path, const std::string &name);

/// A file of little-endian token ids, cut into samples of `length` tokens; sample i starts at token i × length + shift.
/// A token is held back at the end, so that the shifts 0 (inputs) and 1 (what follows each) give the same number of
/// samples.
Result<Tensor> openTokens(const std::string &path, DType type, int64_t length, int64_t shift);

/// Columns of a table with commas (.csv) or tabs (.tsv), read into memory as textType(argument) says: one by name,
/// or a run of them, "FIRST..LAST"; a table whose first row holds only numbers has no names, and columns have numbers
/// from 0. One column gives samples without dimension. Each cell must hold a number.
Result<Tensor> openCsv(const std::string &path, const std::string &columns, DType argument);
Result<Tensor> readCsv(const std::string &where, std::span<const std::byte> bytes, char separator,
                       const std::string &columns, DType argument);

/// The header of a .npy file of version 1 for a little-endian C-order array; its size is a multiple of 64.
std::string makeNpyHeader(DType type, const std::vector<int64_t> &shape);

} // namespace dg::data
