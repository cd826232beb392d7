// An op that adds samples up, or compares them with each other, is refused where steps are padded or batches cut; elsewhere it is noted.
// RUN: dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-decompose --dg-check-samples=padded=2 --verify-diagnostics
// RUN: dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-decompose --dg-check-samples | FileCheck %s
// RUN: not dg-opt %s --split-input-file --dg-deduce-types=batch=4 --dg-decompose --dg-check-samples=pieces=3 2>&1 | FileCheck %s --check-prefix=CUT

// CHECK: module attributes {dg.mixes_samples = "dg.reduce_sum at {{.*}}check-samples-invalid.mlir:{{[0-9]+}}:{{[0-9]+}}"}
// CUT: mixes the samples of a batch, but a batch is cut into 3 micro-batches, of which each would see only its own: give --microbatches 1

dg.graph @infer(%x: tensor<?x6xf32>) {
  // expected-error @+1 {{mixes the samples of a batch, but 2 rows of each step are padding, which would count: give a --batch that the data ranks divide}}
  %mean = dg.reduce_mean %x {dims = array<i64: 0>}
  %centred = dg.sub %x, %mean
  dg.return %centred {names = ["y"]}
}

// -----

dg.graph @infer(%x: tensor<?x6xf32>) {
  // expected-error @+1 {{mixes the samples of a batch}}
  %s = dg.softmax %x {axis = 0}
  dg.return %s {names = ["y"]}
}

// -----

dg.graph @infer(%x: tensor<?x6xf32>) {
  %t = dg.transpose %x {permutation = array<i64: 1, 0>}
  // expected-error @+1 {{mixes the samples of a batch}}
  %similar = dg.matmul %x, %t
  dg.return %similar {names = ["y"]}
}

// -----

dg.graph @eval(%x: tensor<?x6xf32>, %sample_weight: tensor<?xf32>) {
  %squares = dg.mul %x, %x
  %sums = dg.reduce_sum %squares {dims = array<i64: 1>}
  // expected-error @+1 {{mixes the samples of a batch}}
  %scale = dg.reduce_max %sums {dims = array<i64: 0>}
  %scaled = dg.div %sums, %scale
  %weighed = dg.mul %scaled, %sample_weight
  %loss = dg.reduce_sum %weighed {dims = array<i64: 0>}
  dg.return %loss {names = ["loss"]}
}
