// SPDX-License-Identifier: Apache-2.0
// Cluster files: one that reads, written again, reads as itself, and a step on it is predicted in numbers.
#include "partitioner/model/Cluster.h"
#include "partitioner/predict/Simulator.h"
#include "tests/fuzz/FuzzTarget.h"
#include "tests/unit/plan/SamplePlan.h"

#include <cmath>

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const plan::Plan sample = plan::testing::samplePlan({.stages = 2, .data = 2, .microbatches = 2, .layers = 1});
  fuzz::OneSecond limit;
  auto read = partitioner::parseCluster(std::string(reinterpret_cast<const char *>(data), size), "fuzz");
  if (!read)
    return 0;
  const std::string written = partitioner::toJson(*read);
  auto again = partitioner::parseCluster(written, "fuzz");
  fuzz::check(bool(again), "what was written can be read");
  fuzz::check(partitioner::toJson(*again) == written, "what was read is written as it was");
  auto predicted = partitioner::simulate(sample, partitioner::CostModel(read->forRanks(4)));
  if (predicted)
    for (double number : {predicted->stepUs, predicted->computeUs, predicted->commUs, predicted->bubble})
      fuzz::check(std::isfinite(number) && number >= 0, "what is predicted is a number");
  return 0;
}
