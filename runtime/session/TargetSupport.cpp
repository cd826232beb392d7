// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/TargetSupport.h"

namespace dg::session {

static bool hasLevel2() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); }
static bool hasLevel3() {
  return hasLevel2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
static bool hasLevel4() {
  return hasLevel3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

int supportOf(const std::string &target) {
  __builtin_cpu_init();
  if (target == "x86-64")
    return 1;
  if (target == "x86-64-v2")
    return hasLevel2() ? 2 : 0;
  if (target == "x86-64-v3")
    return hasLevel3() ? 3 : 0;
  if (target == "x86-64-v4")
    return hasLevel4() ? 4 : 0;
  if (target == "sapphirerapids")
    return hasLevel4() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni") ? 5 : 0;
  // Another name is a processor's own ("native" on the host that compiled, "znver3"): its object checks itself when it
  // is loaded.
  return 6;
}

std::string describeHost() {
  __builtin_cpu_init();
  return hasLevel4() ? "x86-64-v4" : hasLevel3() ? "x86-64-v3" : hasLevel2() ? "x86-64-v2" : "x86-64";
}

} // namespace dg::session
