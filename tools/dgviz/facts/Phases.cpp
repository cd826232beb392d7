// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/Phases.h"

#include "runtime/plan/PlanFacts.h"
#include "runtime/support/Json.h"

#include <algorithm>

namespace dg::viz {

using Json = nlohmann::json;
using plan::Phase;

namespace {

constexpr int64_t knownVersion = 1;

Status wrong(size_t phase, const std::string &what) {
  return Status::error(ErrorKind::badInput, "phases.json: phases[{}]: {}; compile the job again", phase, what);
}

bool readCounts(const Json &object, std::map<std::string, uint64_t> &counts) {
  if (!object.is_object())
    return false;
  for (const auto &[kind, count] : object.items()) {
    if (!count.is_number_unsigned())
      return false;
    counts[kind] = count.get<uint64_t>();
  }
  return true;
}

/// An op is [name, op, program, phase, stage].
bool isOp(const Json &op) {
  return op.is_array() && op.size() == 5 && op[0].is_string() && op[1].is_string() && op[2].is_string() &&
         op[3].is_string() && op[4].is_number_integer();
}

Status readPhase(const Json &json, size_t index, CompilerPhase &phase) {
  if (!json.is_object() || !json.contains("ops") || !json["ops"].is_array() || !json.contains("flow") ||
      !json["flow"].is_array())
    return wrong(index, "expected an object with ops and flow");
  auto text = [&](const char *key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  phase.pass = text("pass");
  phase.summary = text("summary");
  if (!readCounts(json.value("added", Json()), phase.added) ||
      !readCounts(json.value("removed", Json()), phase.removed))
    return wrong(index, "expected numbers of ops under added and removed");
  std::vector<uint32_t> nodeOf;
  std::vector<std::tuple<Phase, uint32_t, uint32_t>> order; // phase, stage, number
  for (const Json &op : json["ops"]) {
    if (!isOp(op))
      return wrong(index, fmt::format("op {} is not [name, op, program, phase, stage]", phase.ops.size()));
    phase.ops.push_back(op[1].get<std::string>());
    ++phase.kinds[phase.ops.back()];
    nodeOf.push_back(plan::noId);
    if (op[2].get<std::string>().rfind("eval", 0) != 0)
      order.push_back({enumNamed<Phase>(op[3].get<std::string>()).value_or(Phase::forward),
                       uint32_t(std::max<int64_t>(0, op[4].get<int64_t>())), uint32_t(phase.ops.size() - 1)});
  }
  phase.numOps = phase.ops.size();
  std::sort(order.begin(), order.end());
  for (const auto &[part, stage, number] : order) {
    nodeOf[number] = uint32_t(phase.graph.nodes.size());
    phase.graph.nodes.push_back({json["ops"][number][0].get<std::string>(), part, stage, number});
  }
  for (const Json &line : json["flow"]) {
    if (!line.is_array() || line.size() != 2 || !line[0].is_number_unsigned() || !line[1].is_number_unsigned() ||
        line[0] >= phase.numOps || line[1] >= phase.numOps)
      return wrong(index, "a line of flow is not a pair of numbers of ops");
    uint32_t from = nodeOf[line[0].get<size_t>()], to = nodeOf[line[1].get<size_t>()];
    if (from != plan::noId && to != plan::noId && from != to)
      phase.graph.edges.push_back({from, to, 0, ""});
  }
  return Status::ok();
}

} // namespace

Result<std::vector<CompilerPhase>> phasesFromJson(const std::string &text) {
  auto read = parseJson(text, "phases.json");
  if (!read)
    return Status::error(ErrorKind::badInput, "{}; compile the job again", read.status().message());
  const Json &json = *read;
  if (!json.is_object() || json.value("version", Json()) != knownVersion || !json.contains("phases") ||
      !json["phases"].is_array())
    return Status::error(ErrorKind::badInput, "phases.json: expected version {} with phases; compile the job again",
                         knownVersion);
  std::vector<CompilerPhase> phases(json["phases"].size());
  for (size_t i = 0; i < phases.size(); ++i)
    DG_RETURN_IF_ERROR(readPhase(json["phases"][i], i, phases[i]));
  return phases;
}

} // namespace dg::viz
