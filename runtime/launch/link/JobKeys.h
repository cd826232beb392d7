// SPDX-License-Identifier: Apache-2.0
// From the secret of a job to the keys of its ranks. The secret stays in launchers; a rank holds one key for each other
// rank, good for this run only.
//
//   run key  = HMAC(secret, "run", run id)          the id is random, and node 0 tells it to all launchers
//   run key' = HMAC(run key, "again", how often)    after ranks have started anew
//   pair key = HMAC(run key, "pair", low, high)     the numbers of the two ranks
#pragma once

#include "runtime/support/Secret.h"
#include "runtime/support/Sha256.h"

#include <string>
#include <vector>

namespace dg {

Secret runKeyOf(const Secret &secret, const std::string &runId);
/// For ranks that have started anew so many times: others than they had before.
Secret runKeyOf(const Secret &runKey, int64_t generation);
/// The keys of one rank, by the other rank; its own is not used.
std::vector<Digest> pairKeysOf(const Secret &runKey, int64_t rank, int64_t numRanks);

} // namespace dg
