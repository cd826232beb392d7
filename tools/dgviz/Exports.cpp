// SPDX-License-Identifier: Apache-2.0
// Names come from a model that may be anybody's, so every format quotes them by its own rules.
#include "tools/dgviz/Exports.h"
#include "tools/dgviz/GraphLayout.h"
#include "tools/dgviz/facts/PlanNumbers.h"

#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/TaskTraits.h"

#include <nlohmann/json.hpp>

namespace dg::viz {

using namespace dg::plan;
using Json = nlohmann::ordered_json;

namespace {

// Okabe and Ito's colours, as on the page.
constexpr const char *stageColours[] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                        "#56b4e9", "#d55e00", "#b8a800", "#7f7f7f"};

std::string dump(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string axisText(const Task &task) {
  std::optional<Axis> axis = axisOf(task);
  return axis ? plan::nameOf(*axis) : "";
}

std::string kernelText(const Task &task) { return task.as<Kernel>() ? task.as<Kernel>()->symbol : ""; }

std::string typeText(const Value &value) {
  std::string text = std::string(plan::nameOf(value.dtype)) + "[";
  for (size_t i = 0; i < value.shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(value.shape[i]);
  return text + "]";
}

std::string replaced(const std::string &text, const std::vector<std::pair<char, const char *>> &rules) {
  std::string result;
  for (char c : text) {
    const char *by = nullptr;
    for (auto [from, to] : rules)
      if (c == from)
        by = to;
    if (by)
      result += by;
    else
      result += c;
  }
  return result;
}

std::string escapedXml(const std::string &text) {
  std::string clean = replaced(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
  for (char &c : clean)
    if (uint8_t(c) < 0x20)
      c = ' '; // no other control character is allowed in XML
  return clean;
}

/// The titles of the boxes around a box, outermost first.
std::vector<std::string> pathOf(const OpTree &tree, uint32_t node) {
  std::vector<std::string> titles;
  for (uint32_t at = tree.nodes[node].parent; at != noId && at != 0; at = tree.nodes[at].parent)
    titles.insert(titles.begin(), tree.nodes[at].title);
  return titles;
}

void addProcess(Json &events, int64_t pid, const std::string &name) {
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", pid}, {"tid", 0}, {"args", {{"name", name}}}});
}

void addEvents(Json &events, const Plan &plan, const ProgramView &view, const Timeline &timeline, int64_t firstPid) {
  for (const TimelineEvent &event : timeline.events) {
    const Task &task = plan.tasks[event.task];
    events.push_back({{"name", task.name},
                      {"cat", viz::nameOf(view.work[event.task])},
                      {"ph", "X"},
                      {"ts", event.startUs},
                      {"dur", event.endUs - event.startUs},
                      {"pid", firstPid + event.row},
                      {"tid", event.lane},
                      {"args",
                       {{"program", plan::nameOf(view.program->kind)},
                        {"microbatch", event.microbatch},
                        {"op", event.task},
                        {"kind", task.op},
                        {"critical", event.isCritical}}}});
  }
}

} // namespace

std::string toPerfetto(const Plan &plan, const std::vector<ProgramView> &programs) {
  Json events = Json::array();
  int64_t pid = 0;
  for (const ProgramView &view : programs) {
    for (uint32_t stage = 0; stage < view.predicted.numRows; ++stage)
      addProcess(events, pid + stage, fmt::format("{}: stage {}, predicted", plan::nameOf(view.program->kind), stage));
    addEvents(events, plan, view, view.predicted, pid);
    pid += view.predicted.numRows;
    if (!view.trace)
      continue;
    for (uint32_t rank = 0; rank < view.measured.numRows; ++rank)
      addProcess(events, pid + rank, fmt::format("{}: rank {}, measured", plan::nameOf(view.program->kind), rank));
    addEvents(events, plan, view, view.measured, pid);
    pid += view.measured.numRows;
  }
  return dump({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}});
}

std::string toDot(const Plan &plan, const ProgramView &program) {
  auto quoted = [](const std::string &text) {
    return "\"" + replaced(text, {{'"', "\\\""}, {'\\', "\\\\"}, {'\n', " "}}) + "\"";
  };
  std::string out = fmt::format("digraph {} {{\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n",
                                quoted(plan.model.name + " " + plan::nameOf(program.program->kind)));
  const OpTree &tree = program.tree;
  // A worklist with closing marks: names may nest deeper than the stack.
  std::vector<std::pair<uint32_t, bool>> waiting = {{0, false}};
  while (!waiting.empty()) {
    auto [id, isEnd] = waiting.back();
    waiting.pop_back();
    const TreeNode &node = tree.nodes[id];
    if (isEnd) {
      out += "  }\n";
    } else if (node.flowNode != noId) {
      const Task &task = plan.tasks[program.flow.nodes[node.flowNode].item];
      out += fmt::format("  n{} [label={}, fillcolor=\"{}33\"];\n", node.flowNode,
                         quoted(node.title + " · " + (task.op.empty() ? plan::nameOf(task.kind()) : task.op)),
                         stageColours[node.stage % std::size(stageColours)]);
    } else {
      if (id != 0) {
        out += fmt::format("  subgraph cluster_{} {{\n  label={};\n", id,
                           quoted(fmt::format("{} ({}, stage {})", node.title, plan::nameOf(node.phase), node.stage)));
        waiting.push_back({id, true});
      }
      for (size_t i = node.children.size(); i-- > 0;)
        waiting.push_back({node.children[i], false});
    }
  }
  for (const FlowEdge &edge : program.flow.edges)
    out += fmt::format("  n{} -> n{} [label={}{}];\n", edge.from, edge.to,
                       quoted(edge.route.empty() ? "" : edge.route + ", " + bytesText(double(edge.bytes))),
                       edge.route.empty() ? "" : ", style=bold");
  return out + "}\n";
}

Result<std::string> toSvg(const Plan &plan, const ProgramView &program) {
  LayoutStore store;
  const TreeNode &root = program.tree.nodes[0];
  Result<uint32_t> number = store.layOut(program.tree, root);
  if (!number)
    return number.status();
  const LevelLayout &layout = store.layouts()[*number];
  std::string out = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
                                "font-family=\"sans-serif\">\n<title>{}</title>\n",
                                layout.width, layout.height,
                                escapedXml(plan.model.name + ", program " + plan::nameOf(program.program->kind)));
  for (size_t i = 0; i < root.edges.size(); ++i) {
    if (layout.lines[i].empty())
      continue;
    std::string path;
    for (size_t p = 0; p < layout.lines[i].size(); ++p)
      path += fmt::format("{}{:.1f} {:.1f}",
                          p == 0       ? "M"
                          : p % 3 == 1 ? "C"
                                       : " ",
                          layout.lines[i][p].x, layout.lines[i][p].y);
    const LevelEdge &edge = root.edges[i];
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"><title>{}</title></path>\n",
                       path, edge.route.empty() ? "#9aa5b1" : "#0067a3", edge.route.empty() ? 1 : 2.5,
                       escapedXml(bytesText(double(edge.bytes)) + (edge.route.empty() ? "" : ", " + edge.route)));
  }
  for (size_t i = 0; i < root.children.size(); ++i) {
    const TreeNode &node = program.tree.nodes[root.children[i]];
    double left = layout.boxes[i].x - boxWidth / 2, top = layout.boxes[i].y - boxHeight / 2;
    out += fmt::format("<g><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#fff\" "
                       "stroke=\"#c8ced6\"/><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6\" height=\"{}\" rx=\"3\" "
                       "fill=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\">{}</text><text x=\"{:.1f}\" "
                       "y=\"{:.1f}\" font-size=\"10\" fill=\"#5f6b7a\">{}, stage {}</text></g>\n",
                       left, top, boxWidth, boxHeight, left + 6, top + 6, boxHeight - 12,
                       stageColours[node.stage % std::size(stageColours)], left + 20, top + 20, escapedXml(node.title),
                       left + 20, top + 36, plan::nameOf(node.phase), node.stage);
  }
  return out + "</svg>\n";
}

std::string toModelExplorer(const Plan &plan, const std::vector<ProgramView> &programs) {
  Json graphs = Json::array();
  for (const ProgramView &view : programs) {
    std::vector<Json> sources(view.flow.nodes.size(), Json::array());
    for (const FlowEdge &edge : view.flow.edges)
      sources[edge.to].push_back({{"sourceNodeId", std::to_string(edge.from)},
                                  {"sourceNodeOutputId", "0"},
                                  {"targetNodeInputId", std::to_string(sources[edge.to].size())}});
    Json nodes = Json::array();
    for (uint32_t id = 0; id < view.tree.nodes.size(); ++id) {
      const TreeNode &node = view.tree.nodes[id];
      if (node.flowNode == noId)
        continue;
      TaskId taskId = view.flow.nodes[node.flowNode].item;
      const Task &task = plan.tasks[taskId];
      std::string space = fmt::format("{} stage {}", plan::nameOf(node.phase), node.stage);
      for (const std::string &title : pathOf(view.tree, id))
        space += "/" + replaced(title, {{'/', "∕"}}); // a slash nests
      Json attributes = Json::array();
      auto attribute = [&](const char *key, const std::string &value) {
        if (!value.empty())
          attributes.push_back({{"key", key}, {"value", value}});
      };
      attribute("op", task.op);
      attribute("kind", plan::nameOf(task.kind()));
      attribute("stage", std::to_string(task.stage));
      attribute("axis", axisText(task));
      attribute("kernel", kernelText(task));
      attribute("source", task.source);
      attribute("flops", countText(task.flops));
      attribute("predicted", view.predictedUs[taskId] < 0 ? "" : timeText(view.predictedUs[taskId]));
      Json outputs = Json::array();
      for (ValueId value : writesOf(task))
        outputs.push_back({{"id", std::to_string(outputs.size())},
                           {"attrs", {{{"key", "tensor_shape"}, {"value", typeText(plan.values[value])}}}}});
      nodes.push_back({{"id", std::to_string(node.flowNode)},
                       {"label", node.title},
                       {"namespace", space},
                       {"attrs", std::move(attributes)},
                       {"incomingEdges", std::move(sources[node.flowNode])},
                       {"outputsMetadata", std::move(outputs)}});
    }
    graphs.push_back({{"id", plan::nameOf(view.program->kind)}, {"nodes", std::move(nodes)}});
  }
  return dump({{"label", plan.model.name}, {"graphs", std::move(graphs)}});
}

std::string toCsv(const Plan &plan, const std::vector<ProgramView> &programs) {
  auto quoted = [](const std::string &text) {
    bool isFormula = !text.empty() && std::string("=+-@\t\r").find(text[0]) != std::string::npos;
    return "\"" + std::string(isFormula ? "'" : "") + replaced(text, {{'"', "\"\""}}) + "\"";
  };
  std::string out = "program,id,name,op,kind,phase,stage,work,axis,type,global_shape,flops,bytes,kernel,source,"
                    "predicted_us,measured_us\n";
  for (const ProgramView &view : programs)
    for (const FlowNode &node : view.flow.nodes) {
      const Task &task = plan.tasks[node.item];
      std::string type, global;
      if (std::vector<ValueId> writes = writesOf(task); !writes.empty()) {
        const Value &value = plan.values[writes.front()];
        type = typeText(value);
        for (size_t i = 0; i < value.globalShape.size(); ++i)
          global += (i ? "x" : "") + std::to_string(value.globalShape[i]);
      }
      auto time = [](double us) { return us < 0 ? std::string() : fmt::format("{:.3f}", us); };
      out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                         quoted(plan::nameOf(view.program->kind)), node.item, quoted(task.name), quoted(task.op),
                         plan::nameOf(task.kind()), plan::nameOf(node.phase), node.stage,
                         viz::nameOf(view.work[node.item]), quoted(axisText(task)), quoted(type), quoted(global),
                         task.flops, task.bytes, quoted(kernelText(task)), quoted(task.source),
                         time(view.predictedUs[node.item]), view.trace ? time(view.measuredUs[node.item]) : "");
    }
  return out;
}

} // namespace dg::viz
