// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer in the plain build: gives a target every file of the folders that are named, so that what
// once crashed is a test everywhere. Fails if there is no file.
#include "tests/fuzz/FuzzTarget.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

int main(int numArguments, char **arguments) {
  size_t numFiles = 0;
  for (int i = 1; i < numArguments; ++i)
    for (const auto &entry : std::filesystem::directory_iterator(arguments[i])) {
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);
      std::ifstream file(entry.path(), std::ios::binary);
      std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
      // Exactly as large as the file, so that AddressSanitizer sees a read behind its end.
      auto exact = std::make_unique<uint8_t[]>(bytes.size());
      std::copy(bytes.begin(), bytes.end(), exact.get());
      LLVMFuzzerTestOneInput(exact.get(), bytes.size());
      ++numFiles;
    }
  std::printf("%zu files\n", numFiles);
  return numFiles == 0;
}
