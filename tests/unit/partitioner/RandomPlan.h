// SPDX-License-Identifier: Apache-2.0
// Random training plans: kernels, in-place kernels, scratch, all-reduces under way, sends and receives between
// neighbouring stages, values saved for the backward pass, accumulators, optimizer updates, and a second program.
#pragma once

#include "tests/unit/partitioner/PlanSketch.h"

#include <random>

namespace dg::partitioner::testing {

class RandomPlan {
public:
  RandomPlan(uint32_t numStages, uint32_t microbatches, std::mt19937 &random)
      : sketch(numStages), numStages(numStages), microbatches(microbatches), random(random) {}

  plan::Plan make() {
    for (uint32_t stage = 0; stage < numStages; ++stage) {
      parameters.emplace_back();
      for (int i = 0; i < 3; ++i)
        parameters[stage].push_back(newValue(stage, i == 2 ? plan::ValueKind::constant : plan::ValueKind::parameter));
    }
    addTraining();
    addEvaluation();
    return std::move(sketch.plan);
  }

private:
  plan::ValueId newValue(uint32_t stage, plan::ValueKind kind) {
    return sketch.addValue(stage, kind, random() % 8 ? 1 + random() % 200 : 1 + random() % 5000);
  }

  void addTraining() {
    sketch.addProgram(plan::ProgramKind::train, microbatches);
    std::vector<std::vector<plan::ValueId>> saved(numStages), sums(numStages);
    for (uint32_t stage = 0; stage < numStages; ++stage)
      for (int i = 0; i < 2; ++i) {
        sums[stage].push_back(newValue(stage, plan::ValueKind::accumulator));
        sketch.plan.values[sums[stage].back()].bytes = sketch.plan.values[parameters[stage][i]].bytes;
        sketch.plan.values[sums[stage].back()].shape = sketch.plan.values[parameters[stage][i]].shape;
      }
    std::vector<plan::ValueId> sent;
    for (uint32_t stage = 0; stage < numStages; ++stage) {
      sketch.addChunk(stage, plan::Phase::begin);
      for (plan::ValueId sum : sums[stage])
        sketch.addTask(plan::TaskKind::zero, {}, {sum});
      sketch.addChunk(stage, plan::Phase::forward);
      saved[stage] = addInputs(stage);
      addReceives(stage, stage - 1, sent, saved[stage]);
      addWork(stage, plan::ValueKind::activation, saved[stage]);
      sent = addSends(stage, stage + 1, saved[stage]);
    }
    sketch.plan.programs.back().outputs = {{"loss", {sums[numStages - 1][0]}}};
    sent.clear();
    for (uint32_t stage = numStages; stage-- > 0;) {
      sketch.addChunk(stage, plan::Phase::backward);
      addReceives(stage, stage + 1, sent, saved[stage]);
      addWork(stage, plan::ValueKind::gradient, saved[stage]);
      for (plan::ValueId sum : sums[stage])
        sketch.addKernel({pick(saved[stage]), sum}, {sum});
      sent = addSends(stage, stage - 1, saved[stage]);
      sketch.addChunk(stage, plan::Phase::update);
      for (int i = 0; i < 2; ++i)
        sketch.addFinish(sketch.addAllReduce(sums[stage][i]));
      for (int i = 0; i < 2; ++i)
        sketch.addKernel({parameters[stage][i], sums[stage][i]}, {parameters[stage][i]});
    }
  }

  void addEvaluation() {
    sketch.addProgram(plan::ProgramKind::eval, 1);
    std::vector<plan::ValueId> sent;
    for (uint32_t stage = 0; stage < numStages; ++stage) {
      sketch.addChunk(stage, plan::Phase::forward);
      std::vector<plan::ValueId> known = addInputs(stage);
      addReceives(stage, stage - 1, sent, known);
      addWork(stage, plan::ValueKind::activation, known);
      sent = addSends(stage, stage + 1, known);
      sketch.plan.programs.back().outputs.push_back({"y" + std::to_string(stage), {known.back()}});
    }
  }

  std::vector<plan::ValueId> addInputs(uint32_t stage) {
    std::vector<plan::Port> &inputs = sketch.plan.programs.back().inputs;
    plan::ValueId input = newValue(stage, plan::ValueKind::input);
    inputs.push_back({"x" + std::to_string(stage), {input}});
    return {input};
  }

  plan::ValueId pick(const std::vector<plan::ValueId> &from) { return from[random() % from.size()]; }

  /// Kernels that read what is known and make new values, which become known.
  void addWork(uint32_t stage, plan::ValueKind kind, std::vector<plan::ValueId> &known) {
    std::vector<plan::TaskId> underWay;
    auto finishAll = [&] {
      for (plan::TaskId started : underWay) {
        sketch.addFinish(started);
        known.push_back(writesOf(sketch.plan.tasks[started])[0]);
      }
      underWay.clear();
    };
    for (uint32_t count = 5 + random() % 20; count > 0; --count) {
      std::vector<plan::ValueId> reads{pick(known)};
      while (random() % 2)
        reads.push_back(random() % 3 ? pick(known) : pick(parameters[stage]));
      std::sort(reads.begin(), reads.end());
      reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
      plan::ValueId made = newValue(stage, kind);
      std::vector<plan::ValueId> writes{made};
      if (random() % 4 == 0)
        writes.push_back(newValue(stage, plan::ValueKind::scratch));
      sketch.addKernel(reads, writes);
      if (random() % 4 == 0)
        sketch.addKernel({made, reads[0]}, {made}); // in place
      if (random() % 5 == 0)
        underWay.push_back(sketch.addAllReduce(made)); // known only when it is finished
      else
        known.push_back(made);
      if (random() % 6 == 0)
        finishAll();
    }
    finishAll();
  }

  std::vector<plan::ValueId> addSends(uint32_t stage, uint32_t peer, const std::vector<plan::ValueId> &known) {
    std::vector<plan::ValueId> sent;
    if (peer >= numStages)
      return sent;
    for (uint32_t count = 1 + random() % 2; count > 0; --count) {
      // Of this chunk: a value of an earlier one would be sent again.
      plan::ValueId value = newValue(stage, plan::ValueKind::activation);
      sketch.addKernel({pick(known)}, {value});
      sketch.addSend(value, peer, numChannels + uint32_t(sent.size()));
      sent.push_back(value);
    }
    return sent;
  }

  void addReceives(uint32_t stage, uint32_t peer, const std::vector<plan::ValueId> &sent,
                   std::vector<plan::ValueId> &known) {
    std::vector<plan::TaskId> started;
    for (plan::ValueId from : sent) {
      plan::ValueId value = sketch.addValue(stage, plan::ValueKind::activation, sketch.plan.values[from].bytes / 4);
      started.push_back(sketch.addReceive(value, peer, numChannels++));
    }
    for (plan::TaskId task : started) {
      sketch.addFinish(task);
      known.push_back(writesOf(sketch.plan.tasks[task])[0]);
    }
  }

  PlanSketch sketch;
  uint32_t numStages, microbatches, numChannels = 0;
  std::mt19937 &random;
  std::vector<std::vector<plan::ValueId>> parameters; ///< per stage; the last is a constant
};

} // namespace dg::partitioner::testing
