// SPDX-License-Identifier: Apache-2.0
// Collapsing of dimensions and cutting into tiles.
#include "codegen/emit/LoopNest.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0; stride *= shape[i])
    strides[i] = stride;
  return strides;
}

SmallVector<int64_t> broadcastStrides(ArrayRef<int64_t> shape, ArrayRef<int64_t> loopShape) {
  SmallVector<int64_t> own = rowMajorStrides(shape), strides(loopShape.size(), 0);
  size_t missing = loopShape.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i)
    strides[missing + i] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

LoopNest LoopNest::collapse(ArrayRef<int64_t> sizes, ArrayRef<SmallVector<int64_t>> strides) {
  LoopNest nest;
  nest.strides.resize(strides.size());
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 1)
      continue;
    bool joins = !nest.sizes.empty();
    for (size_t t = 0; joins && t < strides.size(); ++t)
      joins = nest.strides[t].back() == strides[t][dim] * sizes[dim];
    if (joins)
      nest.sizes.back() *= sizes[dim];
    else
      nest.sizes.push_back(sizes[dim]);
    for (size_t t = 0; t < strides.size(); ++t) {
      if (joins)
        nest.strides[t].back() = strides[t][dim];
      else
        nest.strides[t].push_back(strides[t][dim]);
    }
  }
  if (nest.sizes.empty()) {
    nest.sizes.push_back(1);
    for (auto &tensor : nest.strides)
      tensor.push_back(1);
  }
  return nest;
}

int64_t LoopNest::rows() const {
  int64_t rows = 1;
  for (int64_t size : ArrayRef(sizes).drop_back())
    rows *= size;
  return rows;
}

Value offsetOf(KernelBuilder &kernel, Value position, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  Value offset = kernel.index(0);
  for (size_t dim = sizes.size(); dim-- > 0;) {
    Value at = dim == 0 ? position : kernel.mod(position, sizes[dim]);
    if (strides[dim] != 0)
      offset = kernel.add(offset, kernel.mul(at, strides[dim]));
    if (dim > 0)
      position = kernel.div(position, sizes[dim]);
  }
  return offset;
}

Value LoopNest::rowOffset(KernelBuilder &kernel, unsigned tensor, Value row) const {
  return offsetOf(kernel, row, ArrayRef(sizes).drop_back(), ArrayRef(strides[tensor]).drop_back());
}

int64_t alikeTiles(int64_t tiles) {
  constexpr int64_t step = 16;
  return tiles <= step ? int64_t(llvm::PowerOf2Ceil(uint64_t(tiles))) : llvm::alignTo(tiles, step);
}

void loopWholeRowsOfTile(KernelBuilder &kernel, int64_t rows, int64_t rowsPerTile,
                         llvm::function_ref<void(Value)> body) {
  if (rows == 0)
    return;
  int64_t tiles = alikeTiles(llvm::divideCeil(rows, std::clamp<int64_t>(rowsPerTile, 1, rows)));
  rowsPerTile = llvm::divideCeil(rows, tiles);
  tiles = llvm::divideCeil(rows, rowsPerTile);
  kernel.setTiles(tiles);
  if (tiles == 1)
    return kernel.loop(0, rows, 1, body);
  Value from = kernel.mul(kernel.tile(), rowsPerTile);
  Value to = kernel.add(from, rowsPerTile);
  kernel.loop(from, rows % rowsPerTile ? kernel.min(to, kernel.index(rows)) : to, 1, body);
}

void loopRowsOfTile(KernelBuilder &kernel, int64_t rows, int64_t columns, int64_t tileElements,
                    llvm::function_ref<void(Value, Value, Value)> body) {
  if (rows == 0 || columns == 0)
    return;
  // A row longer than one and a half tiles is cut itself, at full cache lines of 4-byte elements.
  int64_t columnsPerTile = columns;
  if (columns > tileElements + tileElements / 2)
    columnsPerTile = llvm::alignTo(llvm::divideCeil(columns, alikeTiles(llvm::divideCeil(columns, tileElements))), 16);
  int64_t columnTiles = llvm::divideCeil(columns, columnsPerTile);
  if (columnTiles == 1)
    return loopWholeRowsOfTile(kernel, rows, std::max<int64_t>(1, tileElements / columns),
                               [&](Value row) { body(row, kernel.index(0), kernel.index(columns)); });
  kernel.setTiles(rows * columnTiles);
  Value row = rows == 1 ? kernel.index(0) : kernel.div(kernel.tile(), columnTiles);
  Value from = kernel.mul(rows == 1 ? kernel.tile() : kernel.mod(kernel.tile(), columnTiles), columnsPerTile);
  Value to = kernel.add(from, columnsPerTile);
  body(row, from, columns % columnsPerTile ? kernel.min(to, kernel.index(columns)) : to);
}

void forEachElement(KernelBuilder &kernel, ArrayRef<int64_t> shape,
                    llvm::function_ref<void(Value place, ArrayRef<Value> index)> body) {
  int64_t columns = shape.empty() ? 1 : shape.back(), rows = 1;
  for (int64_t size : shape.empty() ? shape : shape.drop_back())
    rows *= size;
  loopRowsOfTile(kernel, rows, columns, elementsPerTile, [&](Value row, Value from, Value to) {
    SmallVector<Value> index(shape.size());
    Value rest = row;
    for (size_t dim = shape.empty() ? 0 : shape.size() - 1; dim-- > 0;) {
      index[dim] = dim == 0 ? rest : kernel.mod(rest, shape[dim]);
      rest = dim == 0 ? rest : kernel.div(rest, shape[dim]);
    }
    Value start = kernel.mul(row, columns);
    kernel.loop(from, to, 1, [&](Value column) {
      if (!shape.empty())
        index.back() = column;
      body(kernel.add(start, column), index);
    });
  });
}

Value placeOf(KernelBuilder &kernel, ArrayRef<Value> index, ArrayRef<int64_t> strides) {
  Value place = kernel.index(0);
  for (auto [at, stride] : llvm::zip_equal(index, strides))
    if (stride != 0)
      place = kernel.add(place, kernel.mul(at, stride));
  return place;
}

} // namespace dg::codegen
