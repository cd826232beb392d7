// SPDX-License-Identifier: Apache-2.0
// Why a plan is as it is: for each op of each kind of block its choice, the next best and what that would cost; and
// where the time of the step goes.
#pragma once

#include "partitioner/search/PlanSearch.h"

#include <string>
#include <vector>

namespace dg::partitioner {

struct OpExplanation {
  uint32_t op = 0;       ///< the first op of its kind
  std::string choice;    ///< "whole", "cut along output 1 of 64", …
  double costUs = 0;     ///< kernels and collectives of one micro-batch, forward and backward
  std::string runnerUp;  ///< empty where there is no other choice
  double runnerUpUs = 0; ///< what the plan would lose with it in one micro-batch, everything else unchanged
  std::string boundBy;   ///< "cost", "pin", "no other choice"
};

/// Equal segments of the model.
struct BlockExplanation {
  uint32_t firstOp = 0, numOps = 0;
  uint32_t count = 0; ///< how often it stands in the model
  double costUs = 0;  ///< of one of them
  std::vector<OpExplanation> ops;
};

struct CostItem {
  std::string what;  ///< "kernels of b0_up/matmul (×48)", "waiting for other stages", …
  double stepUs = 0; ///< of a step on the slowest stage
  std::string advice;
};

/// A stage by the closed forms of the search.
struct StageExplanation {
  uint32_t firstOp = 0, lastOp = 0;
  double forwardUs = 0, backwardUs = 0; ///< of one micro-batch, collectives and recomputation included
  double syncUs = 0;
  double peakBytes = 0; ///< an upper bound
  bool isRecomputed = false;
};

struct Explanation {
  std::vector<StageExplanation> stages;
  std::vector<BlockExplanation> blocks;
  std::vector<CostItem> largest; ///< five, largest first
  std::string binding;           ///< what keeps the plan from being faster: "memory", "nothing: …"
};

Explanation explain(const Model &model, const CostModel &costs, const SearchedPlan &plan);

/// In words: which dimension of which operand or result is cut over the tensor axis.
std::string describeChoice(const ModelOp &op, int32_t choice, uint32_t tensor);

} // namespace dg::partitioner
