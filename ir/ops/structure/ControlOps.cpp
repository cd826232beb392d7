// SPDX-License-Identifier: Apache-2.0
// The scan: types, evaluation and gradients. dg.if and dg.while are in BranchOps.cpp; how all are cut over a
// mesh is in ControlSharding.cpp.
#include "ir/ops/structure/ControlBodies.h"
#include "ir/ops/structure/ControlSharding.h"
#include "ir/ops/structure/ControlText.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

static RankedTensorType sliceType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(tensor.getShape().drop_front(), tensor.getElementType());
}

static RankedTensorType stackedType(Type type, int64_t trips) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape{trips};
  llvm::append_range(shape, tensor.getShape());
  return RankedTensorType::get(shape, tensor.getElementType());
}

//===- ScanOp: text and types ------------------------------------------------------------------------------------===//

static constexpr OperandGroup scanGroups[] = {
    {"carry", "num_carried"}, {"over", "num_scanned", /*isSliced=*/true}, {"with", ""}};
static constexpr ControlForm scanForm = {/*hasCondition=*/false, /*numBodies=*/1, scanGroups};

ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &state) { return parseControl(parser, state, scanForm); }
void ScanOp::print(OpAsmPrinter &printer) { printControl(printer, *this, scanForm); }

LogicalResult ScanOp::verify() {
  Block &block = getBody().front();
  if (block.empty() || !isa<ReturnOp>(block.back()))
    return emitOpError(
        "has a body that does not end with dg.return, expected the values of the next trip and those that are "
        "stacked");
  int64_t carried = getNumCarried(), scanned = getNumScanned(), sums = getNumSums(),
          returned = block.back().getNumOperands();
  if (carried < 0 || scanned < 1 || sums < 0 || carried + scanned > int64_t(getNumOperands()) ||
      block.getNumArguments() != getNumOperands() || returned < carried + sums || returned != int64_t(getNumResults()))
    return emitOpError() << "carries " << carried << ", scans " << scanned << " and sums " << sums << " values with "
                         << getNumOperands() << " operands, " << block.getNumArguments() << " arguments of its body, "
                         << returned << " values that it returns and " << getNumResults()
                         << " results, expected at least one scanned value, an argument for each operand, and a result "
                            "for each returned value";
  return success();
}

LogicalResult ScanOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                       DictionaryAttr, OpaqueProperties properties, RegionRange regions,
                                       SmallVectorImpl<Type> &inferred) {
  Rejection reject{location, getOperationName()};
  Region &body = *regions[0];
  if (body.empty() || body.front().empty() || !isa<ReturnOp>(body.front().back()) ||
      body.getNumArguments() != operands.size())
    return success(); // the verifier says so
  auto returned = body.front().back().getOperands();
  if (deferInference(context, operands, returned.size(), inferred))
    return success();
  const Properties &sizes = *properties.as<Properties *>();
  size_t carried = size_t(sizes.num_carried.getInt()), scanned = size_t(sizes.num_scanned.getInt()),
         sums = sizes.num_sums ? size_t(sizes.num_sums.getInt()) : 0;
  if (scanned < 1 || carried + scanned > operands.size() || carried + sums > returned.size())
    return success(); // the verifier says so
  SmallVector<Type> arguments(operands.getTypes());
  for (size_t i = carried; i < carried + scanned; ++i) {
    auto type = tensorOf(operands[i]), first = tensorOf(operands[carried]);
    if (type.getRank() < 1 || type.isDynamicDim(0) || type.getDimSize(0) != first.getDimSize(0))
      return reject("scans ", first, " and ", type, ", expected the same known number of slices in dimension 0");
    arguments[i] = sliceType(type);
  }
  if (failed(deduceBody(body, arguments)))
    return failure();
  int64_t trips = tensorOf(operands[carried]).getDimSize(0);
  for (auto [index, value] : llvm::enumerate(returned)) {
    bool isStacked = index >= carried && index + sums < returned.size();
    if (index < carried && value.getType() != arguments[index])
      return reject("carries ", arguments[index], " but its body returns ", value.getType(), ", expected equal types");
    inferred.push_back(isStacked ? stackedType(value.getType(), trips) : value.getType());
  }
  return success();
}

//===- ScanOp: evaluation and gradients --------------------------------------------------------------------------===//

OpCost ScanOp::getCost() { return bodyCost(getBody(), double(getTrips())); }

LogicalResult ScanOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  size_t carried = getNumCarried(), scanned = getNumScanned(), firstSum = carried + getNumYielded();
  int64_t trips = operands[carried].shape[0];
  SmallVector<HostTensor> arguments(operands);
  for (int64_t trip = 0; trip < trips; ++trip) {
    int64_t at = getReverse() ? trips - 1 - trip : trip;
    for (size_t i = carried; i < carried + scanned; ++i) {
      HostTensor &slice = arguments[i];
      slice.shape.assign(operands[i].shape.begin() + 1, operands[i].shape.end());
      auto first = operands[i].data.begin() + at * slice.numElements();
      slice.data.assign(first, first + slice.numElements());
    }
    auto returned = evaluateBody(getBody(), arguments, scalars);
    if (failed(returned))
      return failure();
    for (size_t i = 0; i < returned->size(); ++i) {
      const HostTensor &value = (*returned)[i];
      if (i >= firstSum)
        for (size_t j = 0; j < value.data.size(); ++j)
          results[i].data[j] += value.data[j];
      else if (i >= carried)
        std::copy(value.data.begin(), value.data.end(), results[i].data.begin() + at * value.numElements());
      else
        arguments[i] = value;
    }
  }
  for (size_t i = 0; i < carried; ++i)
    results[i].data = arguments[i].data;
  return success();
}

FailureOr<ScanOp> buildScan(OpBuilder &builder, Location loc, ValueRange carried, ValueRange scanned, ValueRange whole,
                            unsigned numSums, bool isReverse,
                            llvm::function_ref<Gradients(OpBuilder &, ValueRange)> build) {
  SmallVector<Value> operands(carried);
  llvm::append_range(operands, scanned);
  llvm::append_range(operands, whole);
  Region body;
  Block &block = body.emplaceBlock();
  for (auto [index, operand] : llvm::enumerate(operands)) {
    bool isSlice = index >= carried.size() && index < carried.size() + scanned.size();
    block.addArgument(isSlice ? Type(sliceType(operand.getType())) : operand.getType(), loc);
  }
  OpBuilder inner(builder.getContext());
  inner.setInsertionPointToStart(&block);
  Gradients returned = build(inner, block.getArguments());
  if (failed(returned))
    return failure();
  create<ReturnOp>(inner, loc, *returned, ArrayAttr());
  int64_t trips = tensorOf(scanned[0]).getDimSize(0);
  SmallVector<Type> types;
  for (auto [index, value] : llvm::enumerate(*returned)) {
    bool isStacked = index >= carried.size() && index + numSums < returned->size();
    types.push_back(isStacked ? Type(stackedType(value.getType(), trips)) : value.getType());
  }
  OperationState state(loc, ScanOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttribute("num_carried", builder.getI64IntegerAttr(int64_t(carried.size())));
  state.addAttribute("num_scanned", builder.getI64IntegerAttr(int64_t(scanned.size())));
  state.addAttribute("num_sums", builder.getI64IntegerAttr(numSums));
  if (isReverse)
    state.addAttribute("reverse", builder.getUnitAttr());
  state.addRegion()->takeBody(body);
  return cast<ScanOp>(builder.create(state));
}

/// Whether a value is kept rather than computed again: where it takes many flops for each of its elements.
static bool isDear(Operation &op) {
  auto costed = dyn_cast<CostOp>(op);
  if (!costed || op.getNumResults() != 1)
    return false;
  constexpr double fewFlops = 32;
  return costed.getCost().flops > fewFlops * double(tensorOf(op.getResult(0)).getNumElements());
}

/// The forward scan is given a tape: what it carries into each trip, and what is dear to compute, stacked. The backward
/// scan goes the other way, computes the rest of each trip's body again from the tape, carries the gradients of what
/// was carried, and sums those of what the body saw whole.
Gradients ScanOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Location loc = getLoc();
  size_t numCarried = getNumCarried(), numScanned = getNumScanned(), numYielded = getNumYielded();
  auto inputs = getInputs();
  ValueRange carried = inputs.take_front(numCarried), scanned = inputs.slice(numCarried, numScanned),
             whole = inputs.drop_front(numCarried + numScanned);

  // The tape is part of the forward pass and takes this op's place.
  SmallVector<Value> tape;
  SmallVector<size_t> dear; // numbers of the body's ops
  for (auto [number, op] : llvm::enumerate(getBody().front().without_terminator()))
    if (numCarried > 0 && isDear(op))
      dear.push_back(number);
  const size_t numTaped = numCarried + dear.size();
  if (numCarried > 0) {
    OpBuilder forward(getOperation());
    auto taped = buildScan(forward, loc, carried, scanned, whole, getNumSums(), getReverse(),
                           [&](OpBuilder &inner, ValueRange arguments) -> Gradients {
                             SmallVector<Operation *> ops;
                             SmallVector<Value> returned = cloneBody(inner, getBody(), arguments, ops);
                             SmallVector<Value> taped(arguments.take_front(numCarried));
                             for (size_t number : dear)
                               taped.push_back(ops[number]->getResult(0));
                             returned.insert(returned.begin() + numCarried + numYielded, taped.begin(), taped.end());
                             return returned;
                           });
    if (failed(taped))
      return failure();
    ::dg::ir::setPlace(*taped, ::dg::ir::getPlace(*this));
    SmallVector<Value> results((*taped)->getResults());
    auto firstTaped = results.begin() + numCarried + numYielded;
    tape.assign(firstTaped, firstTaped + numTaped);
    results.erase(firstTaped, firstTaped + numTaped);
    (*this)->replaceAllUsesWith(results);
  }

  auto zerosOr = [&](Value grad, Type type) {
    return grad ? grad : buildFilled(builder, loc, cast<RankedTensorType>(type), 0);
  };
  // Gradients of real values only; the others have none.
  SmallVector<Value> firstGrads, scannedBack(tape), wholeBack(whole);
  SmallVector<size_t> realInputs, realYielded;
  for (auto [i, input] : llvm::enumerate(inputs))
    if (isReal(input.getType())) {
      realInputs.push_back(i);
      if (i < numCarried)
        firstGrads.push_back(zerosOr(grads[i], input.getType()));
    }
  size_t numWholeGrads = llvm::count_if(realInputs, [&](size_t i) { return i >= numCarried + numScanned; });
  llvm::append_range(scannedBack, scanned);
  for (size_t i = 0; i < numYielded; ++i)
    if (grads[numCarried + i]) {
      realYielded.push_back(i);
      scannedBack.push_back(grads[numCarried + i]);
    }
  SmallVector<Value> sumGrads;
  for (size_t i = 0; i < getNumSums(); ++i)
    if (Value grad = grads[numCarried + numYielded + i]) {
      sumGrads.push_back(grad);
      wholeBack.push_back(grad);
    } else {
      sumGrads.push_back({});
    }

  auto backward =
      buildScan(builder, loc, firstGrads, scannedBack, wholeBack, unsigned(numWholeGrads), !getReverse(),
                [&](OpBuilder &inner, ValueRange arguments) -> Gradients {
                  size_t firstTape = firstGrads.size(), firstScanned = firstTape + numTaped,
                         firstYielded = firstScanned + numScanned, firstWhole = firstYielded + realYielded.size(),
                         firstSum = firstWhole + whole.size();
                  SmallVector<Value> own(arguments.slice(firstTape, numCarried));
                  llvm::append_range(own, arguments.slice(firstScanned, numScanned));
                  llvm::append_range(own, arguments.slice(firstWhole, whole.size()));
                  SmallVector<Operation *> ops;
                  SmallVector<Value> returned = cloneBody(inner, getBody(), own, ops), returnedGrads(returned.size());
                  for (size_t index = 0; index < firstGrads.size(); ++index)
                    returnedGrads[realInputs[index]] = arguments[index];
                  for (auto [index, i] : llvm::enumerate(realYielded))
                    returnedGrads[numCarried + i] = arguments[firstYielded + index];
                  for (size_t i = 0, next = firstSum; i < sumGrads.size(); ++i)
                    if (sumGrads[i])
                      returnedGrads[numCarried + numYielded + i] = arguments[next++];
                  Gradients ownGrads = differentiateBody(inner, own, ops, returned, returnedGrads);
                  if (failed(ownGrads))
                    return failure();
                  SmallVector<Value> results;
                  for (size_t i : realInputs) {
                    Value grad = (*ownGrads)[i];
                    results.push_back(grad ? grad : buildFilled(inner, loc, tensorOf(own[i]), 0));
                  }
                  // From the back: what a taped value was computed of is not needed any more.
                  for (auto [index, number] : llvm::enumerate(dear)) {
                    Value known = arguments[firstTape + numCarried + index];
                    Value again = ops[number]->getResult(0);
                    again.replaceAllUsesWith(known);
                    std::replace(results.begin(), results.end(), again, known);
                  }
                  for (Operation *op : llvm::reverse(ops))
                    if (isOpTriviallyDead(op) &&
                        llvm::none_of(op->getResults(), [&](Value v) { return llvm::is_contained(results, v); }))
                      op->erase();
                  return results;
                });
  if (failed(backward))
    return failure();
  SmallVector<Value> result(inputs.size());
  for (auto [index, i] : llvm::enumerate(realInputs))
    result[i] = (*backward)->getResult(unsigned(index));
  return result;
}

static BodyLayout layoutOf(ScanOp op) {
  BodyLayout layout;
  layout.bodies = {&op.getBody()};
  layout.numCarried = unsigned(op.getNumCarried());
  layout.numSliced = unsigned(op.getNumScanned());
  layout.numStacked = op.getNumYielded();
  layout.numSums = unsigned(op.getNumSums());
  return layout;
}

ShardingRule ScanOp::getShardingRule() { return bodyShardingRule(*this, layoutOf(*this)); }

void ScanOp::localize(TypeRange) { localizeBodies(*this, layoutOf(*this)); }

} // namespace dg::ir

#define DG_OPS "ir/ops/structure/ControlOps.cpp.inc"
#define DG_ADD_OPS addControlOps
#include "ir/ops/Family.inc"
