// SPDX-License-Identifier: Apache-2.0
// A folder of its own for each test, gone at its end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace dg::testing {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dg-test-XXXXXX").string();
    path = mkdtemp(pattern.data()) ? pattern : ".";
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (path != ".")
      std::filesystem::remove_all(path, ignored);
  }
  std::string operator/(const std::string &name) const { return path + "/" + name; }

private:
  std::string path;
};

} // namespace dg::testing
