// A cluster that is neither a preset nor a file is refused by its name.
// RUN: dg-opt %s --dg-set-mesh="tensor=2 pipe=2" --dg-slice-sends="cluster=nowhere.json" -verify-diagnostics

// expected-error@below {{nowhere.json}}
module {
  dg.graph @train(%x: tensor<4x6xf32>) typed {
    dg.return %x {names = ["x"]} : (tensor<4x6xf32>) -> ()
  }
}
