// Recurrent layers have the types that ONNX gives them, print as text that parses to the same graph, and are made of one
// scan for each direction.
// RUN: dg-opt %s > %t.first
// RUN: dg-opt %t.first | diff %t.first -
// RUN: dg-opt %s --dg-deduce-types=batch=4 > %t.typed
// RUN: dg-opt %t.typed | diff %t.typed -
// RUN: FileCheck %s < %t.typed
// RUN: dg-opt %t.typed --dg-decompose | FileCheck %s --check-prefix=PARTS

// CHECK-LABEL: dg.graph @forward
dg.graph @forward(%x: tensor<7x?x3xf32>, %lengths: tensor<?xi32>) {
  %w = dg.parameter "w" tensor<1x5x3xf32> uniform 0.3
  %r = dg.parameter "r" tensor<1x5x5xf32> uniform 0.3
  %lw = dg.parameter "lw" tensor<2x20x3xf32> uniform 0.3
  %lr = dg.parameter "lr" tensor<2x20x5xf32> uniform 0.3
  %gw = dg.parameter "gw" tensor<1x15x3xf32> uniform 0.3
  %gr = dg.parameter "gr" tensor<1x15x5xf32> uniform 0.3
  %gb = dg.parameter "gb" tensor<1x30xf32> uniform 0.3
  // CHECK: dg.rnn {{.*}} -> (tensor<7x1x4x5xf32>, tensor<1x4x5xf32>)
  // PARTS: dg.scan carry
  %rnn, %rnn_last = dg.rnn %x, %w, %r, %lengths {extra = ["lengths"]}
  // CHECK: dg.lstm {{.*}} -> (tensor<7x2x4x5xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>)
  // PARTS: dg.scan carry
  // PARTS: dg.scan carry{{.*}}reverse
  %lstm, %lstm_last, %cell = dg.lstm %x, %lw, %lr {direction = "bidirectional"}
  // CHECK: dg.gru {{.*}} -> (tensor<7x1x4x5xf32>, tensor<1x4x5xf32>)
  // PARTS: dg.scan carry
  // PARTS-NOT: dg.scan
  %gru, %gru_last = dg.gru %x, %gw, %gr, %gb {extra = ["bias"], linear_before_reset}
  dg.return %rnn, %lstm, %gru
}
