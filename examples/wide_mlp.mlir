// A wide multi-layer perceptron 784-1024-1024-10 for images of ten classes.
//   dgc wide_mlp.mlir --batch 256 -o wide_mlp.dgx
module attributes {dg.optimizer = "adam:lr=0.001"} {
  dg.graph @loss(%x: tensor<?x784xf32>, %y: tensor<?xi32>) {
    %w1 = dg.parameter "fc1.weight" tensor<1024x784xf32> uniform 0.03571428
    %b1 = dg.parameter "fc1.bias" tensor<1024xf32> uniform 0.03571428
    %w2 = dg.parameter "fc2.weight" tensor<1024x1024xf32> uniform 0.03125
    %b2 = dg.parameter "fc2.bias" tensor<1024xf32> uniform 0.03125
    %w3 = dg.parameter "fc3.weight" tensor<10x1024xf32> uniform 0.03125
    %b3 = dg.parameter "fc3.bias" tensor<10xf32> uniform 0.03125
    %fc1 = dg.linear %x, %w1, %b1
    %h1 = dg.relu %fc1
    %fc2 = dg.linear %h1, %w2, %b2
    %h2 = dg.relu %fc2
    %logits = dg.linear %h2, %w3, %b3
    %loss = dg.cross_entropy %logits, %y
    dg.return %loss
  }
}
