// SPDX-License-Identifier: Apache-2.0
// Einstein's sum: reading the equation, evaluating it by its definition, and taking it apart into transpositions, sums
// and one matrix product for each further operand.
#include "ir/ops/product/EinsumOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

#include <map>

using namespace mlir;

namespace dg::ir {

namespace {

/// A dimension of an operand by its letter; the dimensions of `...` are numbered from the last: -1, -2, ….
using Label = int;
using Labels = SmallVector<Label>;

struct Equation {
  SmallVector<Labels> operands;
  Labels result;
  std::map<Label, int64_t> sizes;
};

/// Reads one term. Fails where it is no sequence of letters with at most one `...`.
std::optional<Labels> readTerm(StringRef text, int64_t numFurther) {
  Labels labels;
  bool hasFurther = false;
  while (!text.empty()) {
    if (text.consume_front("...")) {
      if (hasFurther)
        return std::nullopt;
      hasFurther = true;
      for (int64_t dim = numFurther; dim > 0; --dim)
        labels.push_back(Label(-dim));
      continue;
    }
    if (!llvm::isAlpha(text.front()))
      return std::nullopt;
    labels.push_back(text.front());
    text = text.drop_front();
  }
  return labels;
}

/// Reads the equation for operands of these shapes; `problem` says what is wrong.
std::optional<Equation> readEquation(StringRef text, ArrayRef<ArrayRef<int64_t>> shapes, std::string &problem) {
  std::string compact;
  for (char c : text)
    if (c != ' ')
      compact += c;
  auto [inputs, output] = StringRef(compact).split("->");
  bool isExplicit = StringRef(compact).contains("->");
  SmallVector<StringRef> terms;
  inputs.split(terms, ',');
  if (terms.size() != shapes.size()) {
    problem = "as many terms before -> as operands (" + std::to_string(shapes.size()) + ")";
    return std::nullopt;
  }
  Equation equation;
  int64_t mostFurther = 0;
  for (auto [term, shape] : llvm::zip_equal(terms, shapes)) {
    int64_t letters = llvm::count_if(term, llvm::isAlpha), further = 0;
    if (term.contains("..."))
      further = int64_t(shape.size()) - letters;
    mostFurther = std::max(mostFurther, further);
    std::optional<Labels> labels = further < 0 ? std::nullopt : readTerm(term, further);
    if (!labels || labels->size() != shape.size()) {
      problem = "a letter for each of the " + std::to_string(shape.size()) + " dimensions of '" + term.str() +
                "', or one ... for some of them";
      return std::nullopt;
    }
    for (auto [label, size] : llvm::zip_equal(*labels, shape)) {
      int64_t first = shape[size_t(llvm::find(*labels, label) - labels->begin())];
      if (first != size) {
        problem = "one size for '" + std::string(1, char(label)) + "' in '" + term.str() + "', found " +
                  std::to_string(first) + " and " + std::to_string(size);
        return std::nullopt;
      }
      int64_t &known = equation.sizes.try_emplace(label, size).first->second;
      if (known == 1)
        known = size;
      if (known != size && size != 1) {
        problem = "one size for '" + (label > 0 ? std::string(1, char(label)) : std::string("...")) + "', found " +
                  std::to_string(known) + " and " + std::to_string(size);
        return std::nullopt;
      }
    }
    equation.operands.push_back(std::move(*labels));
  }
  if (isExplicit) {
    std::optional<Labels> labels = readTerm(output, mostFurther);
    if (!labels || llvm::any_of(*labels, [&](Label label) {
          return !equation.sizes.count(label) || llvm::count(*labels, label) > 1;
        })) {
      problem = "after -> letters of the operands, each once, found '" + output.str() + "'";
      return std::nullopt;
    }
    equation.result = *labels;
    return equation;
  }
  for (int64_t dim = mostFurther; dim > 0; --dim)
    equation.result.push_back(Label(-dim));
  for (auto [label, size] : equation.sizes) {
    int64_t times = 0;
    for (const Labels &labels : equation.operands)
      times += llvm::count(labels, label);
    if (label > 0 && times == 1)
      equation.result.push_back(label);
  }
  return equation;
}

std::optional<Equation> equationOf(StringRef text, ValueRange inputs, std::string &problem) {
  SmallVector<ArrayRef<int64_t>> shapes;
  for (Value input : inputs)
    shapes.push_back(tensorOf(input).getShape());
  return readEquation(text, shapes, problem);
}

/// A value whose dimensions have labels, on the way to the result.
struct Term {
  Value value;
  Labels labels;
};

class Decomposition {
public:
  Decomposition(OpBuilder &builder, Location loc, const Equation &equation)
      : builder(builder), loc(loc), equation(equation) {}

  Value run(ValueRange inputs) {
    SmallVector<Term> terms;
    for (auto [input, labels] : llvm::zip_equal(inputs, equation.operands))
      terms.push_back(withoutRepeated(diagonal({input, labels})));
    Term product = terms.front();
    for (size_t next = 1; next < terms.size(); ++next) {
      llvm::SmallDenseSet<Label> needed(equation.result.begin(), equation.result.end());
      for (const Term &later : ArrayRef(terms).drop_front(next + 1))
        needed.insert(later.labels.begin(), later.labels.end());
      product = multiply(product, terms[next], needed);
    }
    product = sumOut(product, [&](Label label) { return llvm::is_contained(equation.result, label); });
    // A label that every operand has with size 1 was dropped from none; one that some operand repeats is in another.
    return transposeTo(product, equation.result).value;
  }

private:
  /// The diagonals of dimensions with equal letters: both last and joined, every (n+1)-th element of their n·n.
  Term diagonal(Term term) {
    for (size_t at = 0; at < term.labels.size(); ++at) {
      Label label = term.labels[at];
      const Label *again = std::find(term.labels.begin() + at + 1, term.labels.end(), label);
      if (again == term.labels.end())
        continue;
      int64_t rank = int64_t(term.labels.size()), second = again - term.labels.begin(),
              size = tensorOf(term.value).getDimSize(unsigned(at)); // 1 where another operand repeats it
      SmallVector<int64_t> order, shape, starts(size_t(rank - 1), 0), sizes(size_t(rank - 1), -1),
          steps(size_t(rank - 1), 1);
      Labels rest;
      for (int64_t dim = 0; dim < rank; ++dim)
        if (dim != int64_t(at) && dim != second) {
          order.push_back(dim);
          rest.push_back(term.labels[size_t(dim)]);
          shape.push_back(tensorOf(term.value).getDimSize(unsigned(dim)));
        }
      order.append({int64_t(at), second});
      rest.push_back(label);
      shape.push_back(size * size);
      sizes.back() = size;
      steps.back() = size + 1;
      Value turned = create<TransposeOp>(builder, loc, term.value, order);
      Value joined = buildReshape(builder, loc, turned, shape);
      for (size_t dim = 0; dim + 1 < shape.size(); ++dim)
        sizes[dim] = shape[dim];
      term = {create<SliceOp>(builder, loc, joined, starts, sizes, builder.getDenseI64ArrayAttr(steps)), rest};
      at = size_t(-1); // a letter may stand three times
    }
    return term;
  }

  /// Dimensions of size 1 that stand for a larger one vanish: the product repeats them.
  Term withoutRepeated(Term term) {
    SmallVector<int64_t> shape;
    Labels labels;
    for (auto [label, size] : llvm::zip_equal(term.labels, tensorOf(term.value).getShape()))
      if (size == equation.sizes.at(label)) {
        shape.push_back(size);
        labels.push_back(label);
      }
    return {buildReshape(builder, loc, term.value, shape), labels};
  }

  template <typename Keep> Term sumOut(Term term, Keep keeps) {
    SmallVector<int64_t> dims;
    Labels labels;
    for (auto [dim, label] : llvm::enumerate(term.labels))
      if (keeps(label))
        labels.push_back(label);
      else
        dims.push_back(int64_t(dim));
    if (dims.empty())
      return term;
    return {create<ReduceSumOp>(builder, loc, term.value, dims, /*keep=*/false), labels};
  }

  Term transposeTo(Term term, ArrayRef<Label> labels) {
    SmallVector<int64_t> permutation;
    for (Label label : labels)
      permutation.push_back(llvm::find(term.labels, label) - term.labels.begin());
    if (llvm::is_sorted(permutation))
      return term;
    return {create<TransposeOp>(builder, loc, term.value, permutation), Labels(labels)};
  }

  int64_t count(ArrayRef<Label> labels) {
    int64_t elements = 1;
    for (Label label : labels)
      elements *= equation.sizes.at(label);
    return elements;
  }

  Term multiply(Term a, Term b, const llvm::SmallDenseSet<Label> &needed) {
    auto isIn = [](const Term &term) { return [&](Label label) { return llvm::is_contained(term.labels, label); }; };
    a = sumOut(a, [&](Label label) { return needed.contains(label) || isIn(b)(label); });
    b = sumOut(b, [&](Label label) { return needed.contains(label) || isIn(a)(label); });
    Labels batch, left, right, contracted;
    for (Label label : a.labels)
      (!isIn(b)(label) ? left : needed.contains(label) ? batch : contracted).push_back(label);
    for (Label label : b.labels)
      if (!isIn(a)(label))
        right.push_back(label);
    auto joined = [](std::initializer_list<ArrayRef<Label>> parts) {
      Labels all;
      for (ArrayRef<Label> part : parts)
        all.append(part.begin(), part.end());
      return all;
    };
    Value lhs = buildReshape(builder, loc, transposeTo(a, joined({batch, left, contracted})).value,
                             {count(batch), count(left), count(contracted)});
    Value rhs = buildReshape(builder, loc, transposeTo(b, joined({batch, contracted, right})).value,
                             {count(batch), count(contracted), count(right)});
    Value product = create<MatmulOp>(builder, loc, lhs, rhs, /*transpose_lhs=*/false, /*transpose_rhs=*/false);
    Labels labels = joined({batch, left, right});
    SmallVector<int64_t> shape;
    for (Label label : labels)
      shape.push_back(equation.sizes.at(label));
    return {buildReshape(builder, loc, product, shape), labels};
  }

  OpBuilder &builder;
  Location loc;
  const Equation &equation;
};

} // namespace

FailureOr<Type> EinsumOp::inferType(Adaptor op, const Rejection &reject) {
  if (op.getInputs().empty())
    return reject("has no operand, expected one for each term of its equation");
  auto first = tensorOf(op.getInputs()[0]);
  for (Value input : op.getInputs())
    if (tensorOf(input).getElementType() != first.getElementType() || !tensorOf(input).hasStaticShape())
      return reject("has operands ", first, " and ", input.getType(),
                    ", expected equal element types and dimensions that are all bound");
  if (isBool(first.getElementType()))
    return reject("has operands of ", first, ", expected floats or integers (dg.cast makes them)");
  std::string problem;
  std::optional<Equation> equation = equationOf(op.getEquation(), op.getInputs(), problem);
  if (!equation)
    return reject("has the equation ", op.getEquationAttr(), ", expected ", problem);
  SmallVector<int64_t> shape;
  for (Label label : equation->result)
    shape.push_back(equation->sizes.at(label));
  return RankedTensorType::get(shape, first.getElementType());
}

SmallVector<Value> EinsumOp::decompose(OpBuilder &builder) {
  std::string problem;
  Equation equation = *equationOf(getEquation(), getInputs(), problem);
  return {Decomposition(builder, getLoc(), equation).run(getInputs())};
}

void EinsumOp::compute(HostOperands operands, HostResults results) {
  std::string problem;
  Equation equation = *equationOf(getEquation(), getInputs(), problem);
  Labels all;
  SmallVector<int64_t> sizes;
  for (auto [label, size] : equation.sizes) {
    all.push_back(label);
    sizes.push_back(size);
  }
  auto stridesFor = [&](const Labels &labels, ArrayRef<int64_t> shape) {
    SmallVector<int64_t> own = stridesOf(shape), strides(all.size(), 0);
    for (auto [dim, label] : llvm::enumerate(labels))
      if (shape[dim] != 1)
        strides[llvm::find(all, label) - all.begin()] += own[dim];
    return strides;
  };
  SmallVector<SmallVector<int64_t>> strides;
  for (auto [labels, operand] : llvm::zip_equal(equation.operands, operands))
    strides.push_back(stridesFor(labels, operand.shape));
  strides.push_back(stridesFor(equation.result, results[0].shape));
  forEachIndex(sizes, strides, [&](ArrayRef<int64_t> at) {
    double product = 1;
    for (auto [operand, offset] : llvm::zip(operands, at))
      product *= operand.data[offset];
    results[0].data[at.back()] += product;
  });
}

} // namespace dg::ir

#define DG_OPS "ir/ops/product/EinsumOps.cpp.inc"
#define DG_ADD_OPS addEinsumOps
#include "ir/ops/Family.inc"
