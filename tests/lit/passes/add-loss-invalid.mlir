// Proves that --dg-add-loss refuses losses that do not exist or do not fit, and says what would.
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-add-loss=loss=hinge 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-add-loss=loss=cross_entropy 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 '--dg-add-loss=loss=cross_entropy:smoothing=1' 2>&1 | FileCheck %s --check-prefix=FLAG
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 '--dg-add-loss=loss=cross_entropy:ignore_index=0.5' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 '--dg-add-loss=loss=mse:delta=1' 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 '--dg-add-loss=loss=cross_entropy:ignore_index=1,ignore_index=2' 2>&1 | FileCheck %s --check-prefix=TWICE

// FLAG: cannot have the loss 'cross_entropy:smoothing=1': found 'smoothing=1', expected ignore_index=NUMBER, label_smoothing=NUMBER
// NUMBER: cannot have the loss 'cross_entropy:ignore_index=0.5': found 'ignore_index=0.5', expected ignore_index=NUMBER, label_smoothing=NUMBER
// TWICE: found 'ignore_index=2' as well, expected ignore_index=NUMBER, label_smoothing=NUMBER
// ALONE: cannot have the loss 'mse:delta=1': found 'delta=1', expected mse alone
// UNKNOWN: cannot have the loss 'hinge', expected one of: {{.*}}cross_entropy{{.*}}mse
// TAKEN: has an input 'y' already, which --loss would add for the targets
dg.graph @loss(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) {
  %p = dg.add %x, %y
  dg.return %p
}

// -----

// TAKEN: 'dg.cross_entropy' op
dg.graph @loss(%x: tensor<f32>) {
  %p = dg.relu %x
  dg.return %p
}

// -----

// TAKEN: has no results, expected a prediction first
dg.graph @loss(%x: tensor<f32>) {
  dg.return
}
