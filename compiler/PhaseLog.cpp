// SPDX-License-Identifier: Apache-2.0
#include "compiler/PhaseLog.h"

#include "ir/ops/structure/CommunicationOps.h"
#include "ir/ops/structure/GraphOps.h"

#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <tuple>
#include <vector>

namespace dg::compiler {

namespace {

struct LoggedOp {
  std::string name, op, program;
  std::string phase;
  int64_t stage = -1;
  bool operator==(const LoggedOp &) const = default;
};

/// The ops of all graphs of a module, and which one uses what another makes.
struct Snapshot {
  std::string pass, summary;
  std::vector<LoggedOp> ops;
  std::vector<std::pair<size_t, size_t>> flow;
};

std::string nameOf(mlir::Operation *op) {
  if (auto parameter = mlir::dyn_cast<ir::ParameterOp>(op))
    return parameter.getParam().str();
  if (auto update = mlir::dyn_cast<ir::UpdateOp>(op))
    return (update.getParam() + "/update").str();
  llvm::StringRef label = ir::getPlace(op).getLabel().getValue(), kind = op->getName().stripDialect();
  return label.empty() ? kind.str() : (label + "/" + kind).str();
}

/// Inside a graph flow is what SSA says; between the chunks of a program it goes by the names of values and by
/// channels.
Snapshot takeSnapshot(llvm::StringRef pass, llvm::StringRef summary, mlir::ModuleOp module) {
  Snapshot result{pass.str(), summary.str(), {}, {}};
  std::map<std::pair<std::string, std::string>, size_t> returned; // program and name of the value
  std::map<std::pair<std::string, int64_t>, size_t> sends;        // program and channel
  std::vector<std::pair<std::pair<std::string, int64_t>, size_t>> receives;
  std::vector<std::pair<std::pair<std::string, std::string>, size_t>> fed;
  for (auto graph : module.getOps<ir::GraphOp>()) {
    std::string program = graph.getProgram() ? graph.getProgram()->str() : graph.getSymName().str();
    llvm::DenseMap<mlir::Operation *, size_t> numbers;
    for (mlir::Operation &op : graph.getBody().front()) {
      if (auto end = mlir::dyn_cast<ir::ReturnOp>(op)) {
        for (auto [index, value] : llvm::enumerate(end.getValues()))
          if (auto maker = numbers.find(value.getDefiningOp()); maker != numbers.end() && end.getNames())
            returned[{program, mlir::cast<mlir::StringAttr>((*end.getNames())[index]).str()}] = maker->second;
        continue;
      }
      size_t number = result.ops.size();
      numbers[&op] = number;
      ir::PlaceAttr place = ir::getPlace(&op);
      result.ops.push_back({nameOf(&op), op.getName().getStringRef().str(), program,
                            ir::stringifyPhase(graph.getPhase().value_or(place.getPhase())).str(),
                            graph.getStage() ? int64_t(*graph.getStage()) : place.getStage()});
      for (mlir::Value operand : op.getOperands()) {
        if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(operand))
          fed.push_back({{program, graph.getInputName(argument.getArgNumber()).str()}, number});
        else if (auto maker = numbers.find(operand.getDefiningOp()); maker != numbers.end())
          result.flow.push_back({maker->second, number});
      }
      if (auto send = mlir::dyn_cast<ir::SendOp>(op))
        sends[{program, int64_t(send.getChannel())}] = number;
      if (auto receive = mlir::dyn_cast<ir::ReceiveOp>(op))
        receives.push_back({{program, int64_t(receive.getChannel())}, number});
    }
  }
  for (const auto &[key, user] : fed)
    if (auto maker = returned.find(key); maker != returned.end() && maker->second != user)
      result.flow.push_back({maker->second, user});
  for (const auto &[key, user] : receives)
    if (auto maker = sends.find(key); maker != sends.end())
      result.flow.push_back({maker->second, user});
  llvm::sort(result.flow);
  result.flow.erase(std::unique(result.flow.begin(), result.flow.end()), result.flow.end());
  return result;
}

/// What `after` has and `before` has not, by kind of op.
llvm::json::Object surplus(const Snapshot &before, const Snapshot &after) {
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> balance;
  for (const LoggedOp &op : after.ops)
    ++balance[{op.op, op.name, op.phase}];
  for (const LoggedOp &op : before.ops)
    --balance[{op.op, op.name, op.phase}];
  std::map<std::string, int64_t> kinds;
  for (const auto &[key, count] : balance)
    if (count > 0)
      kinds[std::get<0>(key)] += count;
  llvm::json::Object object;
  for (const auto &[kind, count] : kinds)
    object[kind] = count;
  return object;
}

} // namespace

struct PhaseLog::Snapshots : std::vector<Snapshot> {};

PhaseLog::PhaseLog() : snapshots(std::make_shared<Snapshots>()) {}
PhaseLog::~PhaseLog() = default;

void PhaseLog::attach(mlir::PassManager &manager, mlir::ModuleOp module) {
  struct Listener : mlir::PassInstrumentation {
    explicit Listener(std::shared_ptr<Snapshots> snapshots) : snapshots(std::move(snapshots)) {}
    void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override {
      auto module = mlir::dyn_cast<mlir::ModuleOp>(op);
      if (!module)
        return;
      Snapshot taken = takeSnapshot(pass->getArgument(), pass->getDescription(), module);
      if (taken.ops != snapshots->back().ops || taken.flow != snapshots->back().flow)
        snapshots->push_back(std::move(taken));
    }
    std::shared_ptr<Snapshots> snapshots;
  };
  snapshots->push_back(takeSnapshot("", "The model as it was read", module));
  manager.addInstrumentation(std::make_unique<Listener>(snapshots));
}

std::string PhaseLog::toJson() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out);
  json.object([&] {
    json.attribute("version", 1);
    json.attributeArray("phases", [&] {
      for (size_t i = 0; i < snapshots->size(); ++i) {
        const Snapshot &now = (*snapshots)[i], &before = (*snapshots)[i == 0 ? 0 : i - 1];
        json.object([&] {
          json.attribute("pass", now.pass);
          json.attribute("summary", now.summary);
          json.attribute("added", surplus(before, now));
          json.attribute("removed", surplus(now, before));
          json.attributeArray("ops", [&] {
            for (const LoggedOp &op : now.ops)
              json.value(llvm::json::Array{llvm::json::fixUTF8(op.name), op.op, op.program, op.phase, op.stage});
          });
          json.attributeArray("flow", [&] {
            for (auto [from, to] : now.flow)
              json.value(llvm::json::Array{int64_t(from), int64_t(to)});
          });
        });
      }
    });
  });
  return out.str();
}

} // namespace dg::compiler
