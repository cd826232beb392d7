// SPDX-License-Identifier: Apache-2.0
// Convolutions of any windows: groups, dilation, uneven padding, one to three dimensions. Taps are walked directly,
// with vectors along a row of the output: nothing is laid out first, which suits the few channels of a group.
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/StridedAccess.h"
#include "codegen/emit/WindowLoops.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/product/ConvolutionOps.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using Values = KernelBuilder::Values;

/// Sizes and loops of a convolution [n, c, …] by [o, c / groups, …].
struct Conv {
  int64_t images, channels, outputs, groups; ///< channels and outputs of one group
  WindowLoops loops;

  template <typename Op>
  Conv(KernelBuilder &k, Op op, ArrayRef<int64_t> input, ArrayRef<int64_t> weight, ArrayRef<int64_t> output)
      : images(input[0]), channels(weight[1]), outputs(weight[0] / int64_t(op.getGroups())), groups(op.getGroups()),
        loops(k, windowsOf(op, weight.drop_front(2)), input.drop_front(2), output.drop_front(2)) {}

  template <typename Op> static ir::Windows windowsOf(Op op, ArrayRef<int64_t> kernel) {
    SmallVector<int64_t> strides(op.getStrides());
    if (strides.empty())
      strides.assign(kernel.size(), 1);
    return ir::Windows(kernel, strides, op.getPadding(), op.getDilation());
  }
  int64_t taps() const { return loops.windows.numTaps(); }
  double flopsOfOutputRow() const { return 2.0 * double(channels) * double(taps()) * double(loops.output[2]); }
};

/// Outputs of a group that are computed together, so that what is read serves all of them.
int64_t blockOf(int64_t outputs) {
  for (int64_t size : {4, 3, 2})
    if (outputs % size == 0)
      return size;
  return 1;
}

LogicalResult emitConv(KernelBuilder &k, ir::ConvOp convolution) {
  if (convolution.getBias())
    return convolution.emitOpError() << "has a bias; it must be decomposed first";
  Conv conv(k, convolution, shapeOf(convolution.getInput()), shapeOf(convolution.getWeight()),
            shapeOf(convolution.getResult()));
  WindowLoops &loops = conv.loops;
  int64_t block = blockOf(conv.outputs), blocks = conv.groups * conv.outputs / block, rows = loops.outputRows();
  int64_t rowsPerTile = std::max<int64_t>(1, int64_t(2e6 / (conv.flopsOfOutputRow() * double(block))));
  loopWholeRowsOfTile(k, conv.images * blocks * rows, rowsPerTile, [&](Value position) {
    Value place = k.mod(position, rows), unit = k.div(position, rows);
    Value depth = k.div(place, loops.output[1]), row = k.mod(place, loops.output[1]);
    Value image = k.div(unit, blocks), output = k.mul(k.mod(unit, blocks), block);
    Value group = k.div(output, conv.outputs);
    Value source = k.mul(k.add(k.mul(image, conv.groups), group), conv.channels * loops.inputPlaces());
    auto weightAt = [&](int64_t o, Value channel, Value tap) {
      return k.add(k.mul(k.add(k.mul(k.add(output, o), conv.channels), channel), conv.taps()), tap);
    };
    auto target = [&](int64_t o, Value column) {
      Value channel = k.add(k.add(k.mul(image, conv.groups * conv.outputs), output), o);
      return k.add(k.add(k.mul(channel, loops.outputPlaces()), k.mul(place, loops.output[2])), column);
    };
    auto sums = [&](Value zero, llvm::function_ref<Values(Value, Value, ValueRange)> ofChannel) {
      return k.loop(k.index(0), k.index(conv.channels), 1, Values(block, zero), [&](Value channel, ValueRange v) {
        return ofChannel(channel, k.add(source, k.mul(channel, loops.inputPlaces())), v);
      });
    };
    loops.forEachColumn(
        [&](Value column, Lanes lanes) {
          Values all = sums(k.splat(0.0, lanes.width), [&](Value channel, Value plane, ValueRange carried) {
            return loops.forEachTapOfColumns(depth, row, column, carried, [&](Value tap, Value at, ValueRange v) {
              Value seen = loadStrided(k, k.buffer(0), k.add(plane, at), lanes, loops.windows.strides[2]);
              Values next;
              for (int64_t o = 0; o < block; ++o)
                next.push_back(k.fma(seen, k.loadSplat(k.buffer(1), weightAt(o, channel, tap), lanes), v[o]));
              return next;
            });
          });
          for (int64_t o = 0; o < block; ++o)
            k.store(all[o], k.buffer(2), target(o, column), lanes);
        },
        [&](Value column) {
          Values all = sums(k.number(0), [&](Value channel, Value plane, ValueRange carried) {
            return loops.forEachTap(depth, row, column, carried, [&](Value tap, Value at, ValueRange v) {
              Value seen = k.loadScalar(k.buffer(0), k.add(plane, at));
              Values next;
              for (int64_t o = 0; o < block; ++o)
                next.push_back(k.fma(seen, k.loadScalar(k.buffer(1), weightAt(o, channel, tap)), v[o]));
              return next;
            });
          });
          for (int64_t o = 0; o < block; ++o)
            k.storeScalar(all[o], k.buffer(2), target(o, column));
        });
  });
  return success();
}

/// A tap of the kernel, with the windows that have it inside.
struct Tap {
  Value z, y, x;
  WindowLoops::Range depths, rows, columns;

  Tap(KernelBuilder &k, WindowLoops &loops, Value number)
      : z(k.div(number, loops.windows.kernel[1] * loops.windows.kernel[2])),
        y(k.mod(k.div(number, loops.windows.kernel[2]), loops.windows.kernel[1])),
        x(k.mod(number, loops.windows.kernel[2])), depths(loops.windowsInside(0, z)), rows(loops.windowsInside(1, y)),
        columns(loops.windowsInside(2, x)) {}

  /// Where the first column of a row of windows lies in an image of the output, and where its tap reads in the input's.
  Value outputAt(KernelBuilder &k, WindowLoops &loops, Value depth, Value row) const {
    return k.add(k.mul(k.add(k.mul(depth, loops.output[1]), row), loops.output[2]), columns.from);
  }
  Value inputAt(KernelBuilder &k, WindowLoops &loops, Value depth, Value row) const {
    Value line = k.add(k.mul(loops.position(0, depth, z), loops.input[1]), loops.position(1, row, y));
    return k.add(k.mul(line, loops.input[2]), loops.position(2, columns.from, x));
  }
};

void emitConvInputGrad(KernelBuilder &k, ir::ConvInputGradOp convolution) {
  Conv conv(k, convolution, shapeOf(convolution.getResult()), shapeOf(convolution.getWeight()),
            shapeOf(convolution.getGrad()));
  WindowLoops &loops = conv.loops;
  int64_t planes = conv.images * conv.groups * conv.channels, stride = loops.windows.strides[2];
  double flops = 2.0 * double(conv.outputs) * double(conv.taps()) * double(loops.outputPlaces());
  loopWholeRowsOfTile(k, planes, std::max<int64_t>(1, int64_t(2e6 / flops)), [&](Value plane) {
    Value channel = k.mod(plane, conv.channels), unit = k.div(plane, conv.channels);
    Value group = k.mod(unit, conv.groups), image = k.div(unit, conv.groups);
    Value target = k.mul(plane, loops.inputPlaces());
    k.loopVectors(loops.inputPlaces(), [&](Value at, Lanes lanes) {
      k.store(k.splat(0.0, lanes.width), k.buffer(2), k.add(target, at), lanes);
    });
    k.loop(0, conv.outputs, 1, [&](Value o) {
      Value output = k.add(k.mul(group, conv.outputs), o);
      Value source = k.mul(k.add(k.mul(image, conv.groups * conv.outputs), output), loops.outputPlaces());
      Value weights = k.mul(k.add(k.mul(output, conv.channels), channel), conv.taps());
      k.loop(0, conv.taps(), 1, [&](Value number) {
        Tap tap(k, loops, number);
        Value weight = k.loadScalar(k.buffer(1), k.add(weights, number));
        k.loop(tap.depths.from, tap.depths.to, 1, [&](Value depth) {
          k.loop(tap.rows.from, tap.rows.to, 1, [&](Value row) {
            Value from = k.add(source, tap.outputAt(k, loops, depth, row)),
                  to = k.add(target, tap.inputAt(k, loops, depth, row));
            auto add = [&](Value at, Lanes lanes) {
              Value place = k.add(to, k.mul(at, stride)), grad = k.load(k.buffer(0), k.add(from, at), lanes);
              Value sum = k.fma(grad, k.splat(weight, lanes.width), k.load(k.buffer(2), place, lanes));
              k.store(sum, k.buffer(2), place, lanes);
            };
            // Elements that are not side by side are added one by one.
            loops.forEachIn(tap.columns, stride == 1 ? k.lanes : 1, add);
          });
        });
      });
    });
  });
}

void emitConvWeightGrad(KernelBuilder &k, ir::ConvWeightGradOp convolution) {
  Conv conv(k, convolution, shapeOf(convolution.getInput()), shapeOf(convolution.getResult()),
            shapeOf(convolution.getGrad()));
  WindowLoops &loops = conv.loops;
  int64_t units = conv.groups * conv.outputs * conv.channels, stride = loops.windows.strides[2];
  double flops = 2.0 * double(conv.images) * double(conv.taps()) * double(loops.outputPlaces());
  Value zero = k.create<arith::ConstantOp>(k.getFloatAttr(k.getF64Type(), 0));
  loopWholeRowsOfTile(k, units, std::max<int64_t>(1, int64_t(2e6 / flops)), [&](Value unit) {
    Value channel = k.mod(unit, conv.channels), output = k.div(unit, conv.channels);
    Value group = k.div(output, conv.outputs);
    k.loop(0, conv.taps(), 1, [&](Value number) {
      Tap tap(k, loops, number);
      // Rows are added up in double, so that long sums keep their digits.
      Value sum = k.loop(k.index(0), k.index(conv.images), 1, zero, [&](Value image, ValueRange ofImages) {
        Value grad = k.mul(k.add(k.mul(image, conv.groups * conv.outputs), output), loops.outputPlaces());
        Value plane = k.add(k.mul(k.add(k.mul(image, conv.groups), group), conv.channels), channel);
        Value input = k.mul(plane, loops.inputPlaces());
        return k.loop(tap.depths.from, tap.depths.to, 1, ofImages, [&](Value depth, ValueRange ofDepths) {
          return k.loop(tap.rows.from, tap.rows.to, 1, ofDepths, [&](Value row, ValueRange v) -> Values {
            Value from = k.add(input, tap.inputAt(k, loops, depth, row)),
                  to = k.add(grad, tap.outputAt(k, loops, depth, row));
            Value dot = loops.sumOf(tap.columns, [&](Value at, Lanes lanes) {
              Value seen = loadStrided(k, k.buffer(1), k.add(from, k.mul(at, stride)), lanes, stride);
              return k.fmul(k.load(k.buffer(0), k.add(to, at), lanes), seen);
            });
            return {k.create<arith::AddFOp>(v[0], k.toDouble(dot))};
          });
        });
      })[0];
      k.storeScalar(k.fromDouble(sum), k.buffer(2), k.add(k.mul(unit, conv.taps()), number));
    });
  });
}
} // namespace

void addWindowConvKernels(KernelTable &table) {
  table.add(emitConv);
  table.add(emitConvInputGrad);
  table.add(emitConvWeightGrad);
}

} // namespace dg::codegen
