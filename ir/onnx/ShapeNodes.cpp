// SPDX-License-Identifier: Apache-2.0
// Operators that arrange elements: reshaping, joining, cutting, repeating; and constants.
#include "ir/dialect/Elements.h"
#include "ir/onnx/NodeTable.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace dg::ir::onnx_import {

//===- Constants -------------------------------------------------------------------------------------------------===//

static Results constant(Node &node) {
  if (auto *value = node.attribute("value")) {
    Value made = node.tensorLiteral(value->t());
    return {made};
  }
  auto literalOf = [&](ArrayRef<double> values, Type element, bool isScalar) -> Results {
    HostTensor tensor;
    if (!isScalar)
      tensor.shape = {int64_t(values.size())};
    tensor.data.assign(values.begin(), values.end());
    return {node.literal(elementsOf(tensor, RankedTensorType::get(tensor.shape, element)))};
  };
  Type f32 = node.builder().getF32Type(), i64 = node.builder().getI64Type();
  if (node.hasAttribute("value_float"))
    return literalOf({node.number("value_float", 0)}, f32, true);
  if (node.hasAttribute("value_floats"))
    return literalOf(node.numbers("value_floats"), f32, false);
  if (node.hasAttribute("value_int")) {
    auto type = RankedTensorType::get({}, i64);
    return {node.literal(DenseElementsAttr::get(type, ArrayRef<int64_t>{node.integer("value_int", 0)}))};
  }
  if (node.hasAttribute("value_ints"))
    return {node.integersLiteral(node.integers("value_ints"))};
  node.reject() << "has no value of numbers, expected value, value_float, value_floats, value_int or value_ints";
  return {};
}

static Results constantOfShape(Node &node) {
  auto shape = node.neededIntegers(0, "shape");
  if (!shape)
    return {};
  auto *value = node.attribute("value");
  Value number = value ? node.tensorLiteral(value->t()) : node.scalar(0, node.builder().getF32Type());
  std::optional<DenseElementsAttr> elements = number ? constantOf(number) : std::nullopt;
  if (!elements)
    return {};
  if (elements->getNumElements() != 1) {
    node.reject() << "has a value of " << elements->getNumElements() << " elements, expected one";
    return {};
  }
  int64_t count = 1;
  for (int64_t size : *shape)
    if (size < 0 || llvm::MulOverflow(count, size, count) || count > int64_t(1) << 31) {
      node.reject() << "has a shape with " << size << ", expected at most 2^31 elements";
      return {};
    }
  auto type = RankedTensorType::get(*shape, elements->getElementType());
  return {node.literal(elements->reshape(RankedTensorType::get({1}, elements->getElementType())).resizeSplat(type))};
}

static Results shapeOf(Node &node) {
  RankedTensorType type = typeOf(node.input(0));
  if (!type)
    return {};
  // From version 15 on a part of it, with bounds that are held within the shape.
  int64_t rank = type.getRank(), start = node.integer("start", 0), end = node.integer("end", rank);
  auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  start = bound(start), end = std::max(start, bound(end));
  return {node.integersLiteral(type.getShape().slice(size_t(start), size_t(end - start)))};
}

static Results sizeOf(Node &node) {
  RankedTensorType type = typeOf(node.input(0));
  if (!type)
    return {};
  return {node.literal(DenseElementsAttr::get(RankedTensorType::get({}, node.builder().getI64Type()),
                                              ArrayRef<int64_t>{type.getNumElements()}))};
}

//===- Shapes ----------------------------------------------------------------------------------------------------===//

static Results reshape(Node &node) {
  Value x = node.input(0);
  std::optional<SmallVector<int64_t>> shape;
  if (node.version() < 5)
    shape = node.integers("shape");
  else
    shape = node.neededIntegers(1, "shape");
  RankedTensorType type = typeOf(x);
  if (!type || !shape)
    return {};
  bool zeroIsZero = node.integer("allowzero", 0) != 0;
  int64_t known = 1, unknown = -1;
  for (auto [index, size] : llvm::enumerate(*shape)) {
    if (size == 0 && !zeroIsZero) {
      if (int64_t(index) >= type.getRank()) {
        node.reject() << "keeps dimension " << index << " (0 in its shape) of an input of type " << type;
        return {};
      }
      size = type.getDimSize(unsigned(index));
    }
    if (size == -1 && unknown < 0)
      unknown = int64_t(index);
    else if (size < 0 || llvm::MulOverflow(known, size, known)) {
      node.reject() << "has a shape with " << size << ", expected sizes and at most one -1";
      return {};
    }
  }
  if (unknown >= 0)
    (*shape)[size_t(unknown)] = known == 0 ? 0 : type.getNumElements() / known;
  int64_t count = 1;
  for (int64_t size : *shape)
    if (llvm::MulOverflow(count, size, count))
      count = -1;
  if (count != type.getNumElements()) {
    node.reject() << "has an input of " << type.getNumElements() << " elements and a shape of another number";
    return {};
  }
  return {node.reshape(x, *shape)};
}

static Results flatten(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  int64_t axis = node.integer("axis", 1), rank = type.getRank();
  if (axis < -rank || axis > rank) {
    node.reject() << "has axis " << axis << " for an input of " << rank << " dimensions";
    return {};
  }
  axis = axis < 0 ? axis + rank : axis;
  auto product = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  };
  return {node.reshape(
      x, {product(type.getShape().take_front(size_t(axis))), product(type.getShape().drop_front(size_t(axis)))})};
}

/// The axes of Squeeze and Unsqueeze: an attribute before version 13, an input since.
static std::optional<SmallVector<int64_t>> axesOf(Node &node, int64_t rank) {
  SmallVector<int64_t> axes = node.integers("axes");
  if (node.version() >= 13 && node.hasInput(1)) {
    auto given = node.neededIntegers(1, "axes");
    if (!given)
      return std::nullopt;
    axes = *given;
  }
  return node.dimensions(axes, rank);
}

static Results squeeze(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  auto dims = type ? axesOf(node, type.getRank()) : std::nullopt;
  if (!dims)
    return {};
  bool isAll = dims->empty() && !node.hasInput(1) && !node.hasAttribute("axes");
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool isNamed = llvm::is_contained(*dims, int64_t(dim));
    if (isNamed && size != 1) {
      node.reject() << "takes away dimension " << dim << " of size " << size << ", expected 1";
      return {};
    }
    if (!isNamed && !(isAll && size == 1))
      shape.push_back(size);
  }
  return {node.reshape(x, shape)};
}

static Results unsqueeze(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  size_t count = node.integers("axes").size();
  if (node.version() >= 13) {
    auto axes = node.neededIntegers(1, "axes");
    if (!axes)
      return {};
    count = axes->size();
  }
  auto dims = axesOf(node, type.getRank() + int64_t(count));
  if (!dims)
    return {};
  SmallVector<int64_t> shape;
  auto next = type.getShape().begin();
  for (int64_t dim = 0; dim < type.getRank() + int64_t(count); ++dim)
    shape.push_back(llvm::is_contained(*dims, dim) ? 1 : *next++);
  return {node.reshape(x, shape)};
}

static Results transpose(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  SmallVector<int64_t> permutation = node.integers("perm");
  if (permutation.empty())
    for (int64_t dim = type.getRank(); dim > 0; --dim)
      permutation.push_back(dim - 1);
  if (type.getRank() < 2)
    return {x};
  return {node.op("transpose", {x}, {node.attr("permutation", permutation)})};
}

static Results expand(Node &node) {
  Value x = node.input(0);
  auto shape = node.neededIntegers(1, "shape");
  RankedTensorType type = typeOf(x);
  if (!type || !shape)
    return {};
  // Broadcast both ways: a size of 1 in the shape keeps the input's.
  int64_t rank = std::max<int64_t>(type.getRank(), int64_t(shape->size()));
  SmallVector<int64_t> result(size_t(rank), 1);
  auto merge = [&](ArrayRef<int64_t> sizes) {
    for (size_t i = 0; i < sizes.size(); ++i)
      if (int64_t &size = result[result.size() - sizes.size() + i]; size == 1)
        size = sizes[i];
  };
  merge(type.getShape());
  merge(*shape);
  if (type.getShape() == ArrayRef<int64_t>(result))
    return {x};
  return {node.op("expand", {x}, {node.attr("shape", result)})};
}

static Results concat(Node &node) {
  Results values = node.inputs();
  RankedTensorType type = typeOf(values.empty() ? Value() : values[0]);
  if (!type) {
    if (values.empty())
      node.reject() << "has no inputs, expected at least one";
    return {};
  }
  auto dim = node.dimension(node.integer("axis", node.version() < 4 ? 1 : 0), type.getRank());
  if (!dim)
    return {};
  if (values.size() == 1)
    return values;
  return {node.op("concat", values, {node.attr("dim", *dim)})};
}

/// dg.slice with one entry for each dimension.
static Value sliceAll(Node &node, Value x, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  return node.op("slice", {x}, {node.attr("starts", starts), node.attr("sizes", sizes), node.attr("steps", steps)});
}

static Results slice(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  std::optional<SmallVector<int64_t>> starts, ends, axes, steps;
  if (node.version() < 10) {
    starts = node.integers("starts"), ends = node.integers("ends"), axes = node.integers("axes");
  } else {
    starts = node.neededIntegers(1, "starts"), ends = node.neededIntegers(2, "ends");
    axes = node.hasInput(3) ? node.neededIntegers(3, "axes") : SmallVector<int64_t>();
    steps = node.hasInput(4) ? node.neededIntegers(4, "steps") : SmallVector<int64_t>();
  }
  if (!starts || !ends || !axes || (node.version() >= 10 && !steps))
    return {};
  if (axes->empty())
    for (size_t dim = 0; dim < starts->size(); ++dim)
      axes->push_back(int64_t(dim));
  if (!steps || steps->empty())
    steps.emplace(starts->size(), 1);
  auto dims = node.dimensions(*axes, type.getRank());
  if (!dims)
    return {};
  if (starts->size() != ends->size() || starts->size() != dims->size() || starts->size() != steps->size()) {
    node.reject() << "has " << starts->size() << " starts, " << ends->size() << " ends, " << dims->size()
                  << " axes and " << steps->size() << " steps, expected as many of each";
    return {};
  }
  SmallVector<int64_t> from(size_t(type.getRank()), 0), sizes(type.getShape()), by(size_t(type.getRank()), 1);
  for (auto [dim, start, end, step] : llvm::zip(*dims, *starts, *ends, *steps)) {
    int64_t size = type.getDimSize(unsigned(dim));
    if (step == 0 || step == INT64_MIN) {
      node.reject() << "has step " << step << " along dimension " << dim << ", expected another than 0";
      return {};
    }
    // As numpy: counted from the end where negative, then held within the dimension.
    bool isBackward = step < 0;
    auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, isBackward ? -1 : 0, isBackward ? size - 1 : size);
    };
    int64_t first = place(start), last = place(end);
    if (isBackward && end < -size)
      last = -1;
    int64_t distance = isBackward ? first - last : last - first, stride = isBackward ? -step : step;
    int64_t count = distance > 0 ? (distance - 1) / stride + 1 : 0;
    from[size_t(dim)] = count == 0 ? 0 : first;
    sizes[size_t(dim)] = count;
    by[size_t(dim)] = count <= 1 ? 1 : step;
  }
  return {sliceAll(node, x, from, sizes, by)};
}

static Results split(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  auto dim = type ? node.dimension(node.integer("axis", 0), type.getRank()) : std::nullopt;
  if (!dim)
    return {};
  SmallVector<int64_t> parts = node.integers("split");
  if (node.version() >= 13 && node.hasInput(1)) {
    auto given = node.neededIntegers(1, "split");
    if (!given)
      return {};
    parts = *given;
  } else if (node.version() == 1 && node.hasInput(1)) {
    auto given = node.neededIntegers(1, "split");
    if (!given)
      return {};
    parts = *given;
  }
  int64_t size = type.getDimSize(unsigned(*dim)), count = int64_t(node.numOutputs());
  if (parts.empty() && count > 0) {
    int64_t each = (size + count - 1) / count;
    for (int64_t left = size, part = 0; part < count; ++part, left -= parts.back())
      parts.push_back(std::min(each, left));
  }
  if (int64_t(parts.size()) != count || llvm::any_of(parts, [&](int64_t part) { return part < 0 || part > size; }) ||
      std::accumulate(parts.begin(), parts.end(), int64_t(0)) != size) {
    node.reject() << "cuts a dimension of size " << size << " into " << parts.size() << " parts for " << count
                  << " outputs, expected parts that add up to it";
    return {};
  }
  Results results;
  SmallVector<int64_t> starts(size_t(type.getRank()), 0), sizes(type.getShape()), steps(size_t(type.getRank()), 1);
  for (int64_t part : parts) {
    sizes[size_t(*dim)] = part;
    results.push_back(sliceAll(node, x, starts, sizes, steps));
    starts[size_t(*dim)] += part;
  }
  return results;
}

static Results pad(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  std::optional<SmallVector<int64_t>> pads;
  if (node.version() < 2)
    pads = node.integers("paddings");
  else if (node.version() < 11)
    pads = node.integers("pads");
  else
    pads = node.neededIntegers(1, "pads");
  if (!pads)
    return {};
  size_t rank = size_t(type.getRank());
  SmallVector<int64_t> dims(rank);
  std::iota(dims.begin(), dims.end(), 0);
  if (node.version() >= 18 && node.hasInput(3)) {
    auto axes = node.neededIntegers(3, "axes");
    auto given = axes ? node.dimensions(*axes, type.getRank()) : std::nullopt;
    if (!given)
      return {};
    dims = *given;
  }
  if (pads->size() != 2 * dims.size()) {
    node.reject() << "has " << pads->size() << " pads, expected " << 2 * dims.size();
    return {};
  }
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  for (auto [index, dim] : llvm::enumerate(dims)) {
    low[size_t(dim)] = (*pads)[index];
    high[size_t(dim)] = (*pads)[index + dims.size()];
  }
  std::string mode = node.text("mode", "constant");
  SmallVector<Value> operands = {x};
  if (mode == "constant" && node.hasInput(2))
    operands.push_back(node.input(2));
  return {node.op("pad", operands,
                  {node.attr("low", low), node.attr("high", high), node.attr("mode", StringRef(mode)),
                   node.attr("value", node.number("value", 0))})};
}

static Results tile(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  if (node.version() < 6) {
    auto tiles = node.neededInteger(1, "tiles"), axis = node.neededInteger(2, "axis");
    auto dim = axis ? node.dimension(*axis, type.getRank()) : std::nullopt;
    if (!tiles || !dim)
      return {};
    SmallVector<int64_t> repeats(size_t(type.getRank()), 1);
    repeats[size_t(*dim)] = *tiles;
    return {node.op("tile", {x}, {node.attr("repeats", repeats)})};
  }
  auto repeats = node.neededIntegers(1, "repeats");
  if (!repeats)
    return {};
  return {node.op("tile", {x}, {node.attr("repeats", *repeats)})};
}

static Results depthToSpace(Node &node) {
  SmallVector<NamedAttribute> attributes = {node.attr("block", node.integer("blocksize", 0))};
  if (node.text("mode", "DCR") == "CRD")
    attributes.push_back(node.flag("channels_major"));
  return {node.op("depth_to_space", {node.input(0)}, attributes)};
}

static Results spaceToDepth(Node &node) {
  return {node.op("space_to_depth", {node.input(0)}, {node.attr("block", node.integer("blocksize", 0))})};
}

/// The triangle above or below a diagonal that the running model names: k is the column less the row.
static Value triangleAt(Node &node, Value x, Value k, bool isUpper) {
  if (!x || !k)
    return {};
  RankedTensorType type = tensorOf(x);
  if (type.getRank() < 2) {
    node.reject() << "has an input of type " << type << ", expected matrices";
    return {};
  }
  Type i64 = node.builder().getI64Type();
  int64_t numRows = type.getShape().drop_back().back(), numColumns = type.getShape().back();
  Value row = node.reshape(node.counting(numRows, i64), {numRows, 1});
  Value offset = node.op("sub", {node.counting(numColumns, i64), row});
  Value isKept = node.op("compare", {offset, node.cast(node.reshape(k, {}), i64)},
                         {node.attr("predicate", StringRef(isUpper ? "ge" : "le"))});
  return node.op("select", {isKept, x, node.scalarLike(0, x)});
}

static Results trilu(Node &node) {
  Value x = node.input(0);
  bool isUpper = node.integer("upper", 1) != 0;
  std::optional<DenseElementsAttr> diagonal = node.hasInput(1) ? node.constantInput(1) : std::nullopt;
  if (node.hasInput(1) && !diagonal)
    return {triangleAt(node, x, node.input(1), isUpper)};
  auto given = diagonal ? node.neededInteger(1, "diagonal") : std::optional<int64_t>(0);
  if (!given)
    return {};
  SmallVector<NamedAttribute> attributes = {node.attr("diagonal", *given)};
  if (isUpper)
    attributes.push_back(node.flag("upper"));
  return {node.op("trilu", {x}, attributes)};
}

static Results eyeLike(Node &node) {
  RankedTensorType type = typeOf(node.input(0));
  if (!type)
    return {};
  Type element = type.getElementType();
  if (node.hasAttribute("dtype"))
    element = elementTypeOf(node.context(), int32_t(node.integer("dtype", 1)));
  if (!element || type.getRank() != 2) {
    node.reject() << "has an input of type " << type << ", expected a matrix of numbers";
    return {};
  }
  constexpr int64_t mostElements = 1 << 24;
  if (type.getNumElements() > mostElements) {
    node.reject() << "has an input of type " << type << ", expected at most " << mostElements << " elements";
    return {};
  }
  HostTensor eye{type.getShape().vec(), {}};
  eye.data.resize(size_t(type.getNumElements()));
  int64_t diagonal = std::clamp(node.integer("k", 0), -mostElements, mostElements);
  for (int64_t row = 0; row < type.getDimSize(0) && !eye.data.empty(); ++row)
    if (int64_t column = row + diagonal; column >= 0 && column < type.getDimSize(1))
      eye.data[size_t(row * type.getDimSize(1) + column)] = 1;
  return {node.literal(elementsOf(eye, RankedTensorType::get(type.getShape(), element)))};
}

static Results range(Node &node) {
  RankedTensorType type = typeOf(node.input(0));
  auto start = node.neededNumber(0, "start"), limit = node.neededNumber(1, "limit"),
       delta = node.neededNumber(2, "delta");
  if (!type || !start || !limit || !delta)
    return {};
  double from = *start, to = *limit, by = *delta;
  double count = std::max(0.0, std::ceil((to - from) / by));
  if (!(count <= double(1 << 24))) {
    node.reject() << "goes from " << from << " to " << to << " by " << by << ", expected at most 2^24 numbers";
    return {};
  }
  HostTensor tensor{{int64_t(count)}, {}};
  for (int64_t i = 0; i < int64_t(count); ++i)
    tensor.data.push_back(from + double(i) * by);
  return {node.literal(elementsOf(tensor, RankedTensorType::get(tensor.shape, type.getElementType())))};
}

void addShapeNodes(NodeTable &table) {
  table["Constant"] = constant;
  table["ConstantOfShape"] = constantOfShape;
  table["Shape"] = shapeOf;
  table["Size"] = sizeOf;
  table["Identity"] = [](Node &node) -> Results { return {node.input(0)}; };
  table["Reshape"] = reshape;
  table["Flatten"] = flatten;
  table["Squeeze"] = squeeze;
  table["Unsqueeze"] = unsqueeze;
  table["Transpose"] = transpose;
  table["Expand"] = expand;
  table["Concat"] = concat;
  table["Slice"] = slice;
  table["Split"] = split;
  table["Pad"] = pad;
  table["Tile"] = tile;
  table["DepthToSpace"] = depthToSpace;
  table["SpaceToDepth"] = spaceToDepth;
  table["Trilu"] = trilu;
  table["EyeLike"] = eyeLike;
  table["Range"] = range;
}

} // namespace dg::ir::onnx_import
