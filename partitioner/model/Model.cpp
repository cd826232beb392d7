// SPDX-License-Identifier: Apache-2.0
#include "partitioner/model/Model.h"

#include <algorithm>
#include <map>

namespace dg::partitioner {

std::vector<uint32_t> findSegments(const Model &model) {
  const uint32_t n = uint32_t(model.ops.size());
  std::vector<uint32_t> lastUse(model.values.size(), 0);
  for (uint32_t op = 0; op < n; ++op)
    for (const ModelUse &use : model.ops[op].operands)
      lastUse[use.value] = op;
  // A value made by op q and used last by op u lives across the positions q+1 … u; those behind q+1 are no bounds.
  std::vector<int32_t> change(n + 2);
  for (size_t v = 0; v < model.values.size(); ++v) {
    uint32_t producer = model.values[v].producer;
    if (producer == noOp || lastUse[v] < producer + 2)
      continue;
    ++change[producer + 2];
    --change[lastUse[v] + 1];
  }
  std::vector<uint32_t> bounds = {0};
  int32_t alive = 0;
  for (uint32_t p = 1; p < n; ++p) {
    alive += change[p];
    if (alive == 0)
      bounds.push_back(p);
  }
  if (n > 0)
    bounds.push_back(n);
  return bounds;
}

std::vector<uint32_t> findStagePlaces(const Model &model) {
  const uint32_t n = uint32_t(model.ops.size());
  std::map<int64_t, std::pair<uint32_t, uint32_t>> spans; // first and last part of an author's op
  for (uint32_t op = 0; op < n; ++op)
    if (model.ops[op].origin >= 0)
      spans.try_emplace(model.ops[op].origin, op, op).first->second.second = op;
  std::vector<int32_t> change(n + 1);
  for (const auto &[origin, span] : spans) {
    ++change[span.first + 1];
    --change[span.second + 1];
  }
  std::vector<uint32_t> places;
  int32_t open = 0;
  for (uint32_t p = 1; p < n; ++p) {
    open += change[p];
    if (open == 0)
      places.push_back(p);
  }
  return places;
}

namespace {

void writeWork(fmt::memory_buffer &text, const Work &work) {
  fmt::format_to(std::back_inserter(text), "{},{},{},{};", work.flops, work.matrixFlops, work.bytes, work.numKernels);
}

/// Everything about an op that its costs and choices depend on; values are named by how far back they were made.
void writeOp(fmt::memory_buffer &text, const Model &model, uint32_t index, uint32_t begin) {
  const ModelOp &op = model.ops[index];
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{}:{}:{}{}:{}|", op.kind, fmt::join(op.factorSizes, ","), op.isPerSample, op.isView,
                 op.pinnedChoice);
  for (uint8_t cuttable : op.isCuttable)
    text.push_back(cuttable ? '1' : '0');
  auto writeUse = [&](const ModelUse &use) {
    const ModelValue &value = model.values[use.value];
    int64_t distance = value.producer == noOp ? -1 : int64_t(index) - value.producer;
    bool isOutside = value.producer != noOp && value.producer < begin;
    fmt::format_to(out, "({},{},{},{},{},{},{})", distance, isOutside, value.elements, value.isFloat, value.isPerSample,
                   value.isSaved, fmt::join(use.factors, ","));
  };
  for (const ModelUse &use : op.operands)
    writeUse(use);
  fmt::format_to(out, ">");
  for (const ModelUse &use : op.results)
    writeUse(use);
  for (const ModelParameter &parameter : op.parameters)
    fmt::format_to(out, "p{}:{}", parameter.elements, fmt::join(parameter.factors, ","));
  writeWork(text, op.forward);
  writeWork(text, op.inputGradient);
  writeWork(text, op.weightGradient);
}

} // namespace

std::vector<uint32_t> foldSegments(const Model &model, const std::vector<uint32_t> &bounds) {
  std::map<std::string, uint32_t> known;
  std::vector<uint32_t> kinds;
  for (size_t s = 0; s + 1 < bounds.size(); ++s) {
    fmt::memory_buffer text;
    // The op before the segment is a part of it: what it costs to bring its result here depends on its choices.
    if (bounds[s] > 0) {
      writeOp(text, model, bounds[s] - 1, bounds[s] - 1);
      fmt::format_to(std::back_inserter(text), "||");
    }
    for (uint32_t op = bounds[s]; op < bounds[s + 1]; ++op)
      writeOp(text, model, op, bounds[s]);
    kinds.push_back(known.try_emplace(fmt::to_string(text), uint32_t(known.size())).first->second);
  }
  return kinds;
}

Status checkModel(const Model &model) {
  auto fail = [](uint32_t op, const char *what) {
    return Status::error(ErrorKind::badInput, "model: op {} {}", op, what);
  };
  if (model.numSamples < 1 || model.ops.empty())
    return Status::error(ErrorKind::badInput, "model: {} ops and {} samples, expected at least one of both",
                         model.ops.size(), model.numSamples);
  for (uint32_t i = 0; i < model.ops.size(); ++i) {
    const ModelOp &op = model.ops[i];
    if (op.isCuttable.size() != op.factorSizes.size())
      return fail(i, "has factors of which it does not say whether they can be cut");
    if (op.isView && (op.operands.size() != 1 || !op.parameters.empty()))
      return fail(i, "is called a view, but has more than one operand");
    for (const auto *uses : {&op.operands, &op.results})
      for (const ModelUse &use : *uses) {
        if (use.value >= model.values.size())
          return fail(i, "names a value that does not exist");
        uint32_t producer = model.values[use.value].producer;
        if (uses == &op.operands ? producer != noOp && producer >= i : producer != i)
          return fail(i, "uses a value before it is made, or claims one of another op");
        for (int32_t factor : use.factors)
          if (factor < -1 || factor >= int32_t(op.factorSizes.size()))
            return fail(i, "names a factor that does not exist");
      }
  }
  return Status::ok();
}

} // namespace dg::partitioner
