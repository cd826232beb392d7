# SPDX-License-Identifier: Apache-2.0
"""The models of the comparison in JAX: `step_of` gives a function that trains one step and waits for it."""
import jax
import jax.numpy as jnp
import numpy

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY = 4, 384, 6, 256, 8192
EPSILON = 1e-5


class Random:
    """Arrays from one seed."""

    def __init__(self):
        self.generator = numpy.random.default_rng(0)

    def normal(self, *shape, scale=0.02):
        return jnp.asarray(self.generator.standard_normal(shape) * scale, jnp.float32)

    def labels(self, classes, *shape):
        return jnp.asarray(self.generator.integers(0, classes, shape))

    def linear(self, inputs, outputs):
        return {"weight": self.normal(inputs, outputs), "bias": jnp.zeros(outputs)}


def dense(layer, x):
    return x @ layer["weight"] + layer["bias"]


def cross_entropy(logits, targets):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1))


def layer_norm(scale, x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + EPSILON) * scale["weight"] + scale["bias"]


def small_mlp(random, batch):
    parameters = [random.linear(10, 20), random.linear(20, 1)]

    def loss(layers, x, y):
        return jnp.mean(jnp.square(dense(layers[1], jax.nn.relu(dense(layers[0], x))) - y))

    return parameters, random.normal(batch, 10), random.normal(batch, 1), loss, "sgd"


def wide_mlp(random, batch):
    parameters = [random.linear(784, 1024), random.linear(1024, 1024), random.linear(1024, 10)]

    def loss(layers, x, y):
        for layer in layers[:-1]:
            x = jax.nn.relu(dense(layer, x))
        return cross_entropy(dense(layers[-1], x), y)

    return parameters, random.normal(batch, 784), random.labels(10, batch), loss, "adam"


def lenet(random, batch):
    parameters = {"conv1": random.normal(10, 1, 5, 5), "bias1": jnp.zeros(10), "conv2": random.normal(20, 10, 5, 5),
                  "bias2": jnp.zeros(20), "fc1": random.linear(320, 50), "fc2": random.linear(50, 10)}

    def stage(x, weight, bias):
        x = jax.lax.conv(x, weight, (1, 1), "VALID") + bias[:, None, None]
        return jax.nn.relu(jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))

    def loss(p, x, y):
        x = stage(stage(x, p["conv1"], p["bias1"]), p["conv2"], p["bias2"]).reshape(batch, -1)
        return cross_entropy(dense(p["fc2"], jax.nn.relu(dense(p["fc1"], x))), y)

    return parameters, random.normal(batch, 1, 28, 28), random.labels(10, batch), loss, "momentum"


def gpt(random, batch):
    def norm():
        return {"weight": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}

    def block():
        return {"norm1": norm(), "qkv": random.linear(WIDTH, 3 * WIDTH), "out": random.linear(WIDTH, WIDTH),
                "norm2": norm(), "up": random.linear(WIDTH, 4 * WIDTH), "down": random.linear(4 * WIDTH, WIDTH)}

    parameters = {"tokens": random.normal(VOCABULARY, WIDTH), "places": random.normal(LENGTH, WIDTH),
                  "blocks": [block() for _ in range(LAYERS)], "norm": norm(), "head": random.normal(WIDTH, VOCABULARY)}
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))

    def loss(p, x, y):
        z = p["tokens"][x] + p["places"]
        for b in p["blocks"]:
            q, k, v = jnp.moveaxis(dense(b["qkv"], layer_norm(b["norm1"], z)).reshape(batch, LENGTH, 3, HEADS, -1), 2, 0)
            scores = jnp.einsum("nthd,nshd->nhts", q, k) * (WIDTH // HEADS) ** -0.5
            weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
            z = z + dense(b["out"], jnp.einsum("nhts,nshd->nthd", weights, v).reshape(batch, LENGTH, WIDTH))
            z = z + dense(b["down"], jax.nn.gelu(dense(b["up"], layer_norm(b["norm2"], z))))
        return cross_entropy(layer_norm(p["norm"], z) @ p["head"], y)

    tokens = random.labels(VOCABULARY, batch, LENGTH)
    return parameters, tokens, random.labels(VOCABULARY, batch, LENGTH), loss, "adamw"


MODELS = {"small-mlp": small_mlp, "mlp": wide_mlp, "lenet": lenet, "gpt": gpt}


def updated(optimizer, parameter, state, gradient, time):
    """The new parameter and state."""
    if optimizer == "sgd":
        return parameter - 0.01 * gradient, state
    if optimizer == "momentum":
        velocity = 0.5 * state[0] + gradient
        return parameter - 0.01 * velocity, (velocity, state[1])
    mean, square = 0.9 * state[0] + 0.1 * gradient, 0.999 * state[1] + 0.001 * gradient * gradient
    if optimizer == "adamw":
        parameter = parameter * (1 - 1e-4 * 0.01)
    scaled = (mean / (1 - 0.9**time)) / (jnp.sqrt(square / (1 - 0.999**time)) + 1e-8)
    return parameter - 1e-4 * scaled, (mean, square)


def step_of(name, batch):
    parameters, x, y, loss, optimizer = MODELS[name](Random(), batch)
    leaves, structure = jax.tree.flatten(parameters)
    sizes = {"sgd": (), "momentum": (1,), "adam": (1, 1), "adamw": (1, 1)}[optimizer]
    states = [tuple(jnp.zeros_like(leaf) for _ in sizes) + (None,) * (2 - len(sizes)) for leaf in leaves]

    def train(leaves, states, time, x, y):
        value, gradient = jax.value_and_grad(loss)(structure.unflatten(leaves), x, y)
        pairs = [updated(optimizer, *each, time) for each in zip(leaves, states, jax.tree.leaves(gradient))]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs], time + 1, value

    compiled = jax.jit(train, donate_argnums=(0, 1))
    held = [leaves, states, jnp.float32(1)]

    def step():
        *held[:], value = compiled(*held, x, y)
        value.block_until_ready()

    return step
