// SPDX-License-Identifier: Apache-2.0
// Builds the sample plan stage by stage; every value has its own bytes.
#include "tests/unit/plan/SamplePlan.h"
#include "tests/unit/plan/HandTasks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace dg::plan::testing {

namespace {

constexpr int64_t width = 16, batch = 8;

class Builder {
public:
  explicit Builder(const SampleOptions &options) : options(options) {
    plan.mesh.sizes = {options.stages, options.data, 1};
    plan.memory.resize(options.stages);
    plan.model = {"sample", "sample.mlir", 0, "sgd:lr=0.01", 0.01};
  }

  Plan build() {
    plan.programs.emplace_back();
    plan.programs[0].actions.resize(options.stages);
    for (uint32_t stage = 0; stage < options.stages; ++stage)
      buildStage(stage);
    Program &program = plan.programs[0];
    program.kind = plan::ProgramKind::train;
    program.batch = batch * options.data * options.microbatches;
    program.microbatches = options.microbatches;
    program.schedule = options.oneForwardOneBackward ? "1f1b" : "gpipe";
    program.inputs = {{"x", {valueNamed(plan, "x")}}, {"y", {valueNamed(plan, "y")}, 10}};
    program.outputs = {{"loss", {valueNamed(plan, "loss")}}};
    for (const StageMemory &memory : plan.memory)
      plan.predicted.peakBytes.push_back(memory.arenaBytes);
    plan.predicted.stepUs = 1234.5;
    plan.predicted.computeUs = 1000;
    plan.predicted.commUs = 100;
    plan.predicted.bubble = 0.125;
    plan.search.stopped = "given by hand";
    plan.search.alternatives = {{"data=4", 1500, 4096}};
    return std::move(plan);
  }

private:
  ValueId value(const std::string &name, ValueKind kind, std::vector<int64_t> shape, uint32_t slots = 1) {
    Value v;
    v.name = name;
    v.stage = stage;
    v.kind = kind;
    v.shape = v.globalShape = shape;
    v.sharding.resize(shape.size());
    bool isBatch = !shape.empty() && shape[0] == batch;
    if (isBatch) {
      v.sharding[0] = Axis::data;
      v.globalShape[0] *= options.data;
    }
    v.bytes = 4;
    for (int64_t size : shape)
      v.bytes *= uint64_t(size);
    v.stride = (v.bytes + 63) / 64 * 64;
    v.slots = slots;
    v.offset = plan.memory[stage].arenaBytes;
    plan.memory[stage].arenaBytes += v.stride * slots;
    if (kind == ValueKind::parameter) {
      v.init = {Init::Kind::uniform, 0.25};
      plan.memory[stage].persistentBytes += v.stride;
      plan.model.parameters += v.bytes / 4;
    }
    plan.values.push_back(v);
    return ValueId(plan.values.size() - 1);
  }

  Task &task(const std::string &name, TaskKind kind, std::vector<ValueId> reads, std::vector<ValueId> writes) {
    Task t;
    t.name = name;
    t.op = "dg.op";
    t.source = "sample.mlir:3:5";
    t.stage = stage;
    if (kind != TaskKind::kernel) {
      t.work = workOf(kind, reads.empty() ? writes : reads);
    } else {
      t.work = kernelOf("dg_kernel", reads, writes);
      t.flops = 2.0 * batch * width * width;
      t.bytes = 4.0 * (2 * batch * width + width * width);
    }
    // A chain: each task after the one before it.
    if (!plan.chunks.back().tasks.empty())
      t.deps = {plan.chunks.back().tasks.back()};
    plan.tasks.push_back(t);
    plan.chunks.back().tasks.push_back(TaskId(plan.tasks.size() - 1));
    return plan.tasks.back();
  }

  void finish() {
    TaskId last = TaskId(plan.tasks.size() - 1);
    Task &t = task(plan.tasks[last].name + "/finish", TaskKind::finish, {}, {});
    t.as<Finish>()->task = last;
  }

  void receive(const std::string &name, ValueId into, uint32_t from, uint32_t channel) {
    Task &t = task(name, TaskKind::receive, {}, {into});
    t.work = Receive{into, from, channel};
    finish();
  }

  void send(const std::string &name, ValueId from, uint32_t to, uint32_t channel) {
    Task &t = task(name, TaskKind::send, {from}, {});
    t.work = Send{from, to, channel};
  }

  void allReduce(const std::string &name, ValueId sum, uint32_t position) {
    Task &reduce = task(name, TaskKind::allReduce, {sum}, {sum});
    reduce.work = AllReduce{sum, Axis::data, position, {}};
    finish();
  }

  std::string local(const std::string &name) const { return name + std::to_string(stage); }

  void buildStage(uint32_t index) {
    stage = index;
    uint32_t last = options.stages - 1, first = uint32_t(plan.chunks.size());
    uint32_t inFlight =
        options.oneForwardOneBackward ? std::min(options.microbatches, options.stages - stage) : options.microbatches;
    std::vector<ValueId> weights, sums;
    for (uint32_t layer = 0; layer < options.layers; ++layer)
      weights.push_back(value("fc" + std::to_string(stage) + "_" + std::to_string(layer) + ".weight",
                              ValueKind::parameter, {width, width}));
    for (uint32_t layer = 0; layer < options.layers; ++layer)
      sums.push_back(value("sum " + plan.values[weights[layer]].name, ValueKind::accumulator, {width, width}));
    ValueId input = stage == 0 ? value("x", ValueKind::input, {batch, width}, options.microbatches)
                               : value(local("h"), ValueKind::activation, {batch, width}, inFlight);
    std::vector<ValueId> activations;
    for (uint32_t layer = 0; layer < options.layers; ++layer)
      activations.push_back(
          value(local("a") + "_" + std::to_string(layer), ValueKind::activation, {batch, width}, inFlight));
    ValueId target = noId, loss = noId;
    if (stage == last) {
      target = value("y", ValueKind::input, {batch, 1}, options.microbatches);
      loss = value("loss", ValueKind::accumulator, {});
    }

    plan.chunks.push_back({0, stage, Phase::begin, {}});
    for (ValueId sum : sums)
      task("zero " + plan.values[sum].name, TaskKind::zero, {}, {sum});
    if (stage == last)
      task("zero loss", TaskKind::zero, {}, {loss});

    plan.chunks.push_back({0, stage, Phase::forward, {}});
    if (stage > 0)
      receive(local("receive h"), input, stage - 1, 2 * stage);
    for (uint32_t layer = 0; layer < options.layers; ++layer)
      task("fc" + std::to_string(stage) + "_" + std::to_string(layer) + "/matmul", TaskKind::kernel,
           {layer ? activations[layer - 1] : input, weights[layer]}, {activations[layer]});
    if (stage < last)
      send(local("send a"), activations.back(), stage + 1, 2 * (stage + 1));
    else
      task("loss/mse", TaskKind::kernel, {activations.back(), target, loss}, {loss});

    plan.chunks.push_back({0, stage, Phase::backward, {}});
    ValueId gradient = value(local("g"), ValueKind::gradient, {batch, width});
    if (stage < last)
      receive(local("receive g"), gradient, stage + 1, 2 * (stage + 1) + 1);
    else
      task("grad loss/mse", TaskKind::kernel, {activations.back(), target}, {gradient});
    for (uint32_t layer = options.layers; layer-- > 0;) {
      ValueId before = layer ? activations[layer - 1] : input;
      task("grad " + plan.values[weights[layer]].name + "/matmul", TaskKind::kernel, {before, gradient, sums[layer]},
           {sums[layer]});
      ValueId next = value(local("gx") + "_" + std::to_string(layer), ValueKind::gradient, {batch, width});
      task("grad " + plan.values[before].name + "/matmul", TaskKind::kernel, {gradient, weights[layer]}, {next});
      gradient = next;
    }
    if (stage > 0)
      send(local("send g"), gradient, stage - 1, 2 * stage + 1);

    plan.chunks.push_back({0, stage, Phase::update, {}});
    for (uint32_t layer = 0; layer < options.layers; ++layer) {
      allReduce("grad " + plan.values[weights[layer]].name + "/all_reduce", sums[layer], layer);
      task("update " + plan.values[weights[layer]].name, TaskKind::kernel, {sums[layer], weights[layer]},
           {weights[layer]});
    }
    if (stage == last)
      allReduce("loss/all_reduce", loss, options.layers);
    schedule(first);
  }

  void schedule(ChunkId first) {
    std::vector<Action> &actions = plan.programs[0].actions[stage];
    uint32_t total = options.microbatches;
    uint32_t ahead = options.oneForwardOneBackward ? std::min(total, options.stages - stage) : total;
    actions.push_back({first, 0});
    for (uint32_t m = 0; m < ahead; ++m)
      actions.push_back({first + 1, m});
    for (uint32_t m = 0; m < total; ++m) {
      actions.push_back({first + 2, m});
      if (m + ahead < total)
        actions.push_back({first + 1, m + ahead});
    }
    actions.push_back({first + 3, 0});
  }

  SampleOptions options;
  Plan plan;
  uint32_t stage = 0;
};

[[noreturn]] void missing(const std::string &name) {
  std::fprintf(stderr, "the sample plan has no '%s'\n", name.c_str());
  std::abort();
}

} // namespace

Plan samplePlan(const SampleOptions &options) { return Builder(options).build(); }

TaskId taskNamed(const Plan &plan, const std::string &name) {
  for (TaskId task = 0; task < plan.tasks.size(); ++task)
    if (plan.tasks[task].name == name)
      return task;
  missing(name);
}

ValueId valueNamed(const Plan &plan, const std::string &name) {
  for (ValueId value = 0; value < plan.values.size(); ++value)
    if (plan.values[value].name == name)
      return value;
  missing(name);
}

} // namespace dg::plan::testing
