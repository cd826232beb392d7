// SPDX-License-Identifier: Apache-2.0
// What one op costs when it is cut over the tensor axis along one of its factors, and what it costs to bring a value
// from the layout in which it is made to those in which it is needed. Costs are of one micro-batch on one rank.
//
//   choice of an op      operand with the factor   operand without   result with   result without
//   none (-1)            replicated                replicated        replicated    replicated
//   factor f             cut                       broadcast         cut           partial
//   carried (views)      –                         broadcast         –             whole, gradient in summands
//
// Replicated and broadcast are both whole in the forward pass; backwards a replicated reader returns the whole
// gradient, a broadcast one a summand of it. Partial results need the whole gradient (Megatron-LM's f and g, arXiv
// 1909.08053).
#pragma once

#include "partitioner/model/CostModel.h"
#include "partitioner/model/Model.h"

#include <vector>

namespace dg::partitioner {

/// How work is divided, as far as a single op can tell.
struct Division {
  uint32_t tensor = 1; ///< ranks on the tensor axis
  double rows = 1;     ///< samples of a micro-batch on one data rank
  plan::DType precision = plan::DType::f32;
};

inline constexpr int32_t uncut = -1;
/// A view that every rank has whole, but whose gradient it hands on in summands: its readers' sum is reduced once,
/// before it.
inline constexpr int32_t carried = -3;

/// The choices of an op: uncut first, then each factor that `tensor` divides; carried last, for views.
std::vector<int32_t> choicesOf(const ModelOp &op, uint32_t tensor);

/// The layouts in which the readers of a value need it, as bits.
using Needs = uint32_t;
inline constexpr Needs needsReplicated = 1, needsBroadcast = 2;
constexpr Needs needsCut(uint32_t dim) { return Needs(4) << dim; }

/// In which layout an op with this choice reads a use.
Needs needOf(const ModelUse &use, int32_t choice);

struct OpCost {
  double forwardUs = 0, inputGradientUs = 0, weightGradientUs = 0;
  double parameterElements = 0; ///< of this rank
  double savedBytes = 0;        ///< results kept for the backward pass
  double resultBytes = 0;       ///< of all results, as they are sent
  double matrixFlops = 0;       ///< of the forward pass
  double gradientMatrixFlops = 0;
};

struct ReshardCost {
  double forwardUs = 0, backwardUs = 0;
  double forwardBytes = 0, backwardBytes = 0; ///< that a rank sends
};

/// All methods are const and pure: any thread may call them.
class OpCosts {
public:
  OpCosts(const Model &model, const CostModel &costs, Division division);

  OpCost of(uint32_t op, int32_t choice) const;
  /// From how its producer makes it to all that its readers need together: each collective happens once.
  ReshardCost reshard(uint32_t value, int32_t producerChoice, Needs needs) const;
  /// Bytes of the whole value of one micro-batch.
  double bytesOf(const ModelValue &value) const;
  const Division &division() const { return how; }
  const Model &model() const { return source; }

private:
  void addCollective(plan::TaskKind kind, double bytes, double &us, double &sentBytes) const;
  double workUs(const Work &work, double flopsShare, double bytesShare) const;
  const ModelUse &resultUse(uint32_t value) const;

  const Model &source;
  const CostModel &costs;
  Division how;
  Group tensorGroup;
};

} // namespace dg::partitioner
