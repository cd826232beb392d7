// A typed op whose types do not fit each other is rejected by the verifier, so that no pass can leave a wrong type
// behind.
// RUN: dg-opt %s -split-input-file -verify-diagnostics

dg.graph @forward(%x: tensor<4x3xf32>, %b: tensor<4xf32>) typed {
  // expected-error@+2 {{'dg.add' op has operands 'tensor<4x3xf32>' and 'tensor<4xf32>', expected equal sizes, or 1, counted from the last dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = dg.add %x, %b : (tensor<4x3xf32>, tensor<4xf32>) -> tensor<4x3xf32>
  dg.return %y : (tensor<4x3xf32>) -> ()
}

// -----

dg.graph @forward(%x: tensor<4x3xf32>) typed {
  // expected-error@+2 {{inferred type(s) 'tensor<4x3xf32>' are incompatible with return type(s) of operation 'tensor<3x4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = dg.relu %x : (tensor<4x3xf32>) -> tensor<3x4xf32>
  dg.return %y : (tensor<3x4xf32>) -> ()
}

// -----

dg.graph @forward() typed {
  // expected-error@+2 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<3xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %y = dg.constant {value = 1.0, type = tensor<2xf32>} : () -> tensor<3xf32>
  dg.return %y : (tensor<3xf32>) -> ()
}

// -----

dg.graph @forward(%x: tensor<2xf32>) typed {
  // expected-error@+1 {{result #0 must be tensor, or a value whose type is still to be deduced, but got 'tensor<*xf32>'}}
  %y = dg.all_reduce %x {axis = "data"} : (tensor<2xf32>) -> tensor<*xf32>
  dg.return %x : (tensor<2xf32>) -> ()
}

// -----

// The text names types for two operands where there is one.
dg.graph @forward(%x: tensor<2xf32>) typed {
  // expected-error@+1 {{1 operands present, but expected 2}}
  %y = dg.relu %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  dg.return %y : (tensor<2xf32>) -> ()
}

// -----

dg.graph @forward(%x: tensor<2xf32>) typed {
  // expected-note@+1 {{prior use here}}
  %y = dg.relu %x : (tensor<2xf32>) -> tensor<2xf32>
  // expected-error@+1 {{use of value '%y' expects different type than prior uses: 'tensor<3xf32>' vs 'tensor<2xf32>'}}
  %z = dg.relu %y : (tensor<3xf32>) -> tensor<3xf32>
  dg.return %z : (tensor<3xf32>) -> ()
}

// -----

dg.graph @forward(%x: tensor<2xf32>) typed {
  // expected-error@+1 {{'dg.all_gather' op requires attribute 'dim'}}
  %y = dg.all_gather %x {axis = "data"} : (tensor<2xf32>) -> tensor<4xf32>
  dg.return %y : (tensor<4xf32>) -> ()
}

// -----

dg.graph @forward() typed {
  // expected-error@+1 {{'dg.receive' op requires attribute 'channel'}}
  %y = dg.receive {peer_stage = 0} : () -> tensor<4xf32>
  dg.return %y : (tensor<4xf32>) -> ()
}
