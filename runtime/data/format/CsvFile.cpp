// SPDX-License-Identifier: Apache-2.0
// Tables as text (RFC 4180): .csv with commas, .tsv with tabs. The wanted columns become numbers in memory once, when
// the table is opened; text is slow to read, and numbers are smaller.
#include "runtime/data/format/NumberText.h"
#include "runtime/data/format/SharedMapping.h"
#include "runtime/data/format/TensorFiles.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>

namespace dg::data {

namespace {

/// Goes through a table cell by cell.
class Cells {
public:
  Cells(std::string_view text, char separator) : rest(text), separator(separator) {
    if (rest.starts_with("\xEF\xBB\xBF"))
      rest.remove_prefix(3);
  }
  bool isAtEnd() const { return rest.empty(); }
  /// The next cell; `isLast` of its row. What quotes hold is kept until the next call. False at a quote that is not
  /// closed, or in the middle of a cell.
  bool next(std::string_view &cell, bool &isLast) {
    if (rest.starts_with('"')) {
      if (!takeQuoted(cell))
        return false;
    } else {
      const char ends[] = {separator, '\n', '"'};
      size_t end = std::min(rest.find_first_of(std::string_view(ends, 3)), rest.size());
      if (end < rest.size() && rest[end] == '"')
        return false;
      cell = rest.substr(0, end);
      rest.remove_prefix(end);
      if (cell.ends_with('\r') && (rest.empty() || rest.front() == '\n'))
        cell.remove_suffix(1);
    }
    isLast = rest.empty() || rest.front() == '\n';
    if (!rest.empty())
      rest.remove_prefix(1);
    return true;
  }

private:
  bool takeQuoted(std::string_view &cell) {
    unquoted.clear();
    for (rest.remove_prefix(1);; rest.remove_prefix(1)) {
      const size_t quote = rest.find('"');
      if (quote == std::string_view::npos)
        return false;
      unquoted += rest.substr(0, quote);
      rest.remove_prefix(quote + 1);
      if (!rest.starts_with('"'))
        break;
      unquoted += '"';
    }
    if (rest.starts_with("\r\n") || rest == "\r")
      rest.remove_prefix(1);
    cell = unquoted;
    return rest.empty() || rest.front() == '\n' || rest.front() == separator;
  }
  std::string_view rest;
  char separator;
  std::string unquoted;
};

/// A run of columns, by place.
struct Columns {
  size_t first = 0, last = 0;
};

} // namespace

/// The place of a column by its name, or, where the table has no names, by its number from 0.
static std::optional<size_t> placeOf(std::string_view name, const std::vector<std::string> &names, bool hasNames) {
  for (size_t i = 0; hasNames && i < names.size(); ++i)
    if (names[i] == name)
      return i;
  size_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool isNumber = error == std::errc() && end == name.data() + name.size();
  return !hasNames && isNumber && number < names.size() ? std::optional(number) : std::nullopt;
}

static Result<Columns> findColumns(const std::string &where, const std::string &wanted,
                                   const std::vector<std::string> &names, bool hasNames) {
  constexpr size_t mostListed = 12;
  auto missing = [&](std::string_view name) {
    std::vector<std::string> listed(names.begin(), names.begin() + ptrdiff_t(std::min(names.size(), mostListed)));
    for (std::string &each : listed)
      each = quoteShort(each);
    return Status::error(
        ErrorKind::badInput, "{}: has no column {}; it has {} columns{}", where, quoteShort(name), names.size(),
        hasNames ? fmt::format(": {}{}", fmt::join(listed, ", "), names.size() > mostListed ? ", …" : "")
                 : " without names: write their numbers, from 0");
  };
  // A name may hold dots itself: the whole text is tried first.
  if (auto place = placeOf(wanted, names, hasNames)) {
    if (hasNames && std::count(names.begin(), names.end(), wanted) > 1)
      return Status::error(ErrorKind::badInput, "{}: has {} columns {}, expected one: give them different names", where,
                           std::count(names.begin(), names.end(), wanted), quoteShort(wanted));
    return Columns{*place, *place};
  }
  const size_t dots = wanted.find("..");
  if (dots == std::string::npos)
    return missing(wanted);
  std::string_view first = std::string_view(wanted).substr(0, dots), last = std::string_view(wanted).substr(dots + 2);
  auto from = placeOf(first, names, hasNames), to = placeOf(last, names, hasNames);
  if (!from || !to || *from > *to)
    return missing(!from ? first : !to ? last : std::string_view(wanted));
  return Columns{*from, *to};
}

Result<Tensor> readCsv(const std::string &where, std::span<const std::byte> bytes, char separator,
                       const std::string &columns, DType argument) {
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  const DType type = textType(argument);
  const size_t elementBytes = size_t(plan::sizeOf(type));
  auto damaged = [&](int64_t row, const std::string &what) {
    return Status::error(ErrorKind::badInput, "{}: row {}: {}", where, row, what);
  };
  std::vector<std::string> names;
  std::string_view cell;
  bool hasNames = false;
  Cells cells(text, separator);
  for (bool isLast = false; !isLast;) {
    if (!cells.next(cell, isLast))
      return damaged(1, "a quote stands where none may, or is not closed");
    double ignored = 0;
    hasNames = hasNames || !readNumber(cell, DType::f64, reinterpret_cast<std::byte *>(&ignored));
    names.emplace_back(cell);
  }
  auto found = findColumns(where, columns, names, hasNames);
  if (!found)
    return found.status();
  auto values = std::make_shared<std::vector<std::byte>>();
  const size_t width = found->last - found->first + 1;
  int64_t rows = 0, row = hasNames ? 1 : 0; // as an editor counts, but for line ends in quotes
  if (!hasNames)
    cells = Cells(text, separator);
  try {
    while (!cells.isAtEnd()) {
      ++row, ++rows;
      const size_t begin = values->size();
      values->resize(begin + width * elementBytes);
      size_t place = 0;
      for (bool isLast = false; !isLast; ++place) {
        if (!cells.next(cell, isLast))
          return damaged(row, "a quote stands where none may, or is not closed");
        if (place < found->first || place > found->last)
          continue;
        if (!readNumber(cell, type, values->data() + begin + (place - found->first) * elementBytes))
          return damaged(
              row, fmt::format("found {} in column {}, expected {}", quoteShort(cell),
                               place < names.size() && hasNames ? quoteShort(names[place]) : fmt::format("{}", place),
                               type == DType::i64 ? "a whole number" : "a finite number"));
      }
      if (place != names.size())
        return damaged(row, fmt::format("has {} cells, expected {} as in the first row", place, names.size()));
    }
  } catch (const std::bad_alloc &) {
    return Status::error(ErrorKind::runFailed, "{}: no memory for {} rows", where, rows);
  }
  Tensor tensor{type, {rows}, values->data(), nullptr};
  if (width > 1)
    tensor.shape.push_back(int64_t(width));
  tensor.owner = std::move(values);
  return tensor;
}

Result<Tensor> openCsv(const std::string &path, const std::string &columns, DType argument) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  return readCsv(path, (*file)->bytes(), path.ends_with(".tsv") ? '\t' : ',', columns, argument);
}

} // namespace dg::data
