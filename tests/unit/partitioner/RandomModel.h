// SPDX-License-Identifier: Apache-2.0
// Random small models for the search: chains with branches and skips, products with three factors, elementwise ops.
#pragma once

#include "partitioner/model/Model.h"

#include <random>

namespace dg::partitioner {

/// `numOps` ops over values of 2 dimensions (rows, width). A product has factors rows, out, in; an elementwise op rows,
/// width.
inline Model randomModel(std::mt19937_64 &random, uint32_t numOps, int64_t numSamples) {
  auto pick = [&](uint64_t from, uint64_t to) { return from + random() % (to - from + 1); };
  const int64_t widths[] = {64, 128, 256};
  Model model;
  model.name = "random";
  model.numSamples = numSamples;
  std::vector<int64_t> widthOf;
  auto addValue = [&](uint32_t producer, int64_t width) {
    ModelValue value;
    value.producer = producer;
    value.elements = double(numSamples) * double(width) * 16;
    value.isSaved = random() % 4 != 0;
    model.values.push_back(value);
    widthOf.push_back(width);
    return uint32_t(model.values.size() - 1);
  };
  addValue(noOp, widths[pick(0, 2)]);
  for (uint32_t i = 0; i < numOps; ++i) {
    ModelOp op;
    op.name = "op" + std::to_string(i);
    op.kind = "test.op";
    uint32_t last = uint32_t(model.values.size() - 1), input = random() % 4 == 0 ? uint32_t(pick(0, last)) : last;
    int64_t in = widthOf[input];
    if (random() % 3 != 0) { // a product with a weight
      int64_t out = widths[pick(0, 2)];
      op.factorSizes = {numSamples * 16, out, in};
      op.isCuttable = {0, 1, 1};
      op.operands = {{input, {-1, 2}}};
      op.parameters = {{op.name + ".weight", double(in * out), {1, 2}}};
      model.parameterElements += double(in * out);
      op.results = {{addValue(i, out), {-1, 1}}};
      double flops = 2.0 * double(numSamples) * 16 * double(in) * double(out);
      op.forward = {flops, flops, flops / 64, 1};
      op.inputGradient = op.weightGradient = op.forward;
    } else { // elementwise, with a second operand of the same width where there is one
      op.factorSizes = {numSamples * 16, in};
      op.isCuttable = {0, 1};
      op.operands = {{input, {-1, 1}}};
      uint32_t other = uint32_t(pick(0, last));
      if (other != input && widthOf[other] == in)
        op.operands.push_back({other, {-1, 1}});
      else
        op.isView = random() % 2 == 0;
      op.results = {{addValue(i, in), {-1, 1}}};
      double bytes = 8.0 * double(numSamples) * 16 * double(in);
      op.forward = {bytes / 8, 0, bytes, 1};
      op.inputGradient = op.forward;
    }
    model.ops.push_back(std::move(op));
  }
  model.stateElements = 2 * model.parameterElements;
  model.updateElements = 6 * model.parameterElements;
  return model;
}

} // namespace dg::partitioner
