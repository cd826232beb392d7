// A mesh that divides the heads of every attention, or does not touch them, changes nothing.
// RUN: dg-opt %s --dg-set-mesh="data=3 tensor=2 pipe=5" > %t.model
// RUN: dg-opt %t.model --dg-check-mesh | diff %t.model -
// RUN: dg-opt %s --dg-set-mesh=tensor=6 --dg-check-mesh
// RUN: dg-opt %s --dg-check-mesh

dg.graph @forward(%x: tensor<2x5x12xf32>) {
  %a = dg.attention %x, %x, %x {heads = 6}
  dg.return %a
}
