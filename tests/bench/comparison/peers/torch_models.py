# SPDX-License-Identifier: Apache-2.0
"""The models of the comparison in PyTorch, as their users write them."""
import torch
import torch.nn.functional as functional
from torch import nn

LAYERS, WIDTH, HEADS, LENGTH, VOCABULARY = 4, 384, 6, 256, 8192


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        attention = functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Front(nn.Module):
    """Embeddings and the first blocks."""

    def __init__(self, blocks):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))

    def forward(self, tokens):
        return self.blocks(self.tokens(tokens) + self.places)


class Back(nn.Module):
    """The last blocks and the logits."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, x):
        return self.head(self.norm(self.blocks(x)))


def token_loss(logits, targets):
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def training(name, batch):
    """Model, inputs, targets, loss and optimizer of small-mlp, mlp, lenet or gpt."""
    torch.manual_seed(0)
    if name == "small-mlp":
        model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1))
        x, y, loss = torch.randn(batch, 10), torch.randn(batch, 1), functional.mse_loss
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    elif name == "mlp":
        model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
        x, y, loss = torch.randn(batch, 784), torch.randint(10, (batch,)), functional.cross_entropy
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    elif name == "lenet":
        model = nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2),
                              nn.ReLU(), nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10), nn.LogSoftmax(1))
        x, y, loss = torch.randn(batch, 1, 28, 28), torch.randint(10, (batch,)), functional.nll_loss
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    elif name == "gpt":
        model = nn.Sequential(Front(LAYERS // 2), Back(LAYERS // 2))
        x, y = torch.randint(VOCABULARY, (batch, LENGTH)), torch.randint(VOCABULARY, (batch, LENGTH))
        loss = token_loss
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    else:
        raise ValueError(f"model {name!r}: expected small-mlp, mlp, lenet or gpt")
    return model, x, y, loss, optimizer
