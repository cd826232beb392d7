// SPDX-License-Identifier: Apache-2.0
// dgrun's command line, as the user wrote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dg::dgrun {

struct Flags {
  std::string job;
  std::optional<int64_t> ranks;
  std::optional<uint32_t> threads;
  std::vector<std::string> data, evalData, normalize, input, output;
  std::optional<int64_t> prefetch, readers, skipBad;
  std::optional<int64_t> evalBatch, shuffleBuffer, epochs, steps;
  bool checkNumerics = false, allowNan = false, dryRun = false;
  int64_t checkReplicas = 0;
  bool noShuffle = false, dropLast = false, resume = false, resumeOlder = false, json = false, evaluate = false;
  std::optional<double> validation;
  std::optional<int64_t> keep, maxLost, maxRestarts;
  std::optional<std::string> snapshotEvery;
  std::string onFailure;
  std::optional<std::string> deal;
  std::optional<std::string> evalEvery, keepBest, stopWhen, logEvery, jsonEvery;
  std::string logDirectory, dataCache;
  std::optional<double> learningRate;
  std::optional<std::string> schedule, checkpointEvery;
  std::optional<uint64_t> seed;
  std::string checkpoint, resumeFrom, trace;
  bool profile = false;
  bool probe = false;
  std::string verify, exportTo;
  double timeoutSeconds = 30, rendezvousSeconds = 300;
  std::optional<double> saveSeconds;
  std::optional<int64_t> nodes, nodeRank;
  bool secure = false, trustFabric = false;
  std::string rendezvous, target, trustedKeys;
};

/// Fills `flags`. Returns nothing to go on, or the exit code to leave with (0 after --help and --version, 2 on a
/// mistake, which has been printed).
std::optional<int> parseFlags(int argc, char **argv, Flags &flags);

} // namespace dg::dgrun
