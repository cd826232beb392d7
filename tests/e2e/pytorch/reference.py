# SPDX-License-Identifier: Apache-2.0
"""Trains one of the four example models in PyTorch, on the CPU, from given weights and data: the outside oracle of DG.

Weights are read from a safetensors file by the names of the model (other tensors in it, such as optimizer state, are
ignored). Batches are consecutive slices of x.npy and y.npy, never shuffled; the last, smaller batch of an epoch is
trained too, and then the data starts again. Written are the loss of every step and the gradients of step 0.

    python reference.py --model mlp --weights init.safetensors --x x.npy --y y.npy --batch 10 --steps 100 \
        --optimizer sgd:lr=0.01 --losses losses.json --gradients gradients.safetensors
"""
import argparse
import functools
import json
import sys

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

DTYPES = {"f32": torch.float32, "f64": torch.float64}


class UsageError(Exception):
    """Flags or files that do not fit together; printed in one line, exit code 2."""


# The models: a function from parameters (by name), input and target to the mean loss of the batch.


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def mlp(p, x, y):
    return F.mse_loss(linear(p, "fc2", F.relu(linear(p, "fc1", x))), y)


def wide_mlp(p, x, y):
    x = F.relu(linear(p, "fc1", x.flatten(1)))
    x = F.relu(linear(p, "fc2", x))
    return F.cross_entropy(linear(p, "fc3", x), y)


def lenet(p, x, y):
    x = x.reshape(-1, 1, 28, 28)
    x = F.relu(F.max_pool2d(F.conv2d(x, p["conv1.weight"], p["conv1.bias"]), 2))
    x = F.relu(F.max_pool2d(F.conv2d(x, p["conv2.weight"], p["conv2.bias"]), 2))
    x = F.relu(linear(p, "fc1", x.flatten(1)))
    return F.nll_loss(F.log_softmax(linear(p, "fc2", x), dim=1), y)


def layer_norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], eps=1e-5)


def attention(p, name, x, num_heads=6):
    batch, tokens, width = x.shape

    def heads(which):
        return linear(p, f"{name}.{which}", x).view(batch, tokens, num_heads, -1).transpose(1, 2)

    q, k, v = heads("q"), heads("k"), heads("v")
    scores = q @ k.transpose(-1, -2) * (width // num_heads) ** -0.5
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights = torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1)
    return linear(p, name + ".o", (weights @ v).transpose(1, 2).reshape(batch, tokens, width))


def gpt(p, x, y, num_heads=6):
    h = F.embedding(x, p["embed.weight"]) + p["pos.weight"][: x.shape[1]]
    for n in range(count_blocks(p)):
        block = f"blocks.{n}"
        h = h + attention(p, block + ".attn", layer_norm(p, block + ".ln1", h), num_heads)
        up = linear(p, block + ".mlp.up", layer_norm(p, block + ".ln2", h))
        h = h + linear(p, block + ".mlp.down", F.gelu(up, approximate="tanh"))
    logits = linear(p, "head", layer_norm(p, "ln", h))
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def count_blocks(names):
    n = 0
    while f"blocks.{n}.ln1.weight" in names:
        n += 1
    return n


def conv_norm(p, conv, norm, x, stride=1):
    """A convolution that keeps the size but for its stride, and batch norm by the statistics of the batch."""
    weight = p[conv + ".weight"]
    h = F.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
    return F.batch_norm(h, None, None, p[norm + ".weight"], p[norm + ".bias"], training=True)


def resnet18(p, x, y):
    h = F.relu(conv_norm(p, "conv1", "bn1", x, 2))
    h = F.max_pool2d(h, 3, 2, 1)
    for layer in (1, 2, 3, 4):
        for number in (0, 1):
            block = f"layer{layer}.{number}"
            stride = 2 if layer > 1 and number == 0 else 1
            inner = F.relu(conv_norm(p, block + ".conv1", block + ".bn1", h, stride))
            inner = conv_norm(p, block + ".conv2", block + ".bn2", inner)
            if stride == 2:
                h = conv_norm(p, block + ".downsample.0", block + ".downsample.1", h, 2)
            h = F.relu(inner + h)
    return F.cross_entropy(linear(p, "fc", h.mean((2, 3))), y)


def resnet18_shapes(width, classes):
    def layer(conv, norm, outputs, inputs, kernel):
        return {conv + ".weight": (outputs, inputs, kernel, kernel), norm + ".weight": (outputs,), norm + ".bias": (outputs,)}

    shapes = layer("conv1", "bn1", width, 3, 7)
    for index in range(4):
        outputs = width << index
        inputs = outputs // 2 if index else outputs
        for number in (0, 1):
            block = f"layer{index + 1}.{number}"
            shapes |= layer(block + ".conv1", block + ".bn1", outputs, outputs if number else inputs, 3)
            shapes |= layer(block + ".conv2", block + ".bn2", outputs, outputs, 3)
            if index and not number:
                shapes |= layer(block + ".downsample.0", block + ".downsample.1", outputs, inputs, 1)
    return shapes | affine_shapes("fc", classes, 8 * width)


def affine_shapes(name, outputs, inputs):
    return {name + ".weight": (outputs, inputs), name + ".bias": (outputs,)}


def gpt_shapes(layers=4, width=384, tokens=256, vocabulary=8192):
    shapes = {"embed.weight": (vocabulary, width), "pos.weight": (tokens, width)}
    for n in range(layers):
        block = f"blocks.{n}"
        for norm in ("ln1", "ln2"):
            shapes |= {f"{block}.{norm}.weight": (width,), f"{block}.{norm}.bias": (width,)}
        for which in "qkvo":
            shapes |= affine_shapes(f"{block}.attn.{which}", width, width)
        shapes |= affine_shapes(block + ".mlp.up", 4 * width, width)
        shapes |= affine_shapes(block + ".mlp.down", width, 4 * width)
    return shapes | {"ln.weight": (width,), "ln.bias": (width,), "head.weight": (vocabulary, width)}


# name -> (loss function, shapes of the parameters, whether x holds token ids)
MODELS = {
    "mlp": (mlp, affine_shapes("fc1", 20, 10) | affine_shapes("fc2", 1, 20), False),
    "lenet": (
        lenet,
        {"conv1.weight": (10, 1, 5, 5), "conv1.bias": (10,), "conv2.weight": (20, 10, 5, 5), "conv2.bias": (20,)}
        | affine_shapes("fc1", 50, 320)
        | affine_shapes("fc2", 10, 50),
        False,
    ),
    "wide_mlp": (
        wide_mlp,
        affine_shapes("fc1", 1024, 784) | affine_shapes("fc2", 1024, 1024) | affine_shapes("fc3", 10, 1024),
        False,
    ),
    # dgc's family resnet:18,classes=10,image=64,width=8
    "resnet_small": (resnet18, resnet18_shapes(8, 10), False),
    "gpt": (gpt, gpt_shapes(), True),
    # dgc's family gpt:layers=2,hidden=64,heads=2,seq=32,vocab=256
    "gpt_small": (functools.partial(gpt, num_heads=2), gpt_shapes(2, 64, 32, 256), True),
}


def load_parameters(path, shapes, dtype):
    tensors = load_file(path)
    parameters = {}
    for name, shape in shapes.items():
        if name not in tensors:
            raise UsageError(f"{path}: tensor '{name}' is missing; found {', '.join(sorted(tensors)) or 'none'}")
        if tuple(tensors[name].shape) != shape:
            raise UsageError(f"{path}: tensor '{name}' is {list(tensors[name].shape)}; expected {list(shape)}")
        parameters[name] = tensors[name].to(dtype).clone().requires_grad_()
    return parameters


def load_inputs(path, dtype, holds_ids):
    array = np.load(path)
    if holds_ids or (dtype is None):
        if array.dtype.kind not in "iu":
            raise UsageError(f"{path}: holds {array.dtype}; expected integers")
        return torch.from_numpy(array.astype(np.int64))
    if array.dtype == np.uint8:  # bytes that feed a float input are scaled to [0, 1]
        array = array.astype(np.float32) / np.float32(255)
    return torch.from_numpy(array).to(dtype)


def parse_optimizer(text, parameters):
    """'sgd:lr=0.01,momentum=0.5', 'adam:lr=0.001', 'adamw:lr=0.0001,weight_decay=0.01'"""
    name, _, rest = text.partition(":")
    known = {"sgd": ("lr", "momentum", "weight_decay"), "adam": ("lr", "beta1", "beta2", "eps")}
    known["adamw"] = known["adam"] + ("weight_decay",)
    if name not in known:
        raise UsageError(f"optimizer '{name}' is unknown; use one of: {', '.join(known)}")
    options = {}
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        if key not in known[name]:
            raise UsageError(f"optimizer {name} has no option '{key}'; use: {', '.join(known[name])}")
        try:
            options[key] = float(value)
        except ValueError:
            raise UsageError(f"optimizer option {key} is '{value}'; expected a number") from None
    if "lr" not in options:
        raise UsageError(f"optimizer '{text}' has no lr; write {name}:lr=0.01")
    if name == "sgd":
        return torch.optim.SGD(parameters, **options)
    betas = (options.pop("beta1", 0.9), options.pop("beta2", 0.999))
    make = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return make(parameters, betas=betas, **options)


def batches(x, y, size):
    """Consecutive batches, epoch after epoch, without end."""
    while True:
        for start in range(0, len(x), size):
            yield x[start : start + size], y[start : start + size]


def train(model, parameters, x, y, batch, steps, optimizer_text):
    """Returns the losses of all steps and the gradients of step 0; the parameters are updated in place."""
    loss_of = MODELS[model][0]
    optimizer = parse_optimizer(optimizer_text, list(parameters.values()))
    losses, gradients = [], {}
    for step, (bx, by) in zip(range(steps), batches(x, y, batch)):
        optimizer.zero_grad()
        loss = loss_of(parameters, bx, by)
        loss.backward()
        if step == 0:
            gradients = {name: p.grad.clone() for name, p in parameters.items()}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def write_random_case(model, directory, samples, seed):
    """Writes init.safetensors, x.npy and y.npy of a random case into an existing directory."""
    generator = np.random.default_rng(seed)
    weights = {}
    for name, shape in MODELS[model][1].items():
        if name.split(".")[-2].startswith(("ln", "bn")) or ".downsample.1." in name:
            values = np.full(shape, 1.0 if name.endswith("weight") else 0.0)
        elif name.startswith(("embed", "pos")):
            values = 0.02 * generator.standard_normal(shape)
        else:
            bound = np.prod(shape[1:] or shape) ** -0.5
            values = generator.uniform(-bound, bound, shape)
        weights[name] = torch.from_numpy(values.astype(np.float32))
    save_file(weights, f"{directory}/init.safetensors")
    inputs = {"mlp": (10,), "lenet": (1, 28, 28), "wide_mlp": (784,), "resnet_small": (3, 64, 64)}
    if model.startswith("gpt"):
        shapes = MODELS[model][1]
        vocabulary, tokens = shapes["embed.weight"][0], shapes["pos.weight"][0]
        x, y = generator.integers(0, vocabulary, (2, samples, tokens), dtype=np.int32)
    else:
        x = generator.standard_normal((samples, *inputs[model])).astype(np.float32)
        y = generator.integers(0, 10, samples, dtype=np.int32)
        if model == "mlp":
            y = generator.standard_normal((samples, 1)).astype(np.float32)
    np.save(f"{directory}/x.npy", x)
    np.save(f"{directory}/y.npy", y)


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--make-case", metavar="DIR", help="only write random init.safetensors, x.npy and y.npy there")
    parser.add_argument("--samples", type=int, default=64, help="of --make-case (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of --make-case (default: %(default)s)")
    parser.add_argument("--weights", help="safetensors file with the initial parameters")
    parser.add_argument("--x", help=".npy file")
    parser.add_argument("--y", help=".npy file")
    parser.add_argument("--batch", type=int, default=10, help="samples of a step (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--optimizer", default="sgd:lr=0.01", help="default: %(default)s")
    parser.add_argument("--dtype", choices=DTYPES, default="f32", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--losses", help="JSON to write: model, dtype, optimizer, batch, losses")
    parser.add_argument("--gradients", help="safetensors to write: the gradients of step 0")
    parser.add_argument("--final-weights", help="safetensors to write: the parameters after the last step")
    options = parser.parse_args(arguments)
    if not options.make_case and not (options.weights and options.x and options.y):
        parser.error("--weights, --x and --y are needed, or --make-case")
    if options.batch < 1 or options.steps < 1:
        parser.error(f"--batch is {options.batch} and --steps {options.steps}; both must be at least 1")
    return options


def run(options):
    if options.make_case:
        write_random_case(options.model, options.make_case, options.samples, options.seed)
        return
    torch.set_num_threads(options.threads)
    torch.use_deterministic_algorithms(True)
    _, shapes, holds_ids = MODELS[options.model]
    dtype = DTYPES[options.dtype]
    parameters = load_parameters(options.weights, shapes, dtype)
    x = load_inputs(options.x, dtype, holds_ids)
    y = load_inputs(options.y, dtype if options.model == "mlp" else None, False)
    if len(x) != len(y) or len(x) == 0:
        raise UsageError(f"{options.x} has {len(x)} samples and {options.y} has {len(y)}; expected as many, and some")
    losses, gradients = train(options.model, parameters, x, y, options.batch, options.steps, options.optimizer)
    if options.losses:
        record = {name: getattr(options, name) for name in ("model", "dtype", "optimizer", "batch")}
        with open(options.losses, "w") as file:
            json.dump(record | {"losses": losses}, file, indent=1)
            file.write("\n")
    if options.gradients:
        save_file(gradients, options.gradients)
    if options.final_weights:
        save_file({name: p.detach() for name, p in parameters.items()}, options.final_weights)


if __name__ == "__main__":
    try:
        run(parse_arguments(sys.argv[1:]))
    except (UsageError, OSError) as error:
        print(f"reference.py: error: {error}", file=sys.stderr)
        sys.exit(2)
