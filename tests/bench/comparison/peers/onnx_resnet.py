# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 as an ONNX model with random weights, and its inference by ONNX Runtime:

onnx_resnet.py write MODEL.onnx              the model, for batches of images of 224 by 224
onnx_resnet.py images IMAGES.npy COUNT       random images
onnx_resnet.py run MODEL.onnx THREADS RUNS   one image at a time; prints {"median_us": …} of the runs after the first few
"""
import json
import statistics
import sys
import time

import numpy

IMAGE, WARM_UP = 224, 5


class Network:
    """Nodes and weights as they are added; names are those of torchvision."""

    def __init__(self):
        self.nodes, self.weights = [], []
        self.random = numpy.random.default_rng(0)

    def weight(self, name, values):
        from onnx import numpy_helper
        self.weights.append(numpy_helper.from_array(values.astype(numpy.float32), name))
        return name

    def node(self, kind, inputs, output, **attributes):
        from onnx import helper
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def conv_norm(self, x, name, norm, channels, outputs, kernel, stride):
        deviation = (2 / (channels * kernel * kernel)) ** 0.5
        weight = self.weight(name + ".weight", self.random.normal(0, deviation, (outputs, channels, kernel, kernel)))
        pad = kernel // 2
        x = self.node("Conv", [x, weight], name, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        statistics_of = [self.weight(f"{norm}.{part}", self.random.uniform(low, high, outputs)) for part, low, high in
                         (("weight", 0.3, 0.7), ("bias", -0.1, 0.1), ("running_mean", -0.1, 0.1), ("running_var", 0.5, 1.5))]
        return self.node("BatchNormalization", [x, *statistics_of], norm, epsilon=1e-5)

    def relu(self, x, name):
        return self.node("Relu", [x], name)

    def block(self, x, name, channels, width, stride, is_first):
        h = self.relu(self.conv_norm(x, name + ".conv1", name + ".bn1", channels, width, 1, 1), name + ".relu1")
        h = self.relu(self.conv_norm(h, name + ".conv2", name + ".bn2", width, width, 3, stride), name + ".relu2")
        h = self.conv_norm(h, name + ".conv3", name + ".bn3", width, 4 * width, 1, 1)
        if is_first:
            x = self.conv_norm(x, name + ".downsample.0", name + ".downsample.1", channels, 4 * width, 1, stride)
        return self.relu(self.node("Add", [h, x], name + ".sum"), name)


def write(path):
    import onnx
    from onnx import TensorProto, helper
    net = Network()
    h = net.relu(net.conv_norm("x", "conv1", "bn1", 3, 64, 7, 2), "relu")
    h = net.node("MaxPool", [h], "maxpool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for number in range(count):
            width = 64 << stage
            stride = 2 if stage > 0 and number == 0 else 1
            h = net.block(h, f"layer{stage + 1}.{number}", channels, width, stride, number == 0)
            channels = 4 * width
    h = net.node("Flatten", [net.node("GlobalAveragePool", [h], "avgpool")], "flat")
    weight = net.weight("fc.weight", net.random.normal(0, 0.02, (1000, channels)))
    net.node("Gemm", [h, weight, net.weight("fc.bias", numpy.zeros(1000))], "logits", transB=1)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, IMAGE, IMAGE])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1000])]
    graph = helper.make_graph(net.nodes, "resnet50", inputs, outputs, net.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def write_images(path, count):
    numpy.save(path, numpy.random.default_rng(1).standard_normal((count, 3, IMAGE, IMAGE), dtype=numpy.float32))


def run(path, threads, runs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x = numpy.random.default_rng(1).standard_normal((1, 3, IMAGE, IMAGE)).astype(numpy.float32)
    times = []
    for _ in range(WARM_UP + runs):
        start = time.perf_counter()
        session.run(None, {"x": x})
        times.append((time.perf_counter() - start) * 1e6)
    print(json.dumps({"median_us": statistics.median(times[WARM_UP:])}))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    elif sys.argv[1] == "images":
        write_images(sys.argv[2], int(sys.argv[3]))
    else:
        run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
