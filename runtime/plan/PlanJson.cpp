// SPDX-License-Identifier: Apache-2.0
// The plan as JSON. Each type is described once (`describe`), and a Writer and a Reader walk the same description, so
// what is written is what is read. Keys that hold their default are left out; unknown keys, wrong types and unknown
// enumerators are errors that name the path.
#include "runtime/plan/Plan.h"

#include "runtime/plan/PlanIndices.h"
#include "runtime/plan/TaskTraits.h"
#include "runtime/support/Json.h"

#include <algorithm>
#include <concepts>
#include <limits>
#include <utility>

namespace dg::plan {

namespace {

using Json = nlohmann::json;                // read: looking up a key is O(log n)
using OrderedJson = nlohmann::ordered_json; // written: keys in the order of their description

//===- One description for both directions ----------------------------------------------------------------------===//

template <typename Archive> void describe(Archive &archive, Init &init) {
  archive.required("kind", init.kind);
  archive.optional("value", init.value);
}

template <typename Archive> void describe(Archive &archive, Value &value) {
  archive.required("name", value.name);
  archive.required("stage", value.stage);
  archive.required("kind", value.kind);
  archive.required("dtype", value.dtype);
  archive.required("shape", value.shape);
  archive.required("global_shape", value.globalShape);
  archive.required("sharding", value.sharding);
  archive.optional("space", value.space, MemorySpace::device);
  archive.required("offset", value.offset);
  archive.required("bytes", value.bytes);
  archive.optional("slots", value.slots, 1);
  archive.optional("stride", value.stride);
  archive.optional("init", value.init);
}

/// The work of a task: the fields that its kind has, each under one key.
template <typename Archive, typename T> void describeWork(Archive &archive, T &work) {
  if constexpr (requires { work.symbol; }) {
    archive.required("kernel", work.symbol);
    archive.required("buffers", work.buffers);
  }
  if constexpr (requires { work.value; })
    archive.required("value", work.value);
  if constexpr (requires { work.from; }) {
    archive.required("from", work.from);
    archive.required("to", work.to);
  }
  if constexpr (requires { work.axis; })
    archive.required("axis", work.axis);
  if constexpr (requires { work.dim; })
    archive.required("dim", work.dim);
  if constexpr (requires { work.order; })
    archive.required("order", work.order);
  if constexpr (requires { work.algorithm; })
    archive.required("algorithm", work.algorithm);
  if constexpr (requires { work.channel; }) {
    archive.required("peer_stage", work.peerStage);
    archive.required("channel", work.channel);
  }
  if constexpr (requires { work.task; })
    archive.required("finishes", work.task);
  if constexpr (requires { work.body; }) {
    archive.required("body", work.body);
    archive.required("trips", work.trips);
  }
}

template <typename Archive> void describe(Archive &archive, Task &task) {
  archive.required("name", task.name);
  TaskKind kind = task.kind();
  archive.required("kind", kind);
  if (kind != task.kind())
    task.work = emptyWork(kind);
  archive.required("stage", task.stage);
  archive.optional("op", task.op);
  archive.optional("source", task.source);
  std::visit([&](auto &work) { describeWork(archive, work); }, task.work);
  archive.optional("deps", task.deps);
  archive.optional("flops", task.flops);
  archive.optional("bytes", task.bytes);
}

template <typename Archive> void describe(Archive &archive, Chunk &chunk) {
  archive.required("program", chunk.program);
  archive.required("stage", chunk.stage);
  archive.required("phase", chunk.phase);
  archive.required("ops", chunk.tasks);
}

template <typename Archive> void describe(Archive &archive, Port &port) {
  archive.required("name", port.name);
  archive.required("values", port.values);
  archive.optional("index_bound", port.indexBound);
}

/// Without the actions: they stand under "schedule".
template <typename Archive> void describe(Archive &archive, Program &program) {
  archive.required("name", program.kind);
  archive.optional("role", program.role, Role::worker);
  archive.required("batch", program.batch);
  archive.required("microbatches", program.microbatches);
  archive.optional("dealt", program.dealt);
  archive.required("schedule", program.schedule);
  archive.optional("mixes_samples", program.mixesSamples);
  archive.required("inputs", program.inputs);
  archive.required("outputs", program.outputs);
}

template <typename Archive> void describe(Archive &archive, StageMemory &memory) {
  archive.required("device", memory.device);
  archive.required("arena_bytes", memory.arenaBytes);
  archive.required("persistent_bytes", memory.persistentBytes);
}

template <typename Archive> void describe(Archive &archive, Predicted &predicted) {
  archive.required("step_us", predicted.stepUs);
  archive.required("compute_us", predicted.computeUs);
  archive.required("comm_us", predicted.commUs);
  archive.required("bubble", predicted.bubble);
  archive.required("peak_bytes", predicted.peakBytes);
}

template <typename Archive> void describe(Archive &archive, Alternative &alternative) {
  archive.required("description", alternative.description);
  archive.required("step_us", alternative.stepUs);
  archive.required("peak_bytes", alternative.peakBytes);
}

template <typename Archive> void describe(Archive &archive, Search &search) {
  archive.required("lower_bound_us", search.lowerBoundUs);
  archive.required("gap", search.gap);
  archive.required("seconds", search.seconds);
  archive.required("stopped", search.stopped);
  archive.required("alternatives", search.alternatives);
}

template <typename Archive> void describe(Archive &archive, Model &model) {
  archive.required("name", model.name);
  archive.required("source", model.source);
  archive.required("parameters", model.parameters);
  archive.required("optimizer", model.optimizer);
  archive.required("learning_rate", model.learningRate);
}

template <typename Archive> void describe(Archive &archive, Mesh &mesh) {
  for (Axis axis : axesOfReplica)
    archive.required(nameOf(axis), mesh.sizes[size_t(axis)]);
  archive.optional(nameOf(Axis::replica), mesh.replicas, 1);
}

/// Per program the stages, per stage the actions; the programs must be known.
struct Schedule {
  std::vector<Program> &programs;
};

template <typename Archive> void describe(Archive &archive, Schedule &schedule) {
  for (Program &program : schedule.programs)
    archive.required(nameOf(program.kind), program.actions);
}

template <typename Archive> void describe(Archive &archive, Plan &plan) {
  archive.required("version", plan.version);
  archive.required("model", plan.model);
  archive.required("mesh", plan.mesh);
  archive.required("programs", plan.programs);
  archive.required("ops", plan.tasks);
  archive.required("values", plan.values);
  archive.required("stages", plan.chunks);
  Schedule schedule{plan.programs};
  archive.required("schedule", schedule);
  archive.required("memory", plan.memory);
  archive.required("predicted", plan.predicted);
  archive.required("search", plan.search);
}

//===- Writing --------------------------------------------------------------------------------------------------===//

class Writer {
public:
  explicit Writer(OrderedJson &object) : object(object) { object = OrderedJson::object(); }

  template <typename T> void required(const char *key, const T &field) { object[key] = toValue(field); }

  template <typename T> void optional(const char *key, const T &field, std::type_identity_t<T> standard = {}) {
    if (!isSame(field, standard))
      required(key, field);
  }

private:
  template <typename T> static OrderedJson toValue(const T &field) {
    if constexpr (std::is_enum_v<T>) {
      return nameOf(field);
    } else if constexpr (std::is_arithmetic_v<T> || std::same_as<T, std::string>) {
      return field;
    } else {
      OrderedJson result;
      Writer nested(result);
      describe(nested, const_cast<T &>(field));
      return result;
    }
  }
  static OrderedJson toValue(const Operand &operand) {
    return OrderedJson::array({operand.value, nameOf(operand.access)});
  }
  static OrderedJson toValue(const Bracketing &bracketing) { return bracketing.name(); }
  static OrderedJson toValue(const std::optional<Axis> &axis) { return axis ? nameOf(*axis) : ""; }
  static OrderedJson toValue(const Action &action) { return OrderedJson::array({action.chunk, action.microbatch}); }
  template <typename T> static OrderedJson toValue(const std::vector<T> &list) {
    OrderedJson result = OrderedJson::array();
    for (const T &item : list)
      result.push_back(toValue(item));
    return result;
  }

  template <typename T> static bool isSame(const T &field, const T &standard) { return field == standard; }
  static bool isSame(const Init &field, const Init &standard) {
    return field.kind == standard.kind && field.value == standard.value;
  }

  OrderedJson &object;
};

//===- Reading --------------------------------------------------------------------------------------------------===//

/// Where in the document the reader stands; the text is only made for a message.
struct Place {
  const Place *outer = nullptr;
  std::string_view key = {};
  size_t index = 0;

  std::string text() const {
    if (!outer)
      return "";
    std::string before = outer->text();
    if (key.empty())
      return fmt::format("{}[{}]", before, index);
    return before.empty() ? std::string(key) : fmt::format("{}.{}", before, key);
  }
};

/// Reads one object. The first failure is kept in `failure`, after which nothing more is read.
class Reader {
public:
  Reader(const Json &object, const Place &place, Status &failure) : object(object), place(place), failure(failure) {
    if (!object.is_object())
      fail(place, "an object", object);
  }

  template <typename T> void required(const char *key, T &field) {
    if (failure && !read(key, field))
      failure = Status::error(ErrorKind::badInput, "plan.json: {}: the key is missing", Place{&place, key}.text());
  }

  template <typename T> void optional(const char *key, T &field, std::type_identity_t<T> = {}) {
    if (failure)
      read(key, field);
  }

  /// Call after the last field: every key of the object must have been one of them.
  void finish() {
    if (!failure || object.size() == known.size())
      return;
    for (const auto &item : object.items())
      if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
        failure = Status::error(ErrorKind::badInput, "plan.json: {}: unknown key", Place{&place, item.key()}.text());
        return;
      }
  }

private:
  template <typename T> bool read(const char *key, T &field) {
    auto found = object.find(key);
    if (found == object.end())
      return false;
    known.push_back(key);
    fromValue(*found, Place{&place, key}, field);
    return true;
  }

  void fail(const Place &at, std::string_view expected, const Json &found) {
    if (!failure)
      return;
    // Containers are not printed: they may be nested deeper than the stack.
    std::string text = found.is_structured() ? fmt::format("an {} of {}", found.type_name(), found.size())
                                             : found.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > 40)
      text = text.substr(0, 37) + "...";
    std::string path = at.text();
    failure = Status::error(ErrorKind::badInput, "plan.json: {}{}expected {}, found {}", path, path.empty() ? "" : ": ",
                            expected, text);
  }

  template <typename T> void fromValue(const Json &json, const Place &at, T &field) {
    if constexpr (std::is_enum_v<T>) {
      readEnum(json, at, field);
    } else if constexpr (std::floating_point<T>) {
      if (!json.is_number())
        return fail(at, "a number", json);
      field = json.get<T>();
    } else if constexpr (std::integral<T>) {
      readInteger(json, at, field);
    } else if constexpr (std::same_as<T, std::string>) {
      if (!json.is_string())
        return fail(at, "a string", json);
      field = json.get<std::string>();
    } else {
      Reader nested(json, at, failure);
      describe(nested, field);
      nested.finish();
    }
  }

  void fromValue(const Json &json, const Place &at, Operand &operand) {
    if (!json.is_array() || json.size() != 2)
      return fail(at, "[value, access]", json);
    fromValue(json[0], Place{&at, {}, 0}, operand.value);
    fromValue(json[1], Place{&at, {}, 1}, operand.access);
  }

  void fromValue(const Json &json, const Place &at, Bracketing &bracketing) {
    std::string name;
    fromValue(json, at, name);
    if (!failure)
      return;
    Result<Bracketing> parsed = Bracketing::parse(name);
    if (parsed)
      bracketing = *parsed;
    else
      failure = Status::error(ErrorKind::badInput, "plan.json: {}: {}", at.text(), parsed.status().message());
  }

  void fromValue(const Json &json, const Place &at, std::optional<Axis> &axis) {
    if (!json.is_string() || !json.get_ref<const std::string &>().empty())
      fromValue(json, at, axis.emplace());
  }

  void fromValue(const Json &json, const Place &at, Action &action) {
    if (!json.is_array() || json.size() != 2)
      return fail(at, "[chunk, micro-batch]", json);
    fromValue(json[0], Place{&at, {}, 0}, action.chunk);
    fromValue(json[1], Place{&at, {}, 1}, action.microbatch);
  }

  template <typename T> void fromValue(const Json &json, const Place &at, std::vector<T> &list) {
    if (!json.is_array())
      return fail(at, "an array", json);
    list.clear();
    list.reserve(json.size());
    for (size_t i = 0; i < json.size() && failure; ++i)
      fromValue(json[i], Place{&at, {}, i}, list.emplace_back());
  }

  template <typename T> void readInteger(const Json &json, const Place &at, T &field) {
    constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    if (json.is_number_unsigned() && std::in_range<T>(json.get<uint64_t>()))
      field = T(json.get<uint64_t>());
    else if (json.is_number_integer() && !json.is_number_unsigned() && std::in_range<T>(json.get<int64_t>()))
      field = T(json.get<int64_t>());
    else
      fail(at, fmt::format("an integer from {} to {}", low, high), json);
  }

  template <typename Enum> void readEnum(const Json &json, const Place &at, Enum &field) {
    std::optional<Enum> found = json.is_string() ? enumNamed<Enum>(json.get_ref<const std::string &>()) : std::nullopt;
    if (!found)
      return fail(at, fmt::format("one of {}", fmt::join(enumNames(Enum()), ", ")), json);
    field = *found;
  }

  const Json &object;
  const Place &place;
  Status &failure;
  std::vector<std::string_view> known;
};

Result<Json> parse(const std::string &text) {
  auto document = parseJson(text, "plan.json");
  if (!document)
    return Status::error(ErrorKind::badInput, "{}; compile the job again", document.status().message());
  return document;
}

/// The version is looked at before anything else, so that a later plan is not reported as a wrong key.
Status checkVersion(const Json &document) {
  if (!document.is_object() || !document.contains("version") || !document["version"].is_number_integer())
    return Status::error(ErrorKind::badInput, "plan.json: not a plan: there is no version number");
  const Json &version = document["version"];
  if (version != planVersion)
    return Status::error(ErrorKind::badInput,
                         "plan version {}, expected {}: compile the job again with the dgc of this version",
                         version.dump(), planVersion);
  return Status::ok();
}

} // namespace

std::string toJson(const Plan &plan) {
  OrderedJson document;
  Writer writer(document);
  describe(writer, const_cast<Plan &>(plan));
  return document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

Result<Plan> fromJson(const std::string &text) {
  Result<Json> document = parse(text);
  if (!document)
    return document.status();
  DG_RETURN_IF_ERROR(checkVersion(*document));
  Plan plan;
  Status failure = Status::ok();
  Place root;
  Reader reader(*document, root, failure);
  describe(reader, plan);
  reader.finish();
  if (!failure)
    return failure;
  DG_RETURN_IF_ERROR(checkIndices(plan));
  return plan;
}

} // namespace dg::plan
