# SPDX-License-Identifier: Apache-2.0
"""The modules of from_torch_test.py: small ones of our own, and 20 of torchvision and transformers in small sizes. Nothing in them is drawn at
random while they train, so that PyTorch and DG can be compared."""
import torch
from torch import nn


def images(size, channels=3, batch=4):
    return {"x": torch.randn(batch, channels, size, size)}


def tokens(length=12, vocabulary=99, batch=4, **more):
    return {"input_ids": torch.randint(0, vocabulary, (batch, length)), **more}


class Convolutions(nn.Module):
    """Batch norm, a bias and a layer that is not trained."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)
        self.conv1.weight.requires_grad = False

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.fc(torch.relu(self.bn2(self.conv2(x))).mean((2, 3)))


class Tied(nn.Module):
    """An embedding that is the head too, equal layer norms and a buffer."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(99, 16), nn.Linear(16, 99, bias=False)
        self.head.weight = self.words.weight
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))
        self.register_buffer("shift", torch.linspace(-1, 1, 16))

    def forward(self, input_ids):
        x = self.words(input_ids) + self.shift
        for norm in self.norms:
            x = x + torch.tanh(norm(x))
        return self.head(x)


def vision(name, size=32, **more):
    def make():
        import torchvision

        return getattr(torchvision.models, name)(weights=None, num_classes=5, **more), images(size)

    return make


def text(model, config, inputs=tokens, **sizes):
    def make():
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**sizes)), inputs()

    return make


DROPOUTS = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
BERT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=32, num_labels=5, **DROPOUTS)
LLAMA = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, max_position_embeddings=32,
             use_cache=False)

SMALL = {"mlp": lambda: (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)), {"input": torch.randn(4, 8)}),
         "convolutions": lambda: (Convolutions(), images(8)), "tied": lambda: (Tied(), tokens())}

MODULES = {
    "resnet18": vision("resnet18"),
    "resnet50": vision("resnet50"),
    "vgg11": vision("vgg11", dropout=0.0),
    "vgg11_bn": vision("vgg11_bn", dropout=0.0),
    "alexnet": vision("alexnet", size=64, dropout=0.0),
    "squeezenet1_1": vision("squeezenet1_1", size=64, dropout=0.0),
    "mobilenet_v2": vision("mobilenet_v2", dropout=0.0),
    "mobilenet_v3_small": vision("mobilenet_v3_small", dropout=0.0),
    "shufflenet_v2_x0_5": vision("shufflenet_v2_x0_5"),
    "densenet121": vision("densenet121"),
    "efficientnet_b0": vision("efficientnet_b0", dropout=0.0, stochastic_depth_prob=0.0),
    "regnet_y_400mf": vision("regnet_y_400mf"),
    "convnext_tiny": vision("convnext_tiny", stochastic_depth_prob=0.0),
    "bert": text("BertForSequenceClassification", "BertConfig", **BERT),
    "roberta": text("RobertaForSequenceClassification", "RobertaConfig", **{**BERT, "max_position_embeddings": 34}),
    "electra": text("ElectraForSequenceClassification", "ElectraConfig", embedding_size=16, **BERT),
    "distilbert": text("DistilBertForSequenceClassification", "DistilBertConfig", vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
                       max_position_embeddings=32, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0, num_labels=5),
    "gpt2": text("GPT2LMHeadModel", "GPT2Config", vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                 use_cache=False),
    "llama": text("LlamaForCausalLM", "LlamaConfig", **LLAMA),
    "vit": text("ViTForImageClassification", "ViTConfig", lambda: {"pixel_values": torch.randn(4, 3, 32, 32)}, image_size=32, patch_size=8, hidden_size=32,
                num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=5, **DROPOUTS),
}
