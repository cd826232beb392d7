# SPDX-License-Identifier: Apache-2.0
"""The modules of from_torch_test.py: small ones of our own, and 20 of torchvision and transformers in small sizes. Nothing in them is drawn at
random while they train, so that PyTorch and DG can be compared."""
import torch
from torch import nn


BATCH = 8


def images(size, channels=3, batch=BATCH):
    return {"x": torch.randn(batch, channels, size, size)}


def tokens(length=12, vocabulary=99, batch=BATCH, **more):
    return {"input_ids": torch.randint(0, vocabulary, (batch, length)), **more}


def with_mask():
    """For TorchScript's exporter: without a mask, causal models of transformers look for packed sequences by aten::diff, which it does not know."""
    return tokens(attention_mask=torch.ones(BATCH, 12, dtype=torch.int64))


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
        return self.fc(self.bn2(torch.relu(self.conv2(x))).mean((2, 3)))


class Tied(nn.Module):
    """An embedding that is the head too, with a row that only the head trains, equal layer norms and a buffer."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(99, 16, padding_idx=3), nn.Linear(16, 99, bias=False)
        self.head.weight = self.words.weight
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))
        self.register_buffer("shift", torch.linspace(-1, 1, 16))

    def forward(self, input_ids):
        x = self.words(input_ids) + self.shift
        for norm in self.norms:
            x = x + torch.tanh(norm(x))
        return self.head(x)


def vision(make, size=32):
    """A module of torchvision: `make` gets torchvision.models. As made, a layer before batch norm has no gradient along its scale, and what is left of
    it is rounding: weights and biases of batch norm that are not 1 and 0 make ReLU see them."""
    def made():
        import torchvision

        module = make(torchvision.models)
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                nn.init.uniform_(part.weight, 0.5, 1.5)
                nn.init.normal_(part.bias, std=0.5)
        return module, images(size)

    return made


def mobilenet_v3(models):
    from torchvision.models.mobilenetv3 import InvertedResidualConfig as Block

    blocks = [Block(16, 3, 16, 16, True, "RE", 2, 1, 1), Block(16, 3, 48, 24, False, "RE", 1, 1, 1), Block(24, 5, 64, 24, True, "HS", 1, 1, 1)]
    return models.MobileNetV3(blocks, 64, num_classes=5, dropout=0.0)


def efficientnet(models):
    from torchvision.models.efficientnet import MBConvConfig as Block

    return models.EfficientNet([Block(1, 3, 1, 32, 16, 1), Block(4, 3, 2, 16, 24, 2), Block(4, 5, 1, 24, 32, 1)], 0.0, stochastic_depth_prob=0.0, num_classes=5)


def regnet(models):
    from torchvision.models.regnet import BlockParams

    return models.RegNet(BlockParams.from_init_params(depth=4, w_0=16, w_a=16.0, w_m=2.0, group_width=8, se_ratio=0.25), num_classes=5)


def convnext(models):
    from torchvision.models.convnext import CNBlockConfig as Block

    return models.ConvNeXt([Block(16, 32, 2), Block(32, 64, 2), Block(64, None, 2)], num_classes=5)


def text(model, config, inputs=tokens, **sizes):
    def make():
        import transformers

        return getattr(transformers, model)(getattr(transformers, config)(**sizes)), inputs()

    return make


DROPOUTS = dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
BERT = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=32, num_labels=5, **DROPOUTS)
LLAMA = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, max_position_embeddings=32,
             use_cache=False)

SMALL = {"mlp": lambda: (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)), {"input": torch.randn(BATCH, 8)}),
         "convolutions": lambda: (Convolutions(), images(8)), "tied": lambda: (Tied(), tokens())}

MODULES = {
    "bert": text("BertForSequenceClassification", "BertConfig", **BERT),
    "roberta": text("RobertaForSequenceClassification", "RobertaConfig", **{**BERT, "max_position_embeddings": 34}),
    "electra": text("ElectraForSequenceClassification", "ElectraConfig", embedding_size=16, **BERT),
    "albert": text("AlbertForSequenceClassification", "AlbertConfig", embedding_size=16, **{**BERT, "classifier_dropout_prob": 0.0}),
    "distilbert": text("DistilBertForSequenceClassification", "DistilBertConfig", vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
                       max_position_embeddings=32, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0, num_labels=5),
    "gpt2": text("GPT2LMHeadModel", "GPT2Config", with_mask, vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0,
                 attn_pdrop=0.0, use_cache=False, bos_token_id=0, eos_token_id=0),
    "llama": text("LlamaForCausalLM", "LlamaConfig", with_mask, **LLAMA),
    "vit": text("ViTForImageClassification", "ViTConfig", lambda: {"pixel_values": torch.randn(BATCH, 3, 32, 32)}, image_size=32, patch_size=8, hidden_size=32,
                num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=5, **DROPOUTS),
    "gpt_neox": text("GPTNeoXForCausalLM", "GPTNeoXConfig", with_mask, vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=64, max_position_embeddings=32, use_cache=False, bos_token_id=0, eos_token_id=0),
    "deit": text("DeiTForImageClassification", "DeiTConfig", lambda: {"pixel_values": torch.randn(BATCH, 3, 32, 32)}, image_size=32, patch_size=8, hidden_size=32,
                 num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, num_labels=5, **DROPOUTS),
    "squeezenet1_1": vision(lambda models: models.squeezenet1_1(num_classes=5, dropout=0.0), size=64),
    "resnet18": vision(lambda models: models.resnet18(num_classes=5)),
    "resnet_bottleneck": vision(lambda models: models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=5, width_per_group=16)),
    "mobilenet_v2": vision(lambda models: models.MobileNetV2(num_classes=5, width_mult=0.5, dropout=0.0,
                                                             inverted_residual_setting=[[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 1]])),
    "mobilenet_v3": vision(mobilenet_v3),
    "shufflenet_v2": vision(lambda models: models.ShuffleNetV2([2, 2, 1], [8, 16, 32, 64, 64], num_classes=5)),
    "densenet": vision(lambda models: models.DenseNet(growth_rate=8, block_config=(2, 2, 2), num_init_features=16, num_classes=5)),
    "efficientnet": vision(efficientnet),
    "regnet": vision(regnet),
    "convnext": vision(convnext),
}
# With batch norm in many layers, PyTorch in f32 parts from itself in f64 unless steps are small.
RATES = {"resnet_bottleneck": 1e-6, "resnet18": 1e-6}
