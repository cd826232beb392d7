// SPDX-License-Identifier: Apache-2.0
// Everything that is worked out about one program of a plan before it is shown, whether as a page, as text or in a
// file: each of these only writes down what stands here.
#pragma once

#include "tools/dgviz/facts/Communication.h"
#include "tools/dgviz/facts/MemoryCurve.h"
#include "tools/dgviz/facts/OpTree.h"
#include "tools/dgviz/time/CriticalPath.h"
#include "tools/dgviz/time/Timeline.h"
#include "tools/dgviz/time/Trace.h"
#include "tools/dgviz/time/Work.h"

#include <optional>

namespace dg::viz {

/// How the machines of a prediction relate to the plan: it was made for them; it was made for others; they are assumed,
/// and times are scaled to what the plan says.
enum class Prediction { own, elsewhere, scaled };

/// The numbers that a plan is judged by. Shares are of the step, as means over the stages.
struct Figures {
  double stepUs = 0, measuredStepUs = -1;       ///< -1: no trace
  double computeUs = 0, commUs = 0, bubble = 0; ///< as of plan::Predicted
  double computeShare = 0, exposedShare = 0, idleShare = 0;
  double arithmeticShare = 0, memoryShare = 0,
         launchShare = 0;    ///< of the step: what computing waits for; they add up to it
  double flops = 0;          ///< of a step, over all ranks
  double utilisation = 0;    ///< of the devices' peak arithmetic
  double imbalance = 0;      ///< longest computation of a stage over their mean, minus one
  uint32_t slowestStage = 0; ///< that computes longest
  double bytesMoved = 0;     ///< between ranks in a step, over all of them
  uint64_t peakBytes = 0;    ///< of the device that needs most
};

struct ProgramView {
  const plan::Program *program = nullptr;
  FlowGraph flow;
  OpTree tree;
  std::vector<Work> work; ///< per task
  Timeline predicted;
  CriticalPath predictedPath;
  std::vector<RowTimes> stages;           ///< predicted
  std::vector<double> predictedUs;        ///< per task, -1 where it takes no time
  const MeasuredProgram *trace = nullptr; ///< null: none was given, or it has nothing of this program
  Timeline measured;
  CriticalPath measuredPath;
  std::vector<RowTimes> ranks; ///< measured
  std::vector<double> measuredUs;
  std::vector<MemoryCurve> memory;
  std::vector<CommunicationOp> communications;
  TrafficMatrix matrix;
  Figures figures;
};

/// `trace` may be null; it and the plan must outlive the view. Fails like predictTimeline.
Result<ProgramView> viewOf(const plan::Plan &plan, const plan::Program &program, const partitioner::CostModel &costs,
                           Prediction prediction, const Trace *trace);

} // namespace dg::viz
