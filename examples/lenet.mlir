// The convolution net of the MNIST examples: two convolutions, two linear layers.
//   dgc lenet.mlir --batch 64 --mesh data=2 -o lenet.dgx
module attributes {dg.optimizer = "sgd:lr=0.01,momentum=0.5"} {
  dg.graph @loss(%x: tensor<?x1x28x28xf32>, %y: tensor<?xi32>) {
    %cw1 = dg.parameter "conv1.weight" tensor<10x1x5x5xf32> uniform 0.2
    %cb1 = dg.parameter "conv1.bias" tensor<10xf32> uniform 0.2
    %cw2 = dg.parameter "conv2.weight" tensor<20x10x5x5xf32> uniform 0.06324555
    %cb2 = dg.parameter "conv2.bias" tensor<20xf32> uniform 0.06324555
    %w1 = dg.parameter "fc1.weight" tensor<50x320xf32> uniform 0.05590169
    %b1 = dg.parameter "fc1.bias" tensor<50xf32> uniform 0.05590169
    %w2 = dg.parameter "fc2.weight" tensor<10x50xf32> uniform 0.14142135
    %b2 = dg.parameter "fc2.bias" tensor<10xf32> uniform 0.14142135
    %conv1 = dg.conv2d %x, %cw1, %cb1
    %pool1 = dg.max_pool2d %conv1 {kernel = [2, 2]}
    %h1 = dg.relu %pool1
    %conv2 = dg.conv2d %h1, %cw2, %cb2
    %pool2 = dg.max_pool2d %conv2 {kernel = [2, 2]}
    %h2 = dg.relu %pool2
    %flat = dg.reshape %h2 {shape = [0, -1]}
    %fc1 = dg.linear %flat, %w1, %b1
    %h3 = dg.relu %fc1
    %fc2 = dg.linear %h3, %w2, %b2
    %logp = dg.log_softmax %fc2
    %loss = dg.nll %logp, %y
    dg.return %loss
  }
}
