// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/TargetSupport.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

namespace dg::session {

std::string compilerName(std::string flag) {
  if (flag.starts_with("amx_"))
    return flag.replace(3, 1, "-");
  flag.erase(std::remove(flag.begin(), flag.end(), '_'), flag.end());
  return flag == "bmi1" ? "bmi" : flag;
}

const std::vector<std::string> &hostFeatures() {
  static const std::vector<std::string> features = [] {
    std::vector<std::string> found;
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("flags"))
        continue;
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word;)
        found.push_back(compilerName(word));
      break;
    }
    return found;
  }();
  return features;
}

std::vector<std::string> missingFeatures(std::string_view needed) {
  std::vector<std::string> missing;
  std::istringstream words{std::string(needed)};
  for (std::string word; std::getline(words, word, ',');)
    if (std::find(hostFeatures().begin(), hostFeatures().end(), word) == hostFeatures().end())
      missing.push_back(word);
  return missing;
}

Status requestTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  if (syscall(SYS_arch_prctl, requestPermission, tileData) == 0)
    return Status::ok();
  return Status::error(
      ErrorKind::badInput,
      "the kernel of this host gives no AMX tiles to this process: {}; Linux has them from 5.16 on, and "
      "a job compiled with --target x86-64-v4 needs none",
      std::strerror(errno));
}

std::string refusalOf(std::string_view needed) {
  if (auto missing = missingFeatures(needed); !missing.empty())
    return fmt::format("this host lacks {}", fmt::join(missing, ", "));
  if (needed.find("amx-tile") == std::string_view::npos)
    return "";
  Status tiles = requestTiles();
  return tiles ? "" : tiles.message();
}

} // namespace dg::session
