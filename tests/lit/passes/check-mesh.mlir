// A mesh that divides the heads of every attention, or does not touch them, changes nothing.
// RUN: dg-opt %s > %t.model
// RUN: dg-opt %s --dg-check-mesh=mesh=data=3,tensor=2,pipe=5 | diff %t.model -
// RUN: dg-opt %s --dg-check-mesh=mesh=tensor=6 | diff %t.model -
// RUN: dg-opt %s --dg-check-mesh | diff %t.model -

dg.graph @forward(%x: tensor<2x5x12xf32>) {
  %a = dg.attention %x, %x, %x {heads = 6}
  dg.return %a
}
