// SPDX-License-Identifier: Apache-2.0
#include "compiler/ParameterTable.h"

#include "passes/train/NamePattern.h"

#include "llvm/ADT/StringExtras.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace dg::compiler {

namespace {

/// "64x3xf32"; "f32" without dimensions.
std::string textOf(mlir::RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream to(text);
  for (int64_t size : type.getShape())
    to << size << "x";
  to << type.getElementType();
  return text;
}

/// The ops that read a value, by their author's names; through ops that only move its elements.
void collectReaders(mlir::Value value, std::set<std::string> &readers) {
  for (mlir::Operation *user : value.getUsers()) {
    if (ir::isRearrangement(user)) {
      collectReaders(user->getResult(0), readers);
      continue;
    }
    auto place = user->getAttrOfType<ir::PlaceAttr>(ir::placeName);
    readers.insert(place && !place.getLabel().empty() ? place.getLabel().str() : user->getName().stripDialect().str());
  }
}

std::string roleOf(ir::ParameterOp parameter, const Request &request, bool isTraining) {
  auto isNamed = [&](const std::string &pattern) { return passes::matchesPattern(parameter.getParam(), pattern); };
  if (parameter.getState())
    return "statistics";
  if (!isTraining)
    return "weight";
  return parameter.getFrozen() || llvm::any_of(request.frozen, isNamed) ? "frozen" : "trained";
}

} // namespace

std::vector<ParameterRow> listParameters(ir::GraphOp graph, const Request &request, bool isTraining,
                                         const std::vector<ir::OnnxWeight> &constants) {
  std::vector<ParameterRow> rows;
  for (auto parameter : graph.getBody().front().getOps<ir::ParameterOp>()) {
    std::set<std::string> readers;
    collectReaders(parameter, readers);
    rows.push_back({parameter.getParam().str(),
                    textOf(llvm::cast<mlir::RankedTensorType>(parameter.getType())),
                    roleOf(parameter, request, isTraining),
                    {readers.begin(), readers.end()}});
  }
  std::sort(rows.begin(), rows.end(), [](const ParameterRow &a, const ParameterRow &b) {
    return llvm::StringRef(a.name).compare_numeric(b.name) < 0;
  });
  for (const ir::OnnxWeight &constant : constants)
    rows.push_back({constant.name, textOf(constant.type), "constant", {}});
  return rows;
}

std::string parametersAsText(const std::vector<ParameterRow> &rows) {
  size_t nameWidth = 4, typeWidth = 4, numShared = 0;
  std::map<std::string, size_t> counts;
  for (const ParameterRow &row : rows) {
    nameWidth = std::max(nameWidth, row.name.size());
    typeWidth = std::max(typeWidth, row.type.size());
    numShared += row.readers.size() > 1;
    ++counts[row.role];
  }
  std::vector<std::string> parts;
  for (const auto &[role, count] : counts)
    parts.push_back(fmt::format("{} {}", count, role));
  std::string text = "tensors of the model: " + llvm::join(parts, ", ");
  if (numShared > 0)
    text += fmt::format("; {} read by several ops", numShared);
  for (const ParameterRow &row : rows) {
    text += fmt::format("\n  {:<{}}  {:<{}}  {}", row.name, nameWidth, row.type, typeWidth, row.role);
    if (row.readers.size() > 1)
      text += ", shared by " + llvm::join(row.readers, ", ");
  }
  return text;
}

std::string parametersAsJson(const std::vector<ParameterRow> &rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ParameterRow &row : rows)
    list.push_back({{"name", row.name}, {"type", row.type}, {"role", row.role}, {"readers", row.readers}});
  return nlohmann::ordered_json{{"parameters", list}}.dump(-1, ' ', false,
                                                           nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace dg::compiler
