// SPDX-License-Identifier: Apache-2.0
// The dictionary of an .npy header with its length right and, mostly, as many bytes of data as type and shape ask for;
// an .npz archive with the checksums of its entries right, so that changes reach the arrays behind them.
#include "tests/fuzz/Mutation.h"
#include "tests/fuzz/ZipFile.h"

using namespace dg::fuzz;

namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr size_t mostData = 1 << 12;

std::string makeHeader(const std::string &dictionary, unsigned version, Random &random) {
  std::string header = std::string(magic) + char(version) + '\0';
  size_t bytes = dictionary.size();
  if (random.oneIn(30))
    bytes = size_t(strangeNumber(random));
  for (size_t i = 0; i < (version == 1 ? 2u : 4u); ++i)
    header += char(bytes >> (8 * i));
  return header + dictionary;
}

/// A new array, or one with `dictionary` changed at random.
std::string mutateArray(std::string_view bytes, Random &random) {
  size_t prefix = bytes.size() > 6 && bytes[6] == 1 ? 10 : 12;
  size_t headerBytes = bytes.size() >= prefix ? size_t(uint8_t(bytes[8])) | size_t(uint8_t(bytes[9])) << 8 : 0;
  if (random.oneIn(2) && bytes.starts_with(magic) && bytes.size() >= prefix + headerBytes) {
    std::string dictionary(bytes.substr(prefix, headerBytes));
    mutateBytes(dictionary, dictionary.size() + 16);
    return makeHeader(dictionary, unsigned(bytes[6]), random) + std::string(bytes.substr(prefix + headerBytes));
  }
  static constexpr const char *types[] = {"b1", "u1", "i1", "u2", "i2", "u4", "i4",
                                          "u8", "i8", "f2", "f4", "f8", "c8", "O"};
  std::string type = random.oneOf(types), shape;
  uint64_t data = type.size() > 1 ? uint64_t(type[1] - '0') : 1;
  for (size_t rank = random.below(random.oneIn(20) ? 40 : 5); rank > 0; --rank) {
    int64_t size = strangeNumber(random);
    shape += std::to_string(size) + ",";
    data *= uint64_t(size);
  }
  std::string fields[] = {"'descr': '" + std::string(1, "<>|="[random.below(4)]) + type + "'",
                          std::string("'fortran_order': ") + (random.oneIn(4) ? "True" : "False"),
                          "'shape': (" + shape + ")"};
  std::swap(random.oneOf(fields), random.oneOf(fields));
  std::string dictionary = "{" + fields[0] + ", " + fields[1] + ", " + fields[2] + ", }\n";
  if (random.oneIn(10))
    data += random.below(3) - 1;
  return makeHeader(dictionary, 1 + unsigned(random.below(3)), random) +
         std::string(std::min<uint64_t>(data, mostData), 'x');
}

std::string mutateArchive(std::vector<ZipEntry> entries, Random &random) {
  if (entries.empty() || random.oneIn(20))
    entries.push_back({"x.npy", mutateArray("", random)});
  ZipEntry &entry = random.oneOf(entries);
  switch (random.below(6)) {
  case 0:
    entry.isDeflated = !entry.isDeflated;
    break;
  case 1:
    mutateBytes(entry.name, entry.name.size() + 4);
    break;
  case 2:
    if (entries.size() > 1)
      entries.pop_back();
    break;
  default:
    entry.content = mutateArray(entry.content, random);
  }
  std::string file = writeZip(entries, 1, "").bytes;
  if (random.oneIn(3)) { // a field of a header, of the directory or of its end
    static constexpr const char *marks[] = {"PK\3\4", "PK\1\2", "PK\5\6"};
    size_t record = file.rfind(random.oneOf(marks));
    overwrite(file, record + 4 + random.below(46), random.oneIn(2) ? 2 : 4, uint64_t(strangeNumber(random)));
  }
  return file;
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [](std::string_view bytes, Random &random) -> std::optional<std::string> {
    auto entries = readZip(bytes);
    if (entries)
      return mutateArchive(std::move(*entries), random);
    if (bytes.starts_with(magic))
      return mutateArray(bytes, random);
    return std::nullopt;
  });
}
