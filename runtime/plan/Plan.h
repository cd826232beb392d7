// SPDX-License-Identifier: Apache-2.0
// The plan: what dgc decided and dgrun executes, dgviz draws and the simulator predicts. Plans are templates per
// pipeline stage plus mesh coordinates, never lists per rank: within a stage all ranks run the same tasks on their own
// shards.
//
//   Plan ── mesh (replica × pipe × data × tensor, row-major: rank = ((replica·P + pipe)·D + data)·T + tensor)
//        ── values: every buffer of every stage, with its place in the stage's arena
//        ── tasks ("ops" in JSON): what each op of a rank does, as a variant; TaskTraits.h says what each kind touches
//        ── programs: train, eval, infer, prepare; each has chunks (begin, forward, backward, update of a stage)
//           and, per stage, the order in which (chunk, micro-batch) actions run
//        ── memory: the device of each stage and the size of its arena
#pragma once

#include "runtime/plan/Bracketing.h"
#include "runtime/support/EnumNames.h"
#include "runtime/support/Status.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dg::plan {

using dg::nameOf;

inline constexpr int64_t planVersion = 2;

using ValueId = uint32_t; ///< index into Plan::values
using TaskId = uint32_t;  ///< index into Plan::tasks
using ChunkId = uint32_t; ///< index into Plan::chunks
inline constexpr uint32_t noId = UINT32_MAX;

/// iN are signed, uN unsigned; i1 is a byte, 0 or 1.
enum class DType { f32, f64, bf16, f16, i64, i32, i16, i8, u64, u32, u16, u8, i1 };
constexpr auto enumNames(DType) {
  return std::array{"f32", "f64", "bf16", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "i1"};
}
inline bool isFloat(DType type) { return type <= DType::f16; }
int64_t sizeOf(DType type);

/// The axes of the mesh. The compiler decides about those of one replica, outermost first; replicas lie outside of
/// them, and how many there are is given at launch (Replication.h).
enum class Axis : uint8_t { pipe, data, tensor, replica };
constexpr auto enumNames(Axis) { return std::array{"pipe", "data", "tensor", "replica"}; }
inline constexpr auto allAxes = allOf<Axis>();
inline constexpr std::array axesOfReplica = {Axis::pipe, Axis::data, Axis::tensor};

/// Where a rank is on the mesh.
struct Coordinates {
  int64_t pipe = 0, data = 0, tensor = 0, replica = 0;
  int64_t &operator[](Axis axis) {
    return axis == Axis::pipe ? pipe : axis == Axis::data ? data : axis == Axis::tensor ? tensor : replica;
  }
  int64_t operator[](Axis axis) const { return const_cast<Coordinates &>(*this)[axis]; }
};

/// Ranks are numbered with tensor fastest and replica slowest: those of a replica follow each other.
struct Mesh {
  std::array<int64_t, std::size(axesOfReplica)> sizes = {1, 1, 1}; ///< of one replica, by axis
  int64_t replicas = 1;
  int64_t sizeOf(Axis axis) const { return axis == Axis::replica ? replicas : sizes[size_t(axis)]; }
  /// For who has the axis by its name in the IR; 0 if there is no such axis.
  int64_t sizeOf(std::string_view axis) const;
  int64_t numRanks() const;
  /// Of one stage of one replica.
  int64_t ranksOfStage() const { return sizeOf(Axis::data) * sizeOf(Axis::tensor); }
  Coordinates coordinatesOf(int64_t rank) const;
  int64_t rankOf(Coordinates at) const;
  /// The ranks that differ from `rank` only on `axis`, ordered by their coordinate on it.
  std::vector<int64_t> groupOf(int64_t rank, Axis axis) const;
};

/// What runs the kernels of a stage.
enum class DeviceKind : uint8_t { cpu, cuda };
constexpr auto enumNames(DeviceKind) { return std::array{"cpu", "cuda"}; }

/// Where the bytes of a value are. On a cpu stage all three are ordinary memory.
enum class MemorySpace : uint8_t {
  device, ///< of the stage's device: kernels and copies reach it
  host,   ///< of the process: copies reach it, kernels do not
  pinned, ///< of the process, and mapped by the device: both reach it
};
constexpr auto enumNames(MemorySpace) { return std::array{"device", "host", "pinned"}; }

enum class ValueKind {
  parameter,   ///< trained; persistent; in checkpoints
  state,       ///< of the optimizer; persistent; in checkpoints
  input,       ///< fed by the runtime before the step; `slots` micro-batches
  constant,    ///< written once at set-up from `init`
  activation,  ///< made in a forward chunk
  gradient,    ///< made in a backward chunk
  accumulator, ///< lives for the whole step: summed over micro-batches, zeroed by the begin chunk
  scratch,     ///< a kernel's own workspace
};
constexpr auto enumNames(ValueKind) {
  return std::array{"parameter", "state", "input", "constant", "activation", "gradient", "accumulator", "scratch"};
}

/// How a parameter, state or constant starts. Random values are a recipe: stream = streamOf(value name), drawn at the
/// index in the global tensor, so that every plan starts from the same numbers.
struct Init {
  enum class Kind { none, constant, uniform, normal, file } kind = Kind::none;
  double value = 0; ///< constant: the value; uniform: the bound (drawn in [-bound, bound)); normal: the deviation
  // file: the tensor of this value's name in the package's init.safetensors (global shape)
};
constexpr auto enumNames(Init::Kind) { return std::array{"none", "constant", "uniform", "normal", "file"}; }

struct Value {
  std::string name; ///< unique within a stage and program; parameters: the model's name ("fc1.weight")
  uint32_t stage = 0;
  ValueKind kind = ValueKind::activation;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;       ///< of this rank's shard, for one micro-batch
  std::vector<int64_t> globalShape; ///< of the whole tensor (of one micro-batch, over all data ranks, for activations)
  /// Per dimension the mesh axis that cuts it, if any. Rank i on the axis holds block i of ceil(global/size)
  /// elements; the last blocks may be shorter or empty, the buffer is as large as the first.
  std::vector<std::optional<Axis>> sharding;
  MemorySpace space = MemorySpace::device;
  uint64_t offset = 0; ///< in the stage's arena
  uint64_t bytes = 0;  ///< of one slot
  uint32_t slots = 1;  ///< micro-batch m uses slot m % slots
  uint64_t stride = 0; ///< bytes from one slot to the next, a multiple of the buffer alignment
  Init init;
};

enum class Access : uint8_t { read, write, readWrite };
constexpr auto enumNames(Access) { return std::array{"read", "write", "read_write"}; }
inline bool isRead(Access access) { return access != Access::write; }
inline bool isWrite(Access access) { return access != Access::read; }

/// A value that a task touches.
struct Operand {
  ValueId value = noId;
  Access access = Access::read;
  bool operator==(const Operand &) const = default;
};

/// Calls the function `symbol` of the program's object for each tile. How many tiles there are depends on the target,
/// so the object says it (DG_TILES_SUFFIX of the kernel ABI).
struct Kernel {
  std::string symbol;
  std::vector<Operand> buffers; ///< in ABI order
};

/// Sums `value` over the ranks of `axis`, in place.
struct AllReduce {
  ValueId value = noId;
  Axis axis = Axis::data;
  uint32_t order = 0; ///< position among the collectives of the axis
  Bracketing algorithm;
};

/// Concatenates the ranks' blocks `from` along `dim`.
struct AllGather {
  ValueId from = noId, to = noId;
  Axis axis = Axis::data;
  int64_t dim = 0;
  uint32_t order = 0;
};

/// Sums `from` over the ranks and leaves each its block along `dim`.
struct ReduceScatter {
  ValueId from = noId, to = noId;
  Axis axis = Axis::data;
  int64_t dim = 0;
  uint32_t order = 0;
};

/// To the rank with the same data and tensor coordinates in `peerStage`.
struct Send {
  ValueId value = noId;
  uint32_t peerStage = 0;
  uint32_t channel = 0; ///< equal on both sides, unique in the program
};

struct Receive {
  ValueId value = noId;
  uint32_t peerStage = 0;
  uint32_t channel = 0;
};

/// Waits for the communication `task` of the same chunk instance.
struct Finish {
  TaskId task = noId;
};

/// Same bytes; between memory spaces too.
struct Copy {
  ValueId from = noId, to = noId;
};

struct Zero {
  ValueId value = noId;
};

/// This rank's block of `from` along `dim`.
struct Slice {
  ValueId from = noId, to = noId;
  Axis axis = Axis::data;
  int64_t dim = 0;
};

/// Runs chunk `body` `trips` times; inside it a value's slot is trip % slots.
struct Loop {
  ChunkId body = noId;
  uint32_t trips = 0;
};

using Work = std::variant<Kernel, AllReduce, AllGather, ReduceScatter, Send, Receive, Finish, Copy, Zero, Slice, Loop>;
/// The alternatives of Work, in its order.
enum class TaskKind : uint8_t {
  kernel,
  allReduce,
  allGather,
  reduceScatter,
  send,
  receive,
  finish,
  copy,
  zero,
  slice,
  loop
};
constexpr auto enumNames(TaskKind) {
  return std::array{"kernel", "all_reduce", "all_gather", "reduce_scatter", "send", "receive",
                    "finish", "copy",       "zero",       "slice",          "loop"};
}
static_assert(std::variant_size_v<Work> == allOf<TaskKind>().size());

/// One node of the static graph. Communication tasks start something; it is complete at their `finish` task. Sends need
/// none: a send is complete before its slot is written again, which the executor sees to.
struct Task {
  std::string name;   ///< for people: "fc1/matmul", "grad fc1.weight/all_reduce"
  std::string op;     ///< "dg.matmul"
  std::string source; ///< "mlp.mlir:4:8"
  uint32_t stage = 0;
  /// Tasks of the same chunk that must be complete first: data and reused memory. Always earlier in the chunk's order.
  std::vector<TaskId> deps;
  double flops = 0, bytes = 0; ///< of one micro-batch on one rank
  Work work;

  TaskKind kind() const { return TaskKind(work.index()); }
  /// Null if the task is of another kind.
  template <typename T> T *as() { return std::get_if<T>(&work); }
  template <typename T> const T *as() const { return std::get_if<T>(&work); }
};

enum class Phase { begin, forward, backward, update };
constexpr auto enumNames(Phase) { return std::array{"begin", "forward", "backward", "update"}; }
/// Whether the phase runs once for each micro-batch.
inline bool isPerMicrobatch(Phase phase) { return phase == Phase::forward || phase == Phase::backward; }

/// The tasks of one stage in one phase, in an order that satisfies every dependency.
struct Chunk {
  uint32_t program = 0; ///< index into Plan::programs
  uint32_t stage = 0;
  Phase phase = Phase::forward;
  std::vector<TaskId> tasks;
};

struct Action {
  ChunkId chunk = 0;
  uint32_t microbatch = 0;
};

/// A named value that the runtime feeds (inputs) or reads (outputs), once for each stage that has it.
struct Port {
  std::string name; ///< "x", "y", "sample_weight"; "loss", "accuracy", "logits"
  std::vector<ValueId> values;
  /// Inputs that are places in a table are in [0, indexBound) or, if it is negative, in [indexBound, -indexBound).
  int64_t indexBound = 0; ///< 0: any number will do; below 0: negative places count from the end
};

/// Who runs a program: the ranks of the mesh, or those that keep parameters for them.
enum class Role : uint8_t { worker, server };
constexpr auto enumNames(Role) { return std::array{"worker", "server"}; }

/// What a program is for; a plan has at most one of each. `prepare` runs once before `infer`, for what depends on
/// parameters alone.
enum class ProgramKind : uint8_t { train, eval, infer, prepare };
constexpr auto enumNames(ProgramKind) { return std::array{"train", "eval", "infer", "prepare"}; }

/// One executable of a rank. Actions run in order; a chunk instance starts when the one before it is complete.
struct Program {
  ProgramKind kind = ProgramKind::train;
  Role role = Role::worker;
  /// Samples of one step over all data ranks and micro-batches, padding not counted; 0: the program has no batch, and
  /// takes and gives whole tensors.
  int64_t batch = 0;
  uint32_t microbatches = 1;
  /// How many of its micro-batches each replica runs, one replica after the other; empty: every replica runs them all.
  std::vector<uint32_t> dealt;
  std::string schedule; ///< "gpipe", "1f1b"
  /// The op in which samples of a batch meet ("dg.reduce_mean at model.mlir:4:10"): only whole batches may be run,
  /// since padding would count in it. Empty: there is none.
  std::string mixesSamples;
  std::vector<Port> inputs, outputs;
  std::vector<std::vector<Action>> actions; ///< per stage

  /// The micro-batches of a replica, from the first to the one behind the last.
  std::array<uint32_t, 2> microbatchesOf(int64_t replica) const;
  /// Whether a replica runs the action: once in a step, or of one of its micro-batches. All ranks of a replica skip the
  /// same ones.
  bool isRunBy(int64_t replica, const Chunk &chunk, const Action &action) const;
};

/// The device of a stage and how much of its memory a rank takes.
struct StageMemory {
  uint64_t arenaBytes = 0, persistentBytes = 0;
  DeviceKind device = DeviceKind::cpu;
};

struct Predicted {
  double stepUs = 0, computeUs = 0, commUs = 0, bubble = 0;
  std::vector<uint64_t> peakBytes; ///< per stage; equals the arena, byte for byte
};

struct Alternative {
  std::string description;
  double stepUs = 0;
  uint64_t peakBytes = 0;
};

struct Search {
  double lowerBoundUs = 0, gap = 0, seconds = 0;
  std::string stopped; ///< "given by hand", "optimal", "time", …
  std::vector<Alternative> alternatives;
};

struct Model {
  std::string name, source;
  uint64_t parameters = 0;
  std::string optimizer; ///< "sgd:lr=0.01,momentum=0.5", for people
  double learningRate = 0;
};

struct Plan {
  int64_t version = planVersion;
  Model model;
  Mesh mesh;
  std::vector<Value> values;
  std::vector<Task> tasks;
  std::vector<Chunk> chunks;
  std::vector<Program> programs;
  std::vector<StageMemory> memory; ///< per stage
  Predicted predicted;
  Search search;
  uint32_t numStages() const { return uint32_t(mesh.sizeOf(Axis::pipe)); }
  /// Null if the plan has none of this kind.
  const Program *findProgram(ProgramKind kind) const;
};

/// JSON text with the keys version model mesh programs ops values stages schedule memory predicted search: chunks are
/// under "stages", actions under "schedule", tasks under "ops".
std::string toJson(const Plan &plan);
/// Reads what toJson wrote; every index and enumerator is checked, so a plan that reads is safe to walk.
Result<Plan> fromJson(const std::string &text);

/// Proves what DESIGN asks of every plan: indices in range, tasks of a chunk in dependency order, each send matched by
/// one receive of the same type and channel, no deadlock when every stage runs its actions in order with `slots`
/// buffers, each (chunk, micro-batch) exactly once, memory inside the arena, no two values that live at the same time
/// overlapping.
Status verify(const Plan &plan);

} // namespace dg::plan
