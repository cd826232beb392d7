// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/Parameters.h"

#include "runtime/support/Json.h"

namespace dg::viz {

using Json = nlohmann::json;

static std::string textOf(const Json &value) { return value.is_string() ? value.get<std::string>() : std::string(); }

Result<std::vector<Parameter>> parametersFromJson(const std::string &text) {
  auto read = parseJson(text, "parameters.json");
  if (!read)
    return Status::error(ErrorKind::badInput, "{}; compile the job again", read.status().message());
  const Json &json = *read;
  if (!json.is_object() || !json.contains("parameters") || !json["parameters"].is_array())
    return Status::error(ErrorKind::badInput, "parameters.json: expected an object with parameters, as dgc --json "
                                              "prints; compile the job again");
  std::vector<Parameter> parameters;
  for (const Json &row : json["parameters"]) {
    if (!row.is_object())
      return Status::error(ErrorKind::badInput, "parameters.json: row {} is no object; compile the job again",
                           parameters.size());
    Parameter &parameter = parameters.emplace_back();
    parameter.name = textOf(row.value("name", Json()));
    parameter.type = textOf(row.value("type", Json()));
    parameter.role = textOf(row.value("role", Json()));
    for (const Json &reader : row.value("readers", Json::array()))
      parameter.readers.push_back(textOf(reader));
  }
  return parameters;
}

} // namespace dg::viz
