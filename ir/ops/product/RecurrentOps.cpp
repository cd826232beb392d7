// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as ONNX defines them: a dg.scan over the steps of the input for each direction. Products with the
// input are in it too, so that they are cut with the batch; --dg-hoist-from-scans takes them for all steps at once.
#include "ir/ops/product/RecurrentOps.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ActivationOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/structure/ControlOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- What all share --------------------------------------------------------------------------------------------===//

namespace {
/// What tells the three layers apart.
struct Cell {
  int64_t numGates;
  ArrayRef<StringRef> extras;      ///< names that `extra` may have
  ArrayRef<StringRef> activations; ///< of one direction, unless given
};
const StringRef rnnExtras[] = {"bias", "lengths", "initial_h"}, rnnActivations[] = {"tanh"},
                lstmExtras[] = {"bias", "lengths", "initial_h", "initial_c", "peephole"},
                lstmActivations[] = {"sigmoid", "tanh", "tanh"}, gruActivations[] = {"sigmoid", "tanh"},
                knownActivations[] = {"tanh", "sigmoid", "relu", "softsign", "softplus"};
template <typename Op> const Cell cellOf = {};
template <> const Cell cellOf<RnnOp> = {1, rnnExtras, rnnActivations};
template <> const Cell cellOf<LstmOp> = {4, lstmExtras, lstmActivations};
template <> const Cell cellOf<GruOp> = {3, rnnExtras, gruActivations};

/// The sizes of a layer.
struct Sizes {
  int64_t time, batch, in, hidden, directions;
};
} // namespace

template <typename Op> static StringRef extraAt(Op op, size_t index) {
  return cast<StringAttr>((*op.getExtra())[index]).getValue();
}

/// The operand of this name, or null.
template <typename Op> static Value extraOf(Op op, StringRef name) {
  for (size_t i = 0; i < op.getExtras().size(); ++i)
    if (extraAt(op, i) == name)
      return op.getExtras()[i];
  return {};
}

template <typename Op> static StringRef activationOf(Op op, int64_t direction, size_t index) {
  auto given = op.getActivations();
  size_t perDirection = cellOf<Op>.activations.size();
  if (!given)
    return cellOf<Op>.activations[index];
  size_t at = given->size() > perDirection ? size_t(direction) * perDirection + index : index;
  return cast<StringAttr>((*given)[at]).getValue();
}

template <typename Adaptor>
static FailureOr<SmallVector<Type>> inferRecurrent(Adaptor op, const Rejection &reject, const Cell &cell,
                                                   unsigned numStates) {
  auto input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight()), recurrent = tensorOf(op.getRecurrent());
  StringRef direction = op.getDirection();
  if (!llvm::is_contained({"forward", "reverse", "bidirectional"}, direction))
    return reject("has direction \"", direction, "\", expected forward, reverse or bidirectional");
  int64_t directions = direction == "bidirectional" ? 2 : 1;
  int64_t hidden = recurrent.getRank() == 3 ? recurrent.getDimSize(2) : -1;
  bool fits = input.getRank() == 3 && !input.isDynamicDim(0) && hidden > 0 && weight.hasStaticShape() &&
              weight.getShape() == ArrayRef<int64_t>({directions, cell.numGates * hidden, input.getDimSize(2)}) &&
              recurrent.getShape() == ArrayRef<int64_t>({directions, cell.numGates * hidden, hidden}) &&
              isa<FloatType>(input.getElementType()) && weight.getElementType() == input.getElementType() &&
              recurrent.getElementType() == input.getElementType();
  if (!fits)
    return reject("has input ", input, ", weight ", weight, " and recurrent ", recurrent,
                  ", expected [time, batch, in], [", directions, ", ", cell.numGates, " · hidden, in] and [",
                  directions, ", ", cell.numGates, " · hidden, hidden] of one floating-point type");
  size_t numNamed = op.getExtra() ? op.getExtra()->size() : 0;
  if (numNamed != op.getExtras().size())
    return reject("names ", numNamed, " extra operands and has ", op.getExtras().size(), ", expected as many");
  int64_t batch = input.getDimSize(1);
  for (auto [i, operand] : llvm::enumerate(op.getExtras())) {
    StringRef name = cast<StringAttr>((*op.getExtra())[i]).getValue();
    if (!llvm::is_contained(cell.extras, name))
      return reject("has an extra operand \"", name, "\", expected one of: ", llvm::join(cell.extras, ", "));
    SmallVector<int64_t> shape{directions, batch, hidden};
    if (name == "bias")
      shape = {directions, 2 * cell.numGates * hidden};
    if (name == "peephole")
      shape = {directions, 3 * hidden};
    if (name == "lengths")
      shape = {batch};
    auto type = tensorOf(operand);
    bool isRight =
        name == "lengths" ? isa<IntegerType>(type.getElementType()) : type.getElementType() == input.getElementType();
    if (!isRight || !mayBeEqual(type.getShape(), shape))
      return reject("has ", name, " ", type, ", expected ",
                    RankedTensorType::get(shape, name == "lengths" ? Type(IntegerType::get(input.getContext(), 64))
                                                                   : input.getElementType()));
  }
  if (auto given = op.getActivations()) {
    size_t expected = cell.activations.size();
    bool isRight = given->size() == expected || given->size() == expected * size_t(directions);
    for (Attribute name : *given)
      isRight &= llvm::is_contained(knownActivations, cast<StringAttr>(name).getValue());
    if (!isRight)
      return reject("has activations ", op.getActivationsAttr(), ", expected ", expected, " of ",
                    llvm::join(ArrayRef(knownActivations), ", "), ", or as many for each direction");
  }
  SmallVector<Type> types(1 + numStates, RankedTensorType::get({directions, batch, hidden}, input.getElementType()));
  types[0] = RankedTensorType::get({input.getDimSize(0), directions, batch, hidden}, input.getElementType());
  return types;
}

template <typename Op> static Sizes sizesOf(Op op) {
  auto input = tensorOf(op.getInput()), recurrent = tensorOf(op.getRecurrent());
  return {input.getDimSize(0), input.getDimSize(1), input.getDimSize(2), recurrent.getDimSize(2),
          recurrent.getDimSize(0)};
}

template <typename Op> static bool isReverse(Op op, int64_t direction) {
  return op.getDirection() == "reverse" || direction == 1;
}

//===- Parts -----------------------------------------------------------------------------------------------------===//

namespace {
/// Short names for the ops of a cell.
struct Parts {
  OpBuilder &builder;
  Location loc;

  Value add(Value a, Value b) const { return create<AddOp>(builder, loc, a, b); }
  Value sub(Value a, Value b) const { return create<SubOp>(builder, loc, a, b); }
  Value mul(Value a, Value b) const { return create<MulOp>(builder, loc, a, b); }
  /// a · bᵀ.
  Value product(Value a, Value b) const {
    return create<MatmulOp>(builder, loc, a, b, /*transpose_lhs=*/false, /*transpose_rhs=*/true);
  }
  /// Entries [start, start + size) of a dimension.
  Value slice(Value value, int64_t dim, int64_t start, int64_t size) const {
    auto type = tensorOf(value);
    SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape());
    starts[dim] = start;
    sizes[dim] = size;
    return create<SliceOp>(builder, loc, value, starts, sizes, DenseI64ArrayAttr());
  }
  /// Entry `index` of dimension 0, without the dimension.
  Value entry(Value value, int64_t index) const {
    return buildReshape(builder, loc, slice(value, 0, index, 1), tensorOf(value).getShape().drop_front());
  }
  Value join(ArrayRef<Value> values, int64_t dim) const {
    return values.size() == 1 ? values[0] : Value(create<ConcatOp>(builder, loc, values, dim));
  }
  Value oneMinus(Value value) const { return sub(buildFilled(builder, loc, tensorOf(value), 1), value); }
  Value activate(StringRef name, Value value, std::optional<APFloat> clip) const {
    if (clip)
      value = create<ClipOp>(builder, loc, value, builder.getF64FloatAttr(-clip->convertToDouble()),
                             builder.getF64FloatAttr(clip->convertToDouble()));
    if (name == "sigmoid")
      return create<SigmoidOp>(builder, loc, value);
    if (name == "relu")
      return create<ReluOp>(builder, loc, value);
    if (name == "softsign")
      return create<SoftsignOp>(builder, loc, value);
    if (name == "softplus")
      return create<SoftplusOp>(builder, loc, value);
    return create<TanhOp>(builder, loc, value);
  }
};
} // namespace

/// 1 while a sequence lasts, then 0: [time, batch, 1].
template <typename Op> static Value buildLasting(const Parts &parts, Op op, Value lengths, const Sizes &sizes) {
  auto type = tensorOf(lengths);
  auto steps = RankedTensorType::get({sizes.time, 1}, type.getElementType());
  Value time = create<IotaOp>(parts.builder, parts.loc, steps, parts.builder.getI64IntegerAttr(0), TypeAttr::get(steps),
                              parts.builder.getF64FloatAttr(0), parts.builder.getF64FloatAttr(1));
  Value isLasting = create<CompareOp>(parts.builder, parts.loc, time, lengths, "lt");
  Value number = create<CastOp>(parts.builder, parts.loc, isLasting, tensorOf(op.getInput()).getElementType());
  return buildReshape(parts.builder, parts.loc, number, {sizes.time, sizes.batch, 1});
}

/// One direction: `step` makes the next states from the sum of products with the input [batch, gates · hidden], the
/// states, and what it sees whole; the first state is what the layer gives. `bias`, of that sum, may be null.
template <typename Op>
static FailureOr<SmallVector<Value>>
buildDirection(OpBuilder &builder, Op op, int64_t direction, Value weight, Value bias, ArrayRef<Value> states,
               ArrayRef<Value> seen, Value lasting,
               llvm::function_ref<SmallVector<Value>(const Parts &, Value, ValueRange states, ValueRange whole)> step) {
  SmallVector<Value> scanned{op.getInput()}, whole{weight};
  if (lasting)
    scanned.push_back(lasting);
  llvm::append_range(whole, seen);
  if (bias)
    whole.push_back(bias);
  auto scan = buildScan(builder, op.getLoc(), states, scanned, whole, /*numSums=*/0, isReverse(op, direction),
                        [&](OpBuilder &inner, ValueRange arguments) -> FailureOr<SmallVector<Value>> {
                          Parts parts{inner, op.getLoc()};
                          ValueRange before = arguments.take_front(states.size()),
                                     all = arguments.drop_front(states.size() + scanned.size());
                          Value sums = parts.product(arguments[states.size()], all[0]);
                          if (bias)
                            sums = parts.add(sums, all.back());
                          SmallVector<Value> next = step(parts, sums, before, all.slice(1, seen.size()));
                          Value given = next[0];
                          if (lasting) {
                            Value isOn = arguments[states.size() + 1];
                            given = parts.mul(given, isOn);
                            for (size_t i = 0; i < next.size(); ++i)
                              next[i] = parts.add(before[i], parts.mul(parts.sub(next[i], before[i]), isOn));
                          }
                          next.push_back(given);
                          return next;
                        });
  if (failed(scan))
    return failure();
  return SmallVector<Value>((*scan)->getResults());
}

/// All directions, side by side. `numStates` is 1, or 2 with a cell. What a step sees whole: the recurrent weights, cut
/// into rows of `cuts` gates, then their bias unless `joinsBiases`, then the peepholes gate by gate. Everything is cut
/// here, so that the gradient of a part is a sum over steps and nothing else.
template <typename Op>
static SmallVector<Value> buildLayer(
    OpBuilder &builder, Op op, unsigned numStates, ArrayRef<int64_t> cuts, bool joinsBiases,
    llvm::function_ref<SmallVector<Value>(const Parts &, int64_t direction, Value, ValueRange, ValueRange)> step) {
  Parts parts{builder, op.getLoc()};
  Sizes sizes = sizesOf(op);
  int64_t width = cellOf<Op>.numGates * sizes.hidden;
  Type element = tensorOf(op.getInput()).getElementType();
  Value lengths = extraOf(op, "lengths"), lasting;
  if (lengths)
    lasting = buildLasting(parts, op, lengths, sizes);
  SmallVector<SmallVector<Value>> results(numStates + 1);
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    SmallVector<Value> whole;
    Value recurrent = parts.entry(op.getRecurrent(), direction), ownBias;
    int64_t first = 0;
    for (int64_t gates : cuts) {
      whole.push_back(cuts.size() == 1 ? recurrent : parts.slice(recurrent, 0, first, gates * sizes.hidden));
      first += gates * sizes.hidden;
    }
    if (Value bias = extraOf(op, "bias")) {
      Value both = parts.entry(bias, direction), recurrentBias = parts.slice(both, 0, width, width);
      ownBias = parts.slice(both, 0, 0, width);
      if (joinsBiases)
        ownBias = parts.add(ownBias, recurrentBias);
      else
        whole.push_back(recurrentBias);
    }
    if (Value peephole = extraOf(op, "peephole"))
      for (int64_t gate = 0; gate < 3; ++gate)
        whole.push_back(parts.slice(parts.entry(peephole, direction), 0, gate * sizes.hidden, sizes.hidden));
    SmallVector<Value> states;
    for (unsigned i = 0; i < numStates; ++i) {
      Value initial = extraOf(op, i == 0 ? "initial_h" : "initial_c");
      states.push_back(
          initial ? parts.entry(initial, direction)
                  : buildFilled(builder, op.getLoc(), RankedTensorType::get({sizes.batch, sizes.hidden}, element), 0));
    }
    auto made = buildDirection(builder, op, direction, parts.entry(op.getWeight(), direction), ownBias, states, whole,
                               lasting, [&](const Parts &inner, Value x, ValueRange before, ValueRange seen) {
                                 return step(inner, direction, x, before, seen);
                               });
    if (failed(made))
      return {};
    // The scan gives the last states, then all.
    for (unsigned i = 0; i < numStates; ++i)
      results[1 + i].push_back(buildReshape(builder, op.getLoc(), (*made)[i], {1, sizes.batch, sizes.hidden}));
    results[0].push_back(buildReshape(builder, op.getLoc(), made->back(), {sizes.time, 1, sizes.batch, sizes.hidden}));
  }
  SmallVector<Value> joined{parts.join(results[0], 1)};
  for (unsigned i = 0; i < numStates; ++i)
    joined.push_back(parts.join(results[1 + i], 0));
  return joined;
}

//===- Evaluation ------------------------------------------------------------------------------------------------===//

namespace {
/// One direction of a layer in the reference evaluation.
struct Reference {
  Sizes sizes;
  int64_t direction, numGates;
  const HostTensor *input, *weight, *recurrent, *bias, *peephole;
  std::optional<APFloat> clip;

  /// x · Wᵀ of a gate's unit, with its bias.
  double ofInput(int64_t time, int64_t batch, int64_t gate, int64_t unit) const {
    int64_t row = direction * numGates * sizes.hidden + gate * sizes.hidden + unit;
    double sum = bias ? bias->data[direction * 2 * numGates * sizes.hidden + gate * sizes.hidden + unit] : 0;
    for (int64_t i = 0; i < sizes.in; ++i)
      sum += input->data[(time * sizes.batch + batch) * sizes.in + i] * weight->data[row * sizes.in + i];
    return sum;
  }
  /// h · Rᵀ of a gate's unit, with its bias.
  double ofState(ArrayRef<double> state, int64_t gate, int64_t unit) const {
    int64_t row = direction * numGates * sizes.hidden + gate * sizes.hidden + unit;
    double sum = bias ? bias->data[(direction * 2 + 1) * numGates * sizes.hidden + gate * sizes.hidden + unit] : 0;
    for (int64_t i = 0; i < sizes.hidden; ++i)
      sum += state[i] * recurrent->data[row * sizes.hidden + i];
    return sum;
  }
  double peepholeOf(int64_t gate, int64_t unit) const {
    return peephole ? peephole->data[(direction * 3 + gate) * sizes.hidden + unit] : 0;
  }
  double activate(StringRef name, double x) const {
    if (clip)
      x = std::clamp(x, -clip->convertToDouble(), clip->convertToDouble());
    if (name == "softsign")
      return x / (1 + std::abs(x));
    if (name == "softplus")
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    return name == "sigmoid" ? 1 / (1 + std::exp(-x)) : name == "relu" ? std::max(x, 0.0) : std::tanh(x);
  }
};
} // namespace

/// Runs `step(reference, time, batch, states)`, which replaces the states of one sequence, over time.
template <typename Op, typename Step>
static void evaluateLayer(Op op, HostOperands operands, HostResults results, unsigned numStates, Step step) {
  Sizes sizes = sizesOf(op);
  auto extra = [&](StringRef name) -> const HostTensor * {
    for (size_t i = 0; i < op.getExtras().size(); ++i)
      if (extraAt(op, i) == name)
        return &operands[3 + i];
    return nullptr;
  };
  const HostTensor *lengths = extra("lengths");
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    Reference reference{sizes,        direction,     cellOf<Op>.numGates, &operands[0], &operands[1],
                        &operands[2], extra("bias"), extra("peephole"),   op.getClip()};
    for (int64_t batch = 0; batch < sizes.batch; ++batch) {
      SmallVector<std::vector<double>> states;
      for (unsigned i = 0; i < numStates; ++i) {
        states.emplace_back(sizes.hidden, 0.0);
        if (const HostTensor *first = extra(i == 0 ? "initial_h" : "initial_c"))
          std::copy_n(first->data.begin() + (direction * sizes.batch + batch) * sizes.hidden, sizes.hidden,
                      states[i].begin());
      }
      for (int64_t i = 0; i < sizes.time; ++i) {
        int64_t time = isReverse(op, direction) ? sizes.time - 1 - i : i;
        if (lengths && double(time) >= lengths->data[batch])
          continue;
        step(reference, time, batch, states);
        std::copy(states[0].begin(), states[0].end(),
                  results[0].data.begin() +
                      ((time * sizes.directions + direction) * sizes.batch + batch) * sizes.hidden);
      }
      for (unsigned i = 0; i < numStates; ++i)
        std::copy(states[i].begin(), states[i].end(),
                  results[1 + i].data.begin() + (direction * sizes.batch + batch) * sizes.hidden);
    }
  }
}

//===- RnnOp -----------------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> RnnOp::inferTypes(Adaptor op, const Rejection &reject) {
  return inferRecurrent(op, reject, cellOf<RnnOp>, 1);
}

SmallVector<Value> RnnOp::decompose(OpBuilder &builder) {
  return buildLayer(builder, *this, 1, {1}, /*joinsBiases=*/true,
                    [&](const Parts &parts, int64_t direction, Value x, ValueRange before, ValueRange whole) {
                      Value sum = parts.add(x, parts.product(before[0], whole[0]));
                      return SmallVector<Value>{parts.activate(activationOf(*this, direction, 0), sum, getClip())};
                    });
}

void RnnOp::compute(HostOperands operands, HostResults results) {
  evaluateLayer(*this, operands, results, 1, [&](const Reference &cell, int64_t time, int64_t batch, auto &states) {
    std::vector<double> before = states[0];
    for (int64_t unit = 0; unit < cell.sizes.hidden; ++unit)
      states[0][unit] = cell.activate(activationOf(*this, cell.direction, 0),
                                      cell.ofInput(time, batch, 0, unit) + cell.ofState(before, 0, unit));
  });
}

//===- LstmOp ----------------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> LstmOp::inferTypes(Adaptor op, const Rejection &reject) {
  return inferRecurrent(op, reject, cellOf<LstmOp>, 2);
}

SmallVector<Value> LstmOp::decompose(OpBuilder &builder) {
  int64_t hidden = sizesOf(*this).hidden;
  bool hasPeephole = bool(extraOf(*this, "peephole"));
  return buildLayer(builder, *this, 2, {4}, /*joinsBiases=*/true,
                    [&](const Parts &parts, int64_t direction, Value x, ValueRange before, ValueRange whole) {
                      Value sums = parts.add(x, parts.product(before[0], whole[0])), cell = before[1];
                      enum Gate { input, output, forget, candidate };
                      auto gate = [&](Gate which, Value seen) {
                        Value sum = parts.slice(sums, 1, which * hidden, hidden);
                        if (hasPeephole && seen)
                          sum = parts.add(sum, parts.mul(seen, whole[1 + which]));
                        return parts.activate(activationOf(*this, direction, which == candidate ? 1 : 0), sum,
                                              getClip());
                      };
                      Value in = gate(input, cell), kept = getInputForget() ? parts.oneMinus(in) : gate(forget, cell);
                      Value next = parts.add(parts.mul(kept, cell), parts.mul(in, gate(candidate, {})));
                      // ONNX clips what every activation gets, the cell's too.
                      Value shown = parts.activate(activationOf(*this, direction, 2), next, getClip());
                      return SmallVector<Value>{parts.mul(gate(output, next), shown), next};
                    });
}

void LstmOp::compute(HostOperands operands, HostResults results) {
  evaluateLayer(*this, operands, results, 2, [&](const Reference &cell, int64_t time, int64_t batch, auto &states) {
    std::vector<double> before = states[0], memory = states[1];
    for (int64_t unit = 0; unit < cell.sizes.hidden; ++unit) {
      auto gate = [&](int64_t which, double seen, size_t activation) {
        double sum = cell.ofInput(time, batch, which, unit) + cell.ofState(before, which, unit);
        if (which < 3)
          sum += seen * cell.peepholeOf(which, unit);
        return cell.activate(activationOf(*this, cell.direction, activation), sum);
      };
      double in = gate(0, memory[unit], 0), kept = getInputForget() ? 1 - in : gate(2, memory[unit], 0);
      double next = kept * memory[unit] + in * gate(3, 0, 1);
      states[1][unit] = next;
      states[0][unit] = gate(1, next, 0) * cell.activate(activationOf(*this, cell.direction, 2), next);
    }
  });
}

//===- GruOp -----------------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> GruOp::inferTypes(Adaptor op, const Rejection &reject) {
  return inferRecurrent(op, reject, cellOf<GruOp>, 1);
}

SmallVector<Value> GruOp::decompose(OpBuilder &builder) {
  int64_t hidden = sizesOf(*this).hidden;
  // One product of the state where all gates see it as it is.
  const int64_t all[] = {3}, apart[] = {2, 1};
  bool isLinear = getLinearBeforeReset(), hasOwnBias = isLinear && extraOf(*this, "bias");
  return buildLayer(builder, *this, 1, isLinear ? ArrayRef(all) : ArrayRef(apart), /*joinsBiases=*/!hasOwnBias,
                    [&](const Parts &parts, int64_t direction, Value x, ValueRange before, ValueRange whole) {
                      Value state = before[0], ofState = parts.product(state, whole[0]), own;
                      if (hasOwnBias)
                        ofState = parts.add(ofState, whole[1]);
                      StringRef ofGates = activationOf(*this, direction, 0);
                      auto gate = [&](int64_t which) {
                        int64_t first = which * hidden;
                        Value sum = parts.add(parts.slice(x, 1, first, hidden), parts.slice(ofState, 1, first, hidden));
                        return parts.activate(ofGates, sum, getClip());
                      };
                      Value update = gate(0), reset = gate(1);
                      if (isLinear)
                        own = parts.mul(reset, parts.slice(ofState, 1, 2 * hidden, hidden));
                      else
                        own = parts.product(parts.mul(reset, state), whole[1]);
                      Value candidate =
                          parts.activate(activationOf(*this, direction, 1),
                                         parts.add(parts.slice(x, 1, 2 * hidden, hidden), own), getClip());
                      return SmallVector<Value>{parts.add(candidate, parts.mul(update, parts.sub(state, candidate)))};
                    });
}

void GruOp::compute(HostOperands operands, HostResults results) {
  evaluateLayer(*this, operands, results, 1, [&](const Reference &cell, int64_t time, int64_t batch, auto &states) {
    std::vector<double> before = states[0], weighed = states[0];
    SmallVector<double> update, reset;
    for (int64_t unit = 0; unit < cell.sizes.hidden; ++unit) {
      for (auto [gate, into] : {std::pair(0, &update), std::pair(1, &reset)})
        into->push_back(cell.activate(activationOf(*this, cell.direction, 0),
                                      cell.ofInput(time, batch, gate, unit) + cell.ofState(before, gate, unit)));
      weighed[unit] = reset[unit] * before[unit];
    }
    for (int64_t unit = 0; unit < cell.sizes.hidden; ++unit) {
      double own =
          getLinearBeforeReset() ? reset[unit] * cell.ofState(before, 2, unit) : cell.ofState(weighed, 2, unit);
      double candidate =
          cell.activate(activationOf(*this, cell.direction, 1), cell.ofInput(time, batch, 2, unit) + own);
      states[0][unit] = (1 - update[unit]) * candidate + update[unit] * before[unit];
    }
  });
}

} // namespace dg::ir

#define DG_OPS "ir/ops/product/RecurrentOps.cpp.inc"
#define DG_ADD_OPS addRecurrentOps
#include "ir/ops/Family.inc"
