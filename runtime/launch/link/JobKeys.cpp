// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/JobKeys.h"

#include <algorithm>

namespace dg {

Secret runKeyOf(const Secret &secret, const std::string &runId) {
  Digest key = hmacSha256(secret.view(), "run" + runId);
  Secret kept(asText(key));
  forget(key.data(), key.size());
  return kept;
}

Secret runKeyOf(const Secret &runKey, int64_t generation) {
  std::string text = "again";
  Digest key = hmacSha256(runKey.view(), text.append(reinterpret_cast<const char *>(&generation), sizeof generation));
  Secret kept(asText(key));
  forget(key.data(), key.size());
  return kept;
}

std::vector<Digest> pairKeysOf(const Secret &runKey, int64_t rank, int64_t numRanks) {
  std::vector<Digest> keys;
  keys.reserve(size_t(numRanks)); // it must not leave copies behind
  for (int64_t peer = 0; peer < numRanks; ++peer) {
    const int64_t pair[2] = {std::min(rank, peer), std::max(rank, peer)};
    std::string text = "pair";
    keys.push_back(hmacSha256(runKey.view(), text.append(reinterpret_cast<const char *>(pair), sizeof pair)));
  }
  return keys;
}

} // namespace dg
