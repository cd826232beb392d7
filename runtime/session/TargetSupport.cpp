// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/TargetSupport.h"

#include <algorithm>
#include <fstream>
#include <sstream>

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

} // namespace dg::session
