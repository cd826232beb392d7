# SPDX-License-Identifier: Apache-2.0
"""ResNet-50, BERT-base and GPT-2 as PyTorch modules with random weights: what a user exports. Needs PyTorch; see exported_test.py."""
import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, blocks=(3, 4, 6, 3), width=64, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        layers, channels = [], width
        for stage, count in enumerate(blocks):
            for block in range(count):
                layers.append(Bottleneck(channels, width << stage, 2 if stage > 0 and block == 0 else 1))
                channels = 4 * width << stage
        self.body = nn.Sequential(*layers)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(channels, classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.body(self.stem(x))), 1))


class Attention(nn.Module):
    """As Hugging Face's models have it: shapes from the input, heads by view and transpose."""

    def __init__(self, width, heads, causal, fused):
        super().__init__()
        self.heads, self.causal, self.fused = heads, causal, fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2)) / (width // self.heads) ** 0.5
            if self.causal:
                seen = torch.tril(torch.ones(tokens, tokens, dtype=torch.bool)).view(1, 1, tokens, tokens)
                scores = torch.where(seen, scores, torch.finfo(scores.dtype).min)
            if mask is not None:
                scores = scores + mask
            y = torch.matmul(torch.softmax(scores, dim=-1), v)
        return self.out(y.transpose(1, 2).contiguous().view(batch, tokens, width))


class Bert(nn.Module):
    """Post-norm encoder with token types, an attention mask and a pooler."""

    def __init__(self, layers=12, width=768, heads=12, vocabulary=30522, positions=512, fused=False):
        super().__init__()
        self.words, self.places, self.types = nn.Embedding(vocabulary, width), nn.Embedding(positions, width), nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "attention": Attention(width, heads, False, fused), "norm1": nn.LayerNorm(width, eps=1e-12),
            "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width), "norm2": nn.LayerNorm(width, eps=1e-12),
        }) for _ in range(layers))
        self.pooler, self.dropout = nn.Linear(width, width), nn.Dropout(0.1)

    def forward(self, input_ids, attention_mask, token_type_ids):
        places = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        x = self.dropout(self.norm(self.words(input_ids) + self.places(places) + self.types(token_type_ids)))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer["norm1"](x + self.dropout(layer["attention"](x, mask)))
            x = layer["norm2"](x + self.dropout(layer["down"](functional.gelu(layer["up"](x)))))
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt2(nn.Module):
    """Pre-norm decoder with the tanh form of gelu and the embedding as its last layer."""

    def __init__(self, layers=12, width=768, heads=12, vocabulary=50257, positions=1024, fused=False):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "attention": Attention(width, heads, True, fused), "norm2": nn.LayerNorm(width),
            "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width),
        }) for _ in range(layers))
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, input_ids):
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.dropout(self.words(input_ids) + self.places(places))
        for layer in self.layers:
            x = x + self.dropout(layer["attention"](layer["norm1"](x)))
            x = x + self.dropout(layer["down"](functional.gelu(layer["up"](layer["norm2"](x)), approximate="tanh")))
        return functional.linear(self.norm(x), self.words.weight)


def randomize(module):
    """Weights of the size that training gives them; running statistics that are not those of a fresh layer."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "norm" in name or "bn" in name or parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
        for part in module.modules():
            if isinstance(part, nn.Embedding):
                part.weight.normal_(0, 0.05)
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
    return module
