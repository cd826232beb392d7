// SPDX-License-Identifier: Apache-2.0
// Memory. Two rules prove that no value is destroyed while it is needed:
//   1. values that outlive a chunk instance (several micro-batches, several slots, sent) share no byte with another
//   value;
//   2. all others are followed byte by byte through the chunk, as an interval map of who wrote and who read last. Each
//      access must be ordered after the conflicting ones before it (by transitivity after all of them), and a read must
//      find what its own value's writer left. O(accesses · log) for each chunk.
// Values with the same place and size are one buffer: an op that works in place.
#include "runtime/plan/verify/MemoryVerifier.h"
#include "runtime/plan/ChunkOrder.h"

#include <algorithm>
#include <map>

namespace dg::plan {

namespace {

/// DG_BUFFER_ALIGNMENT of the kernel ABI; this folder does not include it, a test compares them.
constexpr uint64_t bufferAlignment = 64;

std::string describe(const Plan &plan, ValueId id) {
  const Value &value = plan.values[id];
  std::string slots = value.slots > 1 ? fmt::format(", {} slots every {}", value.slots, value.stride) : "";
  return fmt::format("values[{}] ('{}', bytes {} to {}{})", id, value.name, value.offset, value.offset + value.bytes,
                     slots);
}

Status checkPlace(const Plan &plan, ValueId id) {
  const Value &value = plan.values[id];
  auto wrong = [&](std::string_view what) {
    return Status::error(ErrorKind::badInput, "plan: {} of stage {}: {}", describe(plan, id), value.stage, what);
  };
  if (value.offset % bufferAlignment != 0)
    return wrong(fmt::format("the offset is not a multiple of {}", bufferAlignment));
  uint64_t elements = 1;
  for (int64_t size : value.shape)
    elements *= uint64_t(size);
  if (value.kind != ValueKind::scratch && value.bytes < elements * uint64_t(sizeOf(value.dtype)))
    return wrong(fmt::format("too small for {} elements of {}", elements, nameOf(value.dtype)));
  if (value.slots > 1 && (value.stride % bufferAlignment != 0 || value.stride < value.bytes))
    return wrong(fmt::format("the stride must be a multiple of {} and at least the size", bufferAlignment));
  uint64_t arena = plan.memory[value.stage].arenaBytes, span = 0, end = 0;
  if (__builtin_mul_overflow(value.slots > 1 ? value.stride : 0, uint64_t(value.slots - 1), &span) ||
      __builtin_add_overflow(span, value.bytes, &span) || __builtin_add_overflow(value.offset, span, &end) ||
      end > arena)
    return wrong(fmt::format("ends behind the arena of {} bytes", arena));
  if (isPersistent(value.kind))
    for (size_t i = 0; i < value.shape.size(); ++i) {
      int64_t parts = value.sharding[i] ? plan.mesh.sizeOf(*value.sharding[i]) : 1;
      int64_t expected = (value.globalShape[i] + parts - 1) / parts;
      if (value.shape[i] != expected)
        return wrong(fmt::format("dimension {} has {} elements, expected {} ({} over {})", i, value.shape[i], expected,
                                 value.globalShape[i], parts));
    }
  return Status::ok();
}

/// Fails if a value marked `exclusive` shares a byte with another of `values` that is not the same buffer. A sweep,
/// O(n log n): an overlap exists exactly if an interval starts before the farthest end of those before it.
Status checkExclusive(const Plan &plan, const PlanFacts &facts, const std::vector<ValueId> &values,
                      const std::vector<bool> &exclusive, std::string_view why) {
  struct Interval {
    uint64_t begin, end;
    ValueId value;
    bool exclusive;
  };
  std::vector<Interval> intervals;
  std::map<uint32_t, std::pair<ValueId, bool>> buffers; // one value stands for all of its buffer
  for (ValueId id : values) {
    auto &[first, isExclusive] = buffers.try_emplace(facts.bufferOf[id], id, false).first->second;
    isExclusive = isExclusive || exclusive[id];
  }
  for (const auto &[buffer, entry] : buffers) {
    // All slots as one interval: what lies between them is padding, and a plan may claim a million of them.
    const Value &value = plan.values[entry.first];
    uint64_t last = value.slots > 1 ? uint64_t(value.slots - 1) * value.stride : 0;
    if (value.bytes > 0)
      intervals.push_back({value.offset, value.offset + last + value.bytes, entry.first, entry.second});
  }
  std::sort(intervals.begin(), intervals.end(), [](const Interval &a, const Interval &b) {
    return std::pair(a.begin, a.value) < std::pair(b.begin, b.value);
  });
  const Interval *farthest = nullptr, *farthestExclusive = nullptr;
  for (const Interval &interval : intervals) {
    const Interval *before = interval.exclusive ? farthest : farthestExclusive;
    if (before && before->end > interval.begin) {
      const Interval &owner = interval.exclusive ? interval : *before;
      const Interval &intruder = interval.exclusive ? *before : interval;
      return Status::error(ErrorKind::badInput, "plan: stage {}: {} {}, but {} overlaps it",
                           plan.values[owner.value].stage, describe(plan, owner.value), why,
                           describe(plan, intruder.value));
    }
    if (!farthest || interval.end > farthest->end)
      farthest = &interval;
    if (interval.exclusive && (!farthestExclusive || interval.end > farthestExclusive->end))
      farthestExclusive = &interval;
  }
  return Status::ok();
}

/// A task may write into a persistent buffer under another name only if it works in place on the persistent value.
Status checkPersistentWrites(const Plan &plan, const PlanFacts &facts) {
  std::vector<bool> persistent(plan.values.size(), false);
  for (ValueId id = 0; id < plan.values.size(); ++id)
    if (isPersistent(plan.values[id].kind))
      persistent[facts.bufferOf[id]] = true;
  for (TaskId task = 0; task < plan.tasks.size(); ++task) {
    const TaskAccess &access = facts.access[task];
    for (ValueId id : access.writes) {
      if (isPersistent(plan.values[id].kind) || !persistent[facts.bufferOf[id]])
        continue;
      bool inPlace = false;
      for (const auto *list : {&access.reads, &access.writes})
        for (ValueId other : *list)
          inPlace |= isPersistent(plan.values[other].kind) && facts.bufferOf[other] == facts.bufferOf[id];
      if (!inPlace)
        return Status::error(ErrorKind::badInput,
                             "plan: ops[{}] ('{}') writes {}, which lies on a parameter, state or constant", task,
                             plan.tasks[task].name, describe(plan, id));
    }
  }
  return Status::ok();
}

/// Rule 2: who wrote and who read each byte last, through one chunk or, with one micro-batch, through all chunks of a
/// stage.
class ByteHistory {
public:
  ByteHistory(const Plan &plan, const PlanFacts &facts) : plan(plan), facts(facts) {}

  /// What the runtime has put there before the step.
  void define(ValueId id) { replace(id, {}); }

  /// Follows one instance of the chunk, which starts when everything before it is complete.
  Status run(const Chunk &chunk) {
    ChunkOrder chunkOrder(plan, chunk, facts.positionOf);
    order = &chunkOrder;
    ++epoch;
    for (TaskId task : chunk.tasks) {
      current = {epoch, task, completionOf(task)};
      const TaskAccess &access = facts.access[task];
      for (ValueId id : access.reads)
        DG_RETURN_IF_ERROR(read(id, std::binary_search(access.exposed.begin(), access.exposed.end(), id)));
      for (ValueId id : access.writes)
        DG_RETURN_IF_ERROR(write(id));
    }
    return Status::ok();
  }

  /// Whether the bytes still hold `id`, for the outputs after the step.
  Status checkKept(ValueId id) {
    const Value &value = plan.values[id];
    for (auto at = lowerOf(value.offset); at != pieces.end() && at->first < value.offset + value.bytes; ++at)
      DG_RETURN_IF_ERROR(checkContent(id, at->second, "the runtime"));
    return Status::ok();
  }

private:
  /// A task that touched a byte. It is over when the task at `completion` (its finish, if it has one) is.
  struct Access {
    uint32_t epoch = 0;
    TaskId task = noId;
    uint32_t completion = 0;
  };
  struct Piece {
    uint64_t end = 0;
    ValueId value = noId; ///< what it holds; noId = not known
    Access writer;
    std::vector<std::pair<Access, ValueId>> readers; ///< since the write
  };
  using Pieces = std::map<uint64_t, Piece>;

  uint32_t completionOf(TaskId task) const {
    TaskId finish = facts.finishOf[task];
    return facts.positionOf[plan.tasks[task].as<Send>() || finish == noId ? task : finish];
  }

  bool isOver(const Access &earlier) const {
    return earlier.epoch != epoch || earlier.task == current.task ||
           order->isBefore(earlier.completion, facts.positionOf[current.task]);
  }

  bool isSameBuffer(ValueId a, ValueId b) const { return facts.bufferOf[a] == facts.bufferOf[b]; }

  Status unordered(ValueId id, std::string_view verb, const Access &earlier, std::string_view earlierVerb,
                   ValueId other) {
    return Status::error(ErrorKind::badInput,
                         "plan: ops[{}] ('{}') {} {}, but no dependency puts it after ops[{}] ('{}'), which {} {}",
                         current.task, plan.tasks[current.task].name, verb, describe(plan, id), earlier.task,
                         plan.tasks[earlier.task].name, earlierVerb, describe(plan, other));
  }

  Status checkContent(ValueId id, const Piece &piece, const std::string &reader) {
    if (piece.value == noId || piece.value == id || isPersistent(plan.values[id].kind))
      return Status::ok();
    return Status::error(ErrorKind::badInput, "plan: {} reads {}, which ops[{}] ('{}') has overwritten with {}", reader,
                         describe(plan, id), piece.writer.task,
                         piece.writer.task == noId ? "" : plan.tasks[piece.writer.task].name.c_str(),
                         describe(plan, piece.value));
  }

  Status read(ValueId id, bool exposed) {
    const Value &value = plan.values[id];
    uint64_t end = value.offset + value.bytes;
    split(value.offset);
    split(end);
    uint64_t covered = value.offset;
    for (auto at = pieces.lower_bound(value.offset); covered < end; ++at) {
      if (at == pieces.end() || at->first > covered) { // a gap: nothing has touched these bytes yet
        uint64_t gapEnd = at == pieces.end() ? end : std::min(end, at->first);
        at = pieces.emplace(covered, Piece{gapEnd, noId, {}, {}}).first;
      }
      Piece &piece = at->second;
      if (!isOver(piece.writer))
        return unordered(id, "reads", piece.writer, "writes", piece.value);
      if (exposed)
        DG_RETURN_IF_ERROR(
            checkContent(id, piece, fmt::format("ops[{}] ('{}')", current.task, plan.tasks[current.task].name)));
      if (!piece.readers.empty() && piece.readers.back().first.epoch != epoch)
        piece.readers.clear();
      piece.readers.emplace_back(current, id);
      covered = piece.end;
    }
    return Status::ok();
  }

  Status write(ValueId id) {
    const Value &value = plan.values[id];
    for (auto at = lowerOf(value.offset); at != pieces.end() && at->first < value.offset + value.bytes; ++at) {
      const Piece &piece = at->second;
      if (!isOver(piece.writer))
        return unordered(id, "writes", piece.writer, "writes", piece.value);
      for (const auto &[reader, other] : piece.readers) {
        if (!isOver(reader))
          return unordered(id, "writes", reader, "reads", other);
        if (isCurrent(reader) && !isSameBuffer(other, id))
          return sharedByOneTask(id, other);
      }
      if (isCurrent(piece.writer) && !isSameBuffer(piece.value, id))
        return sharedByOneTask(id, piece.value);
    }
    replace(id, current);
    return Status::ok();
  }

  bool isCurrent(const Access &access) const { return access.epoch == epoch && access.task == current.task; }

  Status sharedByOneTask(ValueId id, ValueId other) {
    // A loop's body reuses memory from one of its tasks to the next; the body is followed on its own.
    if (plan.tasks[current.task].as<Loop>())
      return Status::ok();
    return Status::error(ErrorKind::badInput, "plan: ops[{}] ('{}') writes {} and touches {}, which share bytes",
                         current.task, plan.tasks[current.task].name, describe(plan, id), describe(plan, other));
  }

  /// The first piece that ends behind `offset`.
  Pieces::iterator lowerOf(uint64_t offset) {
    auto at = pieces.upper_bound(offset);
    if (at != pieces.begin() && std::prev(at)->second.end > offset)
      --at;
    return at;
  }

  /// Makes `offset` a border between pieces.
  void split(uint64_t offset) {
    auto at = lowerOf(offset);
    if (at == pieces.end() || at->first >= offset)
      return;
    Piece right = at->second;
    at->second.end = offset;
    pieces.emplace(offset, std::move(right));
  }

  void replace(ValueId id, const Access &writer) {
    const Value &value = plan.values[id];
    if (value.bytes == 0)
      return;
    split(value.offset);
    split(value.offset + value.bytes);
    pieces.erase(pieces.lower_bound(value.offset), pieces.lower_bound(value.offset + value.bytes));
    pieces.emplace(value.offset, Piece{value.offset + value.bytes, id, writer, {}});
  }

  const Plan &plan;
  const PlanFacts &facts;
  const ChunkOrder *order = nullptr;
  Access current;
  uint32_t epoch = 0;
  Pieces pieces;
};

/// Loop bodies and, with several micro-batches, every chunk: each instance stands for itself.
Status followAlone(const Plan &plan, const PlanFacts &facts, ChunkId chunk) {
  ByteHistory history(plan, facts);
  DG_RETURN_IF_ERROR(history.run(plan.chunks[chunk]));
  for (TaskId task : plan.chunks[chunk].tasks)
    if (const Loop *loop = plan.tasks[task].as<Loop>())
      DG_RETURN_IF_ERROR(followAlone(plan, facts, loop->body));
  return Status::ok();
}

/// With one micro-batch memory may be reused from one chunk to the next, so the whole step is followed.
Status followStep(const Plan &plan, const PlanFacts &facts, const Program &program, uint32_t stage) {
  ByteHistory history(plan, facts);
  for (const Port &port : program.inputs)
    for (ValueId id : port.values)
      if (plan.values[id].stage == stage)
        history.define(id);
  for (const Action &action : program.actions[stage])
    DG_RETURN_IF_ERROR(history.run(plan.chunks[action.chunk]));
  for (const Port &port : program.outputs)
    for (ValueId id : port.values)
      if (plan.values[id].stage == stage)
        DG_RETURN_IF_ERROR(history.checkKept(id));
  return Status::ok();
}

Status checkOutliving(const Plan &plan, const PlanFacts &facts, const ProgramUse &use, const Program &program) {
  std::vector<ValueId> touched;
  std::vector<bool> outlives(plan.values.size(), false);
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    if (!use.touched[id])
      continue;
    touched.push_back(id);
    outlives[id] = plan.values[id].slots > 1 || (program.microbatches > 1 && use.crosses[id]);
  }
  return checkExclusive(plan, facts, touched, outlives,
                        fmt::format("outlives its chunk in program '{}'", nameOf(program.kind)));
}

} // namespace

Status verifyPlaces(const Plan &plan, const PlanFacts &facts) {
  std::vector<std::vector<ValueId>> byStage(plan.numStages());
  std::vector<bool> persistent(plan.values.size(), false);
  for (ValueId id = 0; id < plan.values.size(); ++id) {
    DG_RETURN_IF_ERROR(checkPlace(plan, id));
    byStage[plan.values[id].stage].push_back(id);
    persistent[id] = isPersistent(plan.values[id].kind);
  }
  for (const std::vector<ValueId> &values : byStage)
    DG_RETURN_IF_ERROR(checkExclusive(plan, facts, values, persistent, "is kept from step to step"));
  return checkPersistentWrites(plan, facts);
}

Status verifyLifetimes(const Plan &plan, const PlanFacts &facts, const Program &program) {
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
    ProgramUse use = gatherUse(plan, facts, program, stage);
    DG_RETURN_IF_ERROR(checkOutliving(plan, facts, use, program));
    for (ChunkId chunk : use.chunks)
      if (program.microbatches > 1)
        DG_RETURN_IF_ERROR(followAlone(plan, facts, chunk));
      else
        for (TaskId task : plan.chunks[chunk].tasks)
          if (const Loop *loop = plan.tasks[task].as<Loop>())
            DG_RETURN_IF_ERROR(followAlone(plan, facts, loop->body));
    if (program.microbatches == 1)
      DG_RETURN_IF_ERROR(followStep(plan, facts, program, stage));
  }
  return Status::ok();
}

} // namespace dg::plan
