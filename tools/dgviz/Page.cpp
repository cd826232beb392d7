// SPDX-License-Identifier: Apache-2.0
// Puts the page together: template, style, script, and the data block with plan, layouts, timelines and sums.
#include "tools/dgviz/Page.h"
#include "tools/dgviz/GraphLayout.h"
#include "tools/dgviz/OpGraph.h"
#include "tools/dgviz/PageAssets.h"
#include "tools/dgviz/PlanNumbers.h"
#include "tools/dgviz/Timeline.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace dg::viz {

using namespace dg::plan;
using Json = nlohmann::ordered_json;

namespace {

const char *phaseName(Phase phase) {
  static constexpr const char *names[] = {"begin", "forward", "backward", "update"};
  return names[size_t(phase)];
}

double rounded(double value) { return std::round(value * 10) / 10; }

Result<Json> graphJson(const Plan &plan, const Program &program) {
  OpGraph graph = groupOps(plan, program);
  Result<GraphLayout> layout = layOut(graph);
  if (!layout)
    return layout.status();
  Json nodes = Json::array(), edges = Json::array();
  for (size_t i = 0; i < graph.groups.size(); ++i) {
    const OpGroup &group = graph.groups[i];
    nodes.push_back({{"title", group.title},
                     {"stage", group.stage},
                     {"phase", phaseName(group.phase)},
                     {"ops", group.tasks},
                     {"flops", group.flops},
                     {"bytes", group.bytes},
                     {"communicates", group.communicates},
                     {"x", rounded(layout->boxes[i].x)},
                     {"y", rounded(layout->boxes[i].y)}});
  }
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    const GroupEdge &edge = graph.edges[i];
    edges.push_back({{"from", edge.from},
                     {"to", edge.to},
                     {"bytes", edge.bytes},
                     {"crosses", edge.crossesStages},
                     {"path", layout->paths[i]}});
  }
  return Json{{"grouping", graph.grouping},        {"width", rounded(layout->width)},
              {"height", rounded(layout->height)}, {"box", {layout->boxWidth, layout->boxHeight}},
              {"nodes", std::move(nodes)},         {"edges", std::move(edges)}};
}

Json timelineJson(const Plan &plan, const Program &program) {
  Timeline timeline = timelineOf(plan, program);
  Json stages = Json::array();
  for (const std::vector<TimelineBar> &bars : timeline.stages) {
    Json row = Json::array();
    for (const TimelineBar &bar : bars)
      row.push_back({bar.chunk, bar.microbatch, bar.startUs, bar.endUs});
    stages.push_back(std::move(row));
  }
  return {{"total_us", timeline.totalUs}, {"to_scale", timeline.isToScale}, {"stages", std::move(stages)}};
}

Json trafficJson(const Plan &plan, const Program &program) {
  Json rows = Json::array();
  for (const Traffic &traffic : trafficOf(plan, program))
    rows.push_back({{"stage", traffic.stage},
                    {"op", traffic.op},
                    {"axis", traffic.axis},
                    {"calls", traffic.calls},
                    {"bytes", traffic.bytes}});
  return rows;
}

Result<Json> dataJson(const Plan &plan) {
  Json programs = Json::array(), memory = Json::array();
  for (const Program &program : plan.programs) {
    Result<Json> graph = graphJson(plan, program);
    if (!graph)
      return graph.status();
    programs.push_back({{"name", program.name},
                        {"graph", std::move(*graph)},
                        {"timeline", timelineJson(plan, program)},
                        {"traffic", trafficJson(plan, program)}});
  }
  for (const std::vector<KindMemory> &kinds : memoryByKind(plan)) {
    Json rows = Json::array();
    for (const KindMemory &kind : kinds)
      rows.push_back({{"kind", kind.kind}, {"values", kind.values}, {"bytes", kind.bytes}});
    memory.push_back(std::move(rows));
  }
  return Json{{"tool", "dgviz " DG_VERSION}, {"programs", std::move(programs)}, {"memory", std::move(memory)}};
}

/// In JSON '<' stands only inside strings; escaped, no text can end the data block or open a comment in it.
std::string escaped(const std::string &json) {
  std::string result;
  result.reserve(json.size());
  for (char c : json)
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  return result;
}

} // namespace

Result<std::string> makePage(const Plan &plan) {
  Result<Json> data = dataJson(plan);
  if (!data)
    return data.status();
  std::string view = data->dump(-1, ' ', false, Json::error_handler_t::replace);
  // The template is cut at its marks; what is put in is never searched for further marks.
  const std::pair<std::string_view, std::string> parts[] = {{"@STYLE_HASH@", std::string(styleHash)},
                                                            {"@SCRIPT_HASH@", std::string(scriptHash)},
                                                            {"@STYLE@", std::string(pageCss)},
                                                            {"@PLAN@", escaped(toJson(plan))},
                                                            {"@VIEW@", escaped(view)},
                                                            {"@SCRIPT@", std::string(pageJs)}};
  std::string page;
  std::string_view rest = pageHtml;
  for (const auto &[mark, text] : parts) {
    size_t at = rest.find(mark);
    if (at == std::string_view::npos)
      return Status::error(ErrorKind::runFailed, "page.html lacks {} in its order; build dgviz again", mark);
    page += rest.substr(0, at);
    page += text;
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return page;
}

} // namespace dg::viz
