// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom in a step, and by which ops.
#pragma once

#include "tools/dgviz/time/Timeline.h"

#include <string>
#include <vector>

namespace dg::viz {

/// Bytes and time between ranks, or between blocks of neighbouring ranks where there are too many.
struct TrafficMatrix {
  uint32_t ranksPerCell = 1;
  uint32_t size = 0;                 ///< rows and columns
  std::vector<double> bytes, timeUs; ///< row-major: [from · size + to]
};

/// One communication op of a stage, over all micro-batches of a step, on one rank.
struct CommunicationOp {
  plan::TaskId task = 0;
  plan::Axis axis = plan::Axis::pipe; ///< pipe for sends
  std::string algorithm;
  uint64_t bytes = 0; ///< of the tensor, in one call
  uint32_t calls = 0;
  double predictedUs = 0, measuredUs = -1; ///< of one call; -1: not measured
};

/// Sends and collectives of the program, by stage and then as they run. A receive is counted by its send.
std::vector<CommunicationOp> communicationOps(const plan::Plan &plan, const plan::Program &program,
                                              const std::vector<double> &predictedUs,
                                              const std::vector<double> *measuredUs);

/// What must cross between two ranks, as if every rank reached every other at once: of a tensor of B bytes over n ranks
/// an all-reduce moves 2·B/n from each to each other, a gather or a reduce-scatter B/n.
/// A cell's time is that of all ops in which the two exchange something.
TrafficMatrix trafficMatrix(const plan::Plan &plan, const std::vector<CommunicationOp> &ops, uint32_t maxSize = 64);

} // namespace dg::viz
