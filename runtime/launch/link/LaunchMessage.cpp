// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/LaunchMessage.h"

#include "runtime/launch/link/ControlSocket.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <type_traits>

namespace dg {

static_assert(std::is_trivially_copyable_v<RankProgress>);

std::string packProgress(const std::vector<RankProgress> &ranks) {
  return {reinterpret_cast<const char *>(ranks.data()), ranks.size() * sizeof(RankProgress)};
}

std::vector<RankProgress> unpackProgress(const std::string &text) {
  if (text.empty() || text.size() % sizeof(RankProgress) != 0)
    return {};
  std::vector<RankProgress> ranks(text.size() / sizeof(RankProgress));
  std::memcpy(ranks.data(), text.data(), text.size());
  return ranks;
}

/// A number from `least` to `most`.
static bool readNumber(const std::string &text, int64_t &number, int64_t least, int64_t most = mostRanks) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
}

std::string packEnd(const std::string &why, uint64_t step) { return packParts({why, std::to_string(step)}); }

bool unpackEnd(const std::string &text, std::string &why, uint64_t &step) {
  auto parts = unpackParts(text);
  int64_t number = 0;
  if (!parts || parts->size() != 2 || !readNumber((*parts)[1], number, 0, std::numeric_limits<int64_t>::max()))
    return false;
  why = (*parts)[0], step = uint64_t(number);
  return true;
}

std::string packRestart(const RestartPoint &point) {
  return packParts({std::to_string(point.generation), std::to_string(point.snapshot.value_or(-1)),
                    std::to_string(point.checkpoint.value_or(-1))});
}

bool unpackRestart(const std::string &text, RestartPoint &point) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max() - 1;
  auto parts = unpackParts(text);
  int64_t snapshot = -1, checkpoint = -1;
  if (!parts || parts->size() != 3 || !readNumber((*parts)[0], point.generation, 1, most) ||
      !readNumber((*parts)[1], snapshot, -1, most) || !readNumber((*parts)[2], checkpoint, -1, most))
    return false;
  point.snapshot = snapshot < 0 ? std::nullopt : std::optional(snapshot);
  point.checkpoint = checkpoint < 0 ? std::nullopt : std::optional(checkpoint);
  return true;
}

std::string packJoin(const JoinRequest &request) {
  return packParts({std::to_string(request.numLocal), request.hostName, request.hostId, request.fingerprint});
}

bool unpackJoin(const std::string &text, JoinRequest &request) {
  auto parts = unpackParts(text);
  if (!parts || parts->size() != 4 || !readNumber((*parts)[0], request.numLocal, 1))
    return false;
  request.hostName = (*parts)[1], request.hostId = (*parts)[2], request.fingerprint = (*parts)[3];
  return true;
}

std::string packPlacement(const RankPlacement &placement) {
  return packParts({std::to_string(placement.firstRank), std::to_string(placement.numLocal),
                    std::to_string(placement.numRanks), std::to_string(placement.firstLocalRank),
                    placement.spansHosts ? "1" : "0", placement.runId, placement.jobId});
}

bool unpackPlacement(const std::string &text, RankPlacement &placement) {
  auto parts = unpackParts(text);
  if (!parts || parts->size() != 7)
    return false;
  placement.spansHosts = (*parts)[4] == "1";
  placement.runId = (*parts)[5], placement.jobId = (*parts)[6];
  return readNumber((*parts)[0], placement.firstRank, 0) && readNumber((*parts)[1], placement.numLocal, 1) &&
         readNumber((*parts)[2], placement.numRanks, 1) && readNumber((*parts)[3], placement.firstLocalRank, 0) &&
         placement.firstRank + placement.numLocal <= placement.numRanks;
}

} // namespace dg
