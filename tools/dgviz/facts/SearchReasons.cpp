// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/SearchReasons.h"

#include "runtime/support/Json.h"

namespace dg::viz {

using Json = nlohmann::json;

namespace {

std::string textOf(const Json &object, const char *key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double numberOf(const Json &object, const char *key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

const Json &listOf(const Json &object, const char *key) {
  static const Json none = Json::array();
  auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_array() ? *found : none;
}

} // namespace

Result<SearchReasons> reasonsFromJson(const std::string &text) {
  auto read = parseJson(text, "explain.json");
  if (!read)
    return Status::error(ErrorKind::badInput, "{}; compile the job again", read.status().message());
  const Json &json = *read;
  if (!json.is_object() || !json.contains("blocks"))
    return Status::error(ErrorKind::badInput,
                         "explain.json: expected an object with blocks, as dgc --explain=json prints; compile the job "
                         "again");
  SearchReasons reasons;
  reasons.binding = textOf(json, "binding");
  for (const Json &item : listOf(json, "largest_costs"))
    reasons.largest.push_back({textOf(item, "what"), textOf(item, "advice"), numberOf(item, "step_us")});
  for (const Json &block : listOf(json, "blocks"))
    for (const Json &op : listOf(block, "ops"))
      reasons.ops.push_back({textOf(op, "name"), textOf(op, "choice"), textOf(op, "runner_up"), textOf(op, "bound_by"),
                             numberOf(op, "cost_us"), numberOf(op, "runner_up_us")});
  return reasons;
}

} // namespace dg::viz
