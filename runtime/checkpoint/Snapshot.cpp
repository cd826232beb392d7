// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Snapshot.h"

#include "runtime/package/ContentHash.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace dg::checkpoint {

static constexpr uint64_t headBytes = 64, textRoom = 16 << 10, alignment = 64;
static constexpr uint64_t valuesBegin = headBytes + textRoom;

static uint64_t aligned(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

static bool isKeptBy(const plan::Value &value, plan::Coordinates at) {
  return (value.kind == plan::ValueKind::parameter || value.kind == plan::ValueKind::state) &&
         int64_t(value.stage) == at.pipe;
}

uint64_t RankSnapshots::bytesNeeded(const plan::Plan &plan, plan::Coordinates at) {
  uint64_t bytes = valuesBegin;
  for (const plan::Value &value : plan.values)
    if (isKeptBy(value, at))
      bytes += aligned(value.bytes);
  return bytes;
}

RankSnapshots::RankSnapshots(const plan::Plan &plan, plan::Coordinates at, std::array<std::span<std::byte>, 2> regions)
    : regions(regions) {
  for (plan::ValueId id = 0; id < plan.values.size(); ++id)
    if (isKeptBy(plan.values[id], at))
      ids.push_back(id);
  for (std::span<std::byte> region : regions) // now, not while steps wait; if it cannot be done, they wait a little
    (void)::madvise(region.data(), region.size(), MADV_POPULATE_WRITE);
}

Status RankSnapshots::take(const TrainingState &state, const ValueAccess &values, std::optional<int64_t> kept) {
  const bool isFirstKept = kept && headOf(regions[0]).stepAndOne == uint64_t(*kept) + 1;
  const std::span<std::byte> region = regions[isFirstKept];
  Head &head = headOf(region);
  head.stepAndOne = 0;
  package::ContentHash hash;
  uint64_t used = valuesBegin;
  for (plan::ValueId id : ids)
    DG_RETURN_IF_ERROR(values.inspect(id, 0, [&](std::span<const std::byte> data) {
      if (data.size() > region.size() - used)
        return Status::error(ErrorKind::runFailed, "a snapshot has {} bytes of room, value {} ends behind them",
                             region.size(), id);
      const std::span<std::byte> to = region.subspan(used, data.size());
      std::memcpy(to.data(), data.data(), data.size());
      hash.add(to);
      used += aligned(data.size());
      return Status::ok();
    }));
  const std::string text = toJson({state, used, hash.text()});
  if (text.size() > textRoom)
    return Status::error(ErrorKind::runFailed, "a snapshot has {} bytes of room for its manifest, which has {}",
                         textRoom, text.size());
  std::memcpy(region.data() + headBytes, text.data(), text.size());
  head.textBytes = text.size();
  head.stepAndOne = uint64_t(state.step) + 1;
  return Status::ok();
}

Result<TrainingState> RankSnapshots::restore(int64_t step, ValueAccess &values) const {
  const auto found = std::find_if(regions.begin(), regions.end(), [&](std::span<std::byte> region) {
    return headOf(region).stepAndOne == uint64_t(step) + 1;
  });
  const std::string name = fmt::format("the snapshot of step {}", step);
  if (found == regions.end())
    return Status::error(ErrorKind::runFailed, "{} is not in memory", name);
  const std::span<std::byte> region = *found;
  const uint64_t textBytes = std::min<uint64_t>(headOf(region).textBytes, textRoom);
  auto manifest =
      manifestFromJson(std::string(reinterpret_cast<const char *>(region.data()) + headBytes, textBytes), name);
  if (!manifest)
    return Status::error(ErrorKind::runFailed, "{}", manifest.status().message());
  // Twice over the values: nothing is restored that is not whole.
  package::ContentHash hash;
  uint64_t used = valuesBegin;
  auto next = [&](size_t bytes) {
    const std::span<const std::byte> from = region.subspan(std::min<uint64_t>(used, region.size()));
    used += aligned(bytes);
    return from.first(std::min(bytes, from.size()));
  };
  for (plan::ValueId id : ids)
    DG_RETURN_IF_ERROR(values.inspect(id, 0, [&](std::span<const std::byte> data) {
      hash.add(next(data.size()));
      return Status::ok();
    }));
  if (used != manifest->fileBytes || hash.text() != manifest->fileHash)
    return Status::error(ErrorKind::runFailed,
                         "{} is damaged: its hash is not that of its manifest; start again from a checkpoint", name);
  used = valuesBegin;
  for (plan::ValueId id : ids)
    DG_RETURN_IF_ERROR(values.fill(id, 0, [&](std::span<std::byte> to) {
      const std::span<const std::byte> from = next(to.size());
      std::memcpy(to.data(), from.data(), from.size());
    }));
  return std::move(manifest->state);
}

} // namespace dg::checkpoint
