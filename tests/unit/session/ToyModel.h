// SPDX-License-Identifier: Apache-2.0
// A model small enough to be planned by hand: p = x · w, loss = mean (p - y)², momentum 0.5; on one stage, or with the
// loss on a second one. Programs train, eval and infer, as dgc lays them out.
#pragma once

#include "runtime/data/Dealing.h"
#include "tests/unit/executor/TestPlan.h"

extern "C" {
void toy_predict(void *const *, const dg_scalars *, uint32_t);
void toy_loss(void *const *, const dg_scalars *, uint32_t);
void toy_accuracy(void *const *, const dg_scalars *, uint32_t);
void toy_gradient(void *const *, const dg_scalars *, uint32_t);
void toy_update(void *const *, const dg_scalars *, uint32_t);
}

namespace dg::test {

inline constexpr int64_t toyFeatures = 3;

inline TableLibrary toyLibrary() {
  return TableLibrary({{"toy_predict", toy_predict},
                       {"toy_loss", toy_loss},
                       {"toy_accuracy", toy_accuracy},
                       {"toy_gradient", toy_gradient},
                       {"toy_update", toy_update}});
}

/// Plans the toy model for a mesh of pipe (1 or 2) × data.
class ToyPlanner {
public:
  ToyPlanner(int64_t pipe, int64_t data, int64_t batch, uint32_t microbatches = 1)
      : maker(pipe, data, 1, microbatches), last(uint32_t(pipe - 1)), microbatches(microbatches),
        rows(data::rowsNeeded(batch, {int64_t(microbatches), data})), dataRanks(data) {
    plan::Plan &plan = maker.plan;
    plan.model.name = "toy";
    plan.model.parameters = toyFeatures;
    plan.model.learningRate = 0.05;
    plan.model.optimizer = "sgd:lr=0.05,momentum=0.5";
    plan.programs.clear();
    addValues();
    addProgram(plan::ProgramKind::train, batch);
    addProgram(plan::ProgramKind::eval, batch);
    addProgram(plan::ProgramKind::infer, batch);
    for (size_t i = 0; i < plan.memory.size(); ++i)
      plan.predicted.peakBytes.push_back(plan.memory[i].arenaBytes);
  }
  plan::Plan take() { return std::move(maker.plan); }

  plan::ValueId w = 0;

private:
  plan::ValueId add(const std::string &name, plan::ValueKind kind, std::vector<int64_t> shape, uint32_t stage,
                    bool isBatched, plan::DType dtype = plan::DType::f32) {
    plan::ValueId id = maker.addValue(name, std::move(shape), stage, isBatched ? microbatches : 1, dtype);
    plan::Value &value = maker.plan.values[id];
    value.kind = kind;
    if (isBatched) {
      value.sharding[0] = plan::Axis::data;
      value.globalShape[0] *= dataRanks;
    }
    return id;
  }

  void addValues() {
    using plan::ValueKind;
    w = add("w", ValueKind::parameter, {toyFeatures}, 0, false);
    maker.plan.values[w].init = {plan::Init::Kind::uniform, 1.0};
    momentum = add("w.momentum", ValueKind::state, {toyFeatures}, 0, false);
    maker.plan.values[momentum].init = {plan::Init::Kind::constant, 0.0};
    gradient = add("w.gradient", ValueKind::accumulator, {toyFeatures}, 0, false);
    x = add("x", ValueKind::input, {rows, toyFeatures}, 0, true);
    y = add("y", ValueKind::input, {rows}, last, true);
    weight = add("sample_weight", ValueKind::input, {rows}, last, true);
    loss = add("loss", ValueKind::accumulator, {}, last, false);
    accuracy = add("accuracy", ValueKind::accumulator, {}, last, false);
    for (uint32_t stage = 0; stage <= last; ++stage) {
      count[stage] = add("rows", ValueKind::constant, {1}, stage, false, plan::DType::i64);
      maker.plan.values[count[stage]].init = {plan::Init::Kind::constant, double(rows)};
      p[stage] = add("p", ValueKind::activation, {rows}, stage, true);
      dp[stage] = add("dp", ValueKind::gradient, {rows}, stage, true);
    }
  }

  plan::TaskId kernel(plan::ChunkId chunk, const char *symbol, std::vector<plan::ValueId> reads,
                      std::vector<plan::ValueId> writes, std::vector<plan::TaskId> deps = {}) {
    plan::TaskId id = maker.addTask(chunk, plan::TaskKind::kernel, symbol, {}, std::move(deps));
    maker.plan.tasks[id].work = plan::testing::kernelOf(symbol, reads, writes);
    return id;
  }

  plan::TaskId move(plan::ChunkId chunk, plan::TaskKind kind, plan::ValueId value, uint32_t peer, uint32_t channel,
                    std::vector<plan::TaskId> deps = {}) {
    plan::TaskId id =
        maker.addTask(chunk, kind, kind == plan::TaskKind::send ? "send" : "receive", {value}, std::move(deps));
    plan::Task &task = maker.plan.tasks[id];
    plan::testing::setPeer(task, peer);
    plan::testing::setChannel(task, channel);
    return kind == plan::TaskKind::send ? id : maker.addFinish(chunk, id);
  }

  plan::TaskId reduce(plan::ChunkId chunk, plan::ValueId value, uint32_t channel) {
    plan::TaskId id = maker.addTask(chunk, plan::TaskKind::allReduce, "all_reduce", {value});
    maker.plan.tasks[id].work = plan::AllReduce{value, plan::Axis::data, channel, {}};
    return maker.addFinish(chunk, id);
  }

  void zero(plan::ChunkId chunk, plan::ValueId value) { maker.addTask(chunk, plan::TaskKind::zero, "zero", {value}); }

  void addProgram(plan::ProgramKind kind, int64_t batch) {
    using plan::Phase;
    using plan::TaskKind;
    plan::Program program;
    program.kind = kind;
    program.batch = batch;
    program.microbatches = microbatches;
    program.schedule = "gpipe";
    program.actions.resize(last + 1);
    bool trains = kind == plan::ProgramKind::train, infers = kind == plan::ProgramKind::infer;
    program.inputs = {{"x", {x}}};
    program.outputs = {{"p", {p[0]}}};
    if (!infers) {
      program.inputs = {{"x", {x}}, {"y", {y}}, {"sample_weight", {weight}}};
      program.outputs = {{"loss", {loss}}};
      if (!trains)
        program.outputs.push_back({"accuracy", {accuracy}});
    }
    uint32_t channel = 100 * uint32_t(maker.plan.programs.size());
    for (uint32_t stage = 0; stage <= last; ++stage) {
      bool hasModel = stage == 0, hasLoss = stage == last && !infers;
      plan::ChunkId begin = maker.addChunk(Phase::begin, stage), forward = maker.addChunk(Phase::forward, stage),
                    backward = maker.addChunk(Phase::backward, stage), update = maker.addChunk(Phase::update, stage);
      for (plan::ChunkId chunk : {begin, forward, backward, update})
        maker.plan.chunks[chunk].program = uint32_t(maker.plan.programs.size());
      std::vector<plan::TaskId> ready;
      if (hasModel) {
        if (trains)
          zero(begin, gradient);
        ready = {kernel(forward, "toy_predict", {count[0], x, w}, {p[0]})};
        if (last == 1 && !infers)
          move(forward, TaskKind::send, p[0], 1, channel, ready);
      }
      if (hasLoss) {
        zero(begin, loss);
        if (!trains)
          zero(begin, accuracy);
        if (last == 1)
          ready = {move(forward, TaskKind::receive, p[1], 0, channel)};
        plan::TaskId done = kernel(forward, "toy_loss", {count[stage], p[stage], y, weight}, {dp[stage], loss}, ready);
        if (!trains)
          kernel(forward, "toy_accuracy", {count[stage], p[stage], y, weight}, {accuracy}, {done});
        if (trains && last == 1)
          move(backward, TaskKind::send, dp[1], 0, channel + 1);
      }
      if (hasModel && trains) {
        std::vector<plan::TaskId> arrived;
        if (last == 1)
          arrived = {move(backward, TaskKind::receive, dp[0], 1, channel + 1)};
        kernel(backward, "toy_gradient", {count[0], x, dp[0]}, {gradient}, arrived);
        kernel(update, "toy_update", {gradient}, {momentum, w}, {reduce(update, gradient, 0)});
      }
      if (hasLoss) {
        reduce(update, loss, last == 0 && trains ? 1 : 0);
        if (!trains)
          reduce(update, accuracy, 1);
      }
      auto run = [&](plan::ChunkId chunk, uint32_t microbatch) {
        program.actions[stage].push_back({chunk, microbatch});
      };
      run(begin, 0);
      for (uint32_t m = 0; m < microbatches; ++m)
        run(forward, m);
      for (uint32_t m = 0; m < microbatches; ++m)
        run(backward, m);
      run(update, 0);
    }
    maker.plan.programs.push_back(program);
  }

  PlanMaker maker;
  uint32_t last, microbatches;
  int64_t rows, dataRanks;
  plan::ValueId momentum = 0, gradient = 0, x = 0, y = 0, weight = 0, loss = 0, accuracy = 0;
  plan::ValueId count[2] = {}, p[2] = {}, dp[2] = {};
};

inline plan::Plan toyPlan(int64_t pipe, int64_t data, int64_t batch, uint32_t microbatches = 1) {
  return ToyPlanner(pipe, data, batch, microbatches).take();
}

} // namespace dg::test
