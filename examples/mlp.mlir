// A multi-layer perceptron 10-20-1 for regression.
//   dgc mlp.mlir --batch 64 -o mlp.dgx && dgrun mlp.dgx --data x=randn:1000x10 --data y=randn:1000x1 --epochs 10
module attributes {dg.optimizer = "sgd:lr=0.01"} {
  dg.graph @loss(%x: tensor<?x10xf32>, %y: tensor<?x1xf32>) {
    %w1 = dg.parameter "fc1.weight" tensor<20x10xf32> uniform 0.31622776
    %b1 = dg.parameter "fc1.bias" tensor<20xf32> uniform 0.31622776
    %w2 = dg.parameter "fc2.weight" tensor<1x20xf32> uniform 0.22360679
    %b2 = dg.parameter "fc2.bias" tensor<1xf32> uniform 0.22360679
    %fc1 = dg.linear %x, %w1, %b1
    %h = dg.relu %fc1
    %fc2 = dg.linear %h, %w2, %b2
    %loss = dg.mse %fc2, %y
    dg.return %loss
  }
}
