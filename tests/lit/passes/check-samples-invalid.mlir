// An op that adds samples up, compares them or makes them meet is refused where steps are padded or batches cut; elsewhere that of a training is noted.
// RUN: dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-add-evaluation --dg-weigh-samples --dg-decompose --dg-check-samples=padded=2 --verify-diagnostics
// RUN: dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-add-evaluation --dg-weigh-samples --dg-decompose --dg-check-samples | FileCheck %s
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-add-evaluation --dg-weigh-samples --dg-decompose --dg-check-samples=pieces=3 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CUT

// CHECK-NOT: dg.mixes_samples
// CHECK-LABEL: dg.graph @infer(
dg.graph @infer(%x: tensor<?x6xf32>) {
  // expected-error @+1 {{mixes the samples of a batch, but 2 rows of each step are padding, which would count: give a --batch that the data ranks divide}}
  %mean = dg.reduce_mean %x {dims = array<i64: 0>}
  %centred = dg.sub %x, %mean
  dg.return %centred {names = ["y"]}
}

// -----

dg.graph @infer(%x: tensor<?x6xf32>) {
  %t = dg.transpose %x {permutation = array<i64: 1, 0>}
  // expected-error @+1 {{mixes the samples of a batch}}
  %similar = dg.matmul %x, %t
  dg.return %similar {names = ["y"]}
}

// -----

dg.graph @infer(%x: tensor<?x6xf32>) {
  %t = dg.transpose %x {permutation = array<i64: 1, 0>}
  // expected-error @+1 {{mixes the samples of a batch}}
  %y = dg.softmax %t {axis = 1}
  dg.return %y {names = ["y"]}
}

// -----

dg.graph @infer(%x: tensor<?x6xf32>) {
  %t = dg.transpose %x {permutation = array<i64: 1, 0>}
  // expected-error @+1 {{mixes the samples of a batch}}
  %y = dg.cumsum %t {axis = 1}
  dg.return %y {names = ["y"]}
}

// -----

dg.graph @infer(%x: tensor<?x6xf32>) {
  // expected-error @+1 {{mixes the samples of a batch}}
  %largest = dg.reduce_max %x {dims = array<i64: 0>}
  %y = dg.sub %x, %largest
  dg.return %y {names = ["y"]}
}

// -----

// CHECK: dg.mixes_samples = "dg.reduce_sum at {{.*}}check-samples-invalid.mlir{{.*}}:11:12"
// CHECK-LABEL: dg.graph @eval(
// CUT: mixes the samples of a batch, but a batch is cut into 3 micro-batches, of which each would see only its own: give --microbatches 1
dg.graph @loss(%x: tensor<?x6xf32>, %y: tensor<?xf32>) {
  %squares = dg.mul %x, %x
  %w = dg.parameter "w" tensor<6x1xf32> uniform 0.5
  %sums = dg.reduce_sum %squares {dims = array<i64: 1>}
  // expected-error @+1 {{mixes the samples of a batch}}
  %scale = dg.reduce_mean %sums {dims = array<i64: 0>}
  %scaled = dg.div %sums, %scale
  %p = dg.matmul %x, %w
  %q = dg.reshape %p {shape = array<i64: 4>}
  %sum = dg.add %scaled, %q
  %loss = dg.mse %sum, %y
  dg.return %loss
}
