"""Models through ``torch.compile(backend="polyloom")``: ``python benchmarks/torch_models.py``.

Small networks of our own, and of the packages torchvision, timm and transformers where these are installed,
all with random weights. Each is run and trained one step (gradients of all parameters) and compared with
itself in float64: printed are the distances of results, Polyloom's and PyTorch's in float32, and those of
gradients; right is what is not much farther than PyTorch. With ``--times``: a table of Markdown, a forward
call beside PyTorch as it is and its own compiler, inductor, and seconds of a core that the first calls of the
two compilers took, with their C compilers (an empty ``XDG_CACHE_HOME`` and ``TORCHINDUCTOR_CACHE_DIR``:
anew). With ``--training``: of a step forward and backward, without an optimizer. ``--update`` keeps the times
in benchmarks/torch_times.json, of which ``benchmarks/documents.py`` makes a table of docs/python.md.
``-k torchvision. -k timm.``: only those. ``--inside COMMAND``: while calls are timed, and only then, COMMAND
runs, with a program that waits as its arguments: it may stop what else uses the processor until that ends.
It runs three times, and the least times count.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import math
import resource
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch_times
from torch import nn
from torch.nn import functional

from polyloom.torch_backend import polyloom

Made = tuple[nn.Module, tuple[Any, ...]]
MODELS: dict[str, Callable[[], Made]] = {}
IMAGE = (2, 3, 32, 32)


def model(make: Callable[[], Made]) -> Callable[[], Made]:
    MODELS[make.__name__] = make
    return make


def conv(a: int, b: int, k: int = 3, s: int = 1, g: int = 1, act: Any = nn.ReLU) -> nn.Sequential:
    parts = [nn.Conv2d(a, b, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(b)]
    return nn.Sequential(*parts, *([act(inplace=True)] if act else []))


def head(features: nn.Module, channels: int, classes: int = 10) -> nn.Sequential:
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def images(*shape: int) -> tuple[torch.Tensor]:
    return (torch.randn(shape or IMAGE),)


class Basic(nn.Module):
    def __init__(self, a: int, b: int, s: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(a, b, 3, s), conv(b, b, act=None))
        self.down = conv(a, b, 1, s, act=None) if s != 1 or a != b else nn.Identity()

    def forward(self, x: Any) -> Any:
        return functional.relu_(self.body(x) + self.down(x))


class Bottleneck(nn.Module):
    def __init__(self, a: int, m: int, s: int = 1, g: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(a, m, 1), conv(m, m, 3, s, g), conv(m, 4 * m, 1, act=None))
        self.down = conv(a, 4 * m, 1, s, act=None)

    def forward(self, x: Any) -> Any:
        out = self.body(x)
        out += self.down(x)
        return functional.relu(out)


@model
def resnet18() -> Made:
    return head(nn.Sequential(conv(3, 16), Basic(16, 16), Basic(16, 32, 2), Basic(32, 32)), 32), images()


@model
def resnet50() -> Made:
    return head(nn.Sequential(conv(3, 16), Bottleneck(16, 8), Bottleneck(32, 16, 2)), 64), images()


@model
def resnext() -> Made:
    return head(nn.Sequential(conv(3, 16), Bottleneck(16, 16, 1, 4), Bottleneck(64, 16, 2, 4)), 64), images()


@model
def vgg() -> Made:
    layers = [conv(3, 16), nn.MaxPool2d(2), conv(16, 32), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(2048, 32), nn.ReLU(True), nn.Linear(32, 10)), images()


@model
def alexnet() -> Made:
    layers = [nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(True), nn.MaxPool2d(3, 2), nn.Conv2d(16, 32, 3, padding=1)]
    return head(nn.Sequential(*layers, nn.ReLU(True), nn.MaxPool2d(3, 2)), 32), images()


@model
def lenet() -> Made:
    layers = [nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2)]
    tail = [nn.Flatten(), nn.Linear(256, 84), nn.Sigmoid(), nn.Linear(84, 10), nn.LogSoftmax(1)]
    return nn.Sequential(*layers, *tail), images(2, 1, 28, 28)


class Inverted(nn.Module):
    def __init__(self, a: int, b: int, s: int, act: Any = nn.ReLU6, squeeze: bool = False) -> None:
        super().__init__()
        h = 4 * a
        self.expand, self.depth = conv(a, h, 1, act=act), conv(h, h, 3, s, h, act)
        self.squeeze = Squeeze(h) if squeeze else nn.Identity()
        self.project, self.same = conv(h, b, 1, act=None), s == 1 and a == b

    def forward(self, x: Any) -> Any:
        y = self.project(self.squeeze(self.depth(self.expand(x))))
        return x + y if self.same else y


class Squeeze(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c // 4, 1), nn.Conv2d(c // 4, c, 1)

    def forward(self, x: Any) -> Any:
        return x * functional.hardsigmoid(self.b(functional.relu(self.a(x.mean((2, 3), keepdim=True)))))


@model
def mobilenet_v2() -> Made:
    return head(
        nn.Sequential(conv(3, 8, 3, 2, act=nn.ReLU6), Inverted(8, 8, 1), Inverted(8, 16, 2)), 16
    ), images()


@model
def mobilenet_v3() -> Made:
    blocks = [Inverted(8, 8, 1, nn.Hardswish, True), Inverted(8, 16, 2, nn.Hardswish, True)]
    return head(nn.Sequential(conv(3, 8, 3, 2, act=nn.Hardswish), *blocks), 16), images()


@model
def efficientnet() -> Made:
    blocks = [Inverted(8, 8, 1, nn.SiLU, True), Inverted(8, 16, 2, nn.SiLU, True)]
    return head(nn.Sequential(conv(3, 8, 3, 2, act=nn.SiLU), *blocks), 16), images()


class Dense(nn.Module):
    def __init__(self, a: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(conv(a + k * growth, growth) for k in range(layers))

    def forward(self, x: Any) -> Any:
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


@model
def densenet() -> Made:
    return head(nn.Sequential(conv(3, 8), Dense(8, 4, 3), conv(20, 16, 1), nn.AvgPool2d(2)), 16), images()


class Fire(nn.Module):
    def __init__(self, a: int, s: int, e: int) -> None:
        super().__init__()
        self.s, self.a, self.b = nn.Conv2d(a, s, 1), nn.Conv2d(s, e, 1), nn.Conv2d(s, e, 3, padding=1)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.s(x), inplace=True)
        return torch.cat([functional.relu(self.a(x)), functional.relu(self.b(x))], 1)


@model
def squeezenet() -> Made:
    layers = [nn.Conv2d(3, 16, 3, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(16, 4, 8)]
    return head(nn.Sequential(*layers, Fire(16, 4, 16)), 32), images()


class Shuffle(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(c // 2, c // 2, 1), conv(c // 2, c // 2, 3, 1, c // 2, None))

    def forward(self, x: Any) -> Any:
        a, b = x.chunk(2, 1)
        y = torch.cat([a, self.body(b)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


@model
def shufflenet() -> Made:
    return head(nn.Sequential(conv(3, 16, 3, 2), Shuffle(16), Shuffle(16)), 16), images()


class Inception(nn.Module):
    def __init__(self, a: int) -> None:
        super().__init__()
        self.a, self.b = conv(a, 8, 1), nn.Sequential(conv(a, 8, 1), conv(8, 8))
        self.c = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(a, 8, 1))

    def forward(self, x: Any) -> Any:
        return torch.cat([self.a(x), self.b(x), self.c(x)], 1)


@model
def googlenet() -> Made:
    return head(nn.Sequential(conv(3, 8, 3, 2), Inception(8), Inception(24)), 24), images()


class Next(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.d, self.n = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c)
        self.a, self.b = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.scale = nn.Parameter(torch.ones(c) * 0.1)

    def forward(self, x: Any) -> Any:
        y = self.b(functional.gelu(self.a(self.n(self.d(x).permute(0, 2, 3, 1))))) * self.scale
        return x + y.permute(0, 3, 1, 2)


@model
def convnext() -> Made:
    return head(nn.Sequential(nn.Conv2d(3, 16, 4, 4), Next(16), Next(16)), 16), images()


@model
def regnet() -> Made:
    return head(nn.Sequential(conv(3, 16, 3, 2), Bottleneck(16, 8, 1, 2), Squeeze(32)), 32), images()


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = conv(3, 8), conv(8, 16), conv(24, 8)
        self.up, self.out = nn.ConvTranspose2d(16, 16, 2, 2), nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        a = self.a(x)
        b = self.up(self.b(functional.max_pool2d(a, 2)))
        return self.out(self.c(torch.cat([a, b], 1)))


@model
def unet() -> Made:
    return UNet(), images(1, 3, 16, 16)


class FPN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.l = conv(3, 8, 3, 2), conv(8, 8, 3, 2), nn.Conv2d(8, 8, 1)

    def forward(self, x: Any) -> Any:
        a = self.a(x)
        b = self.b(a)
        up = functional.interpolate(b, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.l(a) + up, functional.interpolate(b, size=(16, 16), mode="nearest")


@model
def fpn() -> Made:
    return FPN(), images()


class Block(nn.Module):
    def __init__(self, d: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.n, self.m, self.heads, self.causal = nn.LayerNorm(d), nn.LayerNorm(d), heads, causal
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x: Any) -> Any:
        b, n, d = x.shape
        q, k, v = self.qkv(self.n(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.o(y.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.m(x))


class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.token = nn.Conv2d(3, 32, 8, 8), nn.Parameter(torch.zeros(1, 1, 32))
        self.place = nn.Parameter(torch.randn(1, 17, 32))
        self.blocks, self.out = nn.Sequential(Block(32, 4), Block(32, 4)), nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.out(self.blocks(x)[:, 0])


@model
def vit() -> Made:
    return ViT(), images()


class Windows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.block, self.out = nn.Conv2d(3, 16, 4, 4), Block(16, 2), nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        x = torch.roll(self.patch(x).permute(0, 2, 3, 1), (-2, -2), (1, 2))
        b, h, w, c = x.shape
        x = x.view(b, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(-1, 16, c)
        x = self.block(x).view(b, h // 4, w // 4, 4, 4, c).transpose(2, 3).reshape(b, h, w, c)
        return self.out(torch.roll(x, (2, 2), (1, 2)).mean((1, 2)))


@model
def swin() -> Made:
    return Windows(), images()


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.n = nn.Conv2d(3, 16, 8, 8), nn.LayerNorm(16)
        self.a = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.b = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = x + self.a(self.n(x).transpose(1, 2)).transpose(1, 2)
        return (x + self.b(x)).mean(1)


@model
def mixer() -> Made:
    return Mixer(), images()


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.e, self.r, self.out = nn.Embedding(20, 8), kind(8, 12, batch_first=True), nn.Linear(12, 5)

    def forward(self, x: Any) -> Any:
        return self.out(self.r(self.e(x))[0][:, -1])


@model
def lstm() -> Made:
    return Recurrent(nn.LSTM), (torch.randint(0, 20, (2, 6)),)


@model
def gru() -> Made:
    return Recurrent(nn.GRU), (torch.randint(0, 20, (2, 6)),)


@model
def encoder() -> Made:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (torch.randn(2, 7, 16),)


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.e, self.blocks = nn.Embedding(50, 32), nn.Sequential(Block(32, 4, True), Block(32, 4, True))

    def forward(self, x: Any) -> Any:
        return self.blocks(self.e(x)) @ self.e.weight.t()


@model
def gpt() -> Made:
    return GPT(), (torch.randint(0, 50, (2, 9)),)


@model
def dcgan() -> Made:
    layers = [nn.ConvTranspose2d(8, 16, 4, 1, 0), nn.BatchNorm2d(16), nn.ReLU(True)]
    layers += [nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()), images(2, 8, 1, 1)


@model
def tcn() -> Made:
    layers = [
        nn.Conv1d(4, 8, 3, padding=2, dilation=2),
        nn.LeakyReLU(),
        nn.Conv1d(8, 8, 3, padding=4, dilation=4),
    ]
    return nn.Sequential(*layers, nn.ELU(), nn.AdaptiveMaxPool1d(1), nn.Flatten()), images(2, 4, 20)


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(3, 16, 1), nn.Conv1d(16, 32, 1)
        self.n, self.out = nn.BatchNorm1d(16), nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        return self.out(self.b(functional.relu(self.n(self.a(x)))).max(2).values)


@model
def pointnet() -> Made:
    return PointNet(), images(2, 3, 40)


class Experts(nn.Module):
    """Two of four experts for each row, weighed."""

    def __init__(self, d: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.a, self.b = (nn.Parameter(torch.randn(experts, *s) / 5) for s in ((d, 32), (32, d)))

    def forward(self, x: Any) -> Any:
        p = torch.softmax(self.gate(x), -1)
        most, chosen = p.topk(2, -1)
        weights = torch.zeros_like(p).scatter(-1, chosen, most / most.sum(-1, keepdim=True))
        y = torch.einsum("bteh,ehd->bted", functional.gelu(torch.einsum("btd,edh->bteh", x, self.a)), self.b)
        return x + (weights.unsqueeze(-1) * y).sum(2)


@model
def experts() -> Made:
    return Experts(16, 4), (torch.randn(2, 7, 16),)


class LinearAttention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.o, self.heads = nn.Linear(d, 3 * d), nn.Linear(d, d), heads

    def forward(self, x: Any) -> Any:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        y = torch.einsum("bhnd,bhnde->bhne", q, torch.einsum("bhnd,bhne->bhnde", k, v).cumsum(2))
        y = y / torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(2)).unsqueeze(-1)
        return self.o(y.transpose(1, 2).reshape(b, n, d))


@model
def linear_attention() -> Made:
    return LinearAttention(16, 2), (torch.randn(2, 11, 16),)


class StateSpace(nn.Module):
    """A recurrence whose factors depend on data, as a loop over steps."""

    def __init__(self, d: int, n: int) -> None:
        super().__init__()
        self.a, self.parts, self.n = nn.Parameter(-torch.rand(d, n)), nn.Linear(d, 2 * n + d), n

    def forward(self, x: Any) -> Any:
        b, c, t = self.parts(x).split([self.n, self.n, x.shape[-1]], -1)
        t = functional.softplus(t).unsqueeze(-1)
        factors, terms = torch.exp(t * self.a), t * b.unsqueeze(2) * x.unsqueeze(-1)
        h, found = torch.zeros_like(terms[:, 0]), []
        for k in range(x.shape[1]):
            h = factors[:, k] * h + terms[:, k]
            found.append((h * c[:, k, None]).sum(-1))
        return torch.stack(found, 1)


@model
def state_space() -> Made:
    return StateSpace(6, 4), (torch.randn(2, 9, 6),)


def of_transformers() -> Iterator[tuple[str, Callable[[], Made]]]:
    """Yield small models of the package transformers, where it is installed."""
    try:
        import transformers as t
    except ImportError:
        return
    small = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {**small, "intermediate_size": 48, "max_position_embeddings": 40}
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "Bert": ("Bert", {**text, **none}),
        "Roberta": ("Roberta", {**text, **none}),
        "Electra": ("Electra", {**text, **none, "embedding_size": 32}),
        "Llama": ("Llama", {**text, "num_key_value_heads": 2}),
        "Mistral": ("Mistral", {**text, "num_key_value_heads": 2}),
        "Qwen2": ("Qwen2", {**text, "num_key_value_heads": 2}),
        "GPT2": (
            "GPT2",
            {"vocab_size": 60, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40}
            | dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0),
        ),
        "DistilBert": (
            "DistilBert",
            {"vocab_size": 60, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "dropout": 0.0}
            | {"attention_dropout": 0.0, "max_position_embeddings": 40},
        ),
    }
    for name, (kind, options) in kinds.items():

        def make(kind: str = kind, options: dict[str, Any] = options) -> Made:
            config = getattr(t, f"{kind}Config")(**options)
            config.use_cache, config.return_dict = False, False
            return getattr(t, f"{kind}Model")(config), (torch.randint(0, 60, (2, 9)),)

        yield f"transformers.{name}", make


TORCHVISION = (
    *("resnet18", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5"),
    *("mnasnet0_5", "efficientnet_b0", "regnet_y_400mf", "densenet121", "googlenet", "alexnet", "swin_t"),
)
TIMM = (
    *("test_byobnet", "test_convnext", "test_convnext2", "test_efficientnet", "test_efficientnet_gn"),
    *("test_efficientnet_ln", "test_resnet", "test_vit", "test_vit2", "test_mambaout"),
)


def of_torchvision() -> Iterator[tuple[str, Callable[[], Made]]]:
    """Yield models of the package torchvision on images of 64 x 64, where it is installed."""
    try:
        from torchvision import models
    except ImportError:
        return
    for name in TORCHVISION:
        more = {"init_weights": True, "aux_logits": False} if name == "googlenet" else {}

        def make(name: str = name, more: dict[str, Any] = more) -> Made:
            return without_chance(models.get_model(name, weights=None, **more)), images(4, 3, 64, 64)

        yield f"torchvision.{name}", make


def of_timm() -> Iterator[tuple[str, Callable[[], Made]]]:
    """Yield models of the package timm, its small forms of each family, where it is installed."""
    try:
        import timm
    except ImportError:
        return
    for name in TIMM:

        def make(name: str = name) -> Made:
            module = timm.create_model(name, pretrained=False)
            return without_chance(module), images(2, *module.pretrained_cfg["input_size"])

        yield f"timm.{name}", make


def without_chance(module: nn.Module) -> nn.Module:
    """Return a model whose layers leave out nothing at random: else no two runs agree."""
    for part in module.modules():
        for name in ("p", "drop_prob"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)
    return module


def tensors(found: Any) -> list[torch.Tensor]:
    values = found if isinstance(found, tuple | list) else [found]
    return [v for v in values if isinstance(v, torch.Tensor) and v.is_floating_point()]


def gradients(module: nn.Module, call: Any, inputs: Any) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    module.zero_grad()
    found = tensors(call(*inputs))
    sum((f * torch.cos(torch.arange(f.numel()).view(f.shape))).sum() for f in found).backward()
    return [f.detach() for f in found], [p.grad.clone() for p in module.parameters() if p.grad is not None]


def difference(have: list[torch.Tensor], want: list[torch.Tensor]) -> float:
    assert len(have) == len(want)
    least = 1e-2 * max((b.abs().max().item() for b in want), default=0)  # noise around 0 says nothing
    least = max(least, 1e-30)  # no more: what BatchNorm has not met yet makes deep models small, not wrong
    return max(
        (((a - b).abs().max() / (b.abs().max() + least)).item() for a, b in zip(have, want, strict=True)),
        default=0,
    )


FLOOR, TIMES, MOST = 1e-5, 4, 0.1
"""A distance from float64 is right up to FLOOR and TIMES that of PyTorch in float32, and never above MOST."""


@dataclass(frozen=True)
class Distance:
    """How far a model is from itself in float64, as Polyloom and as PyTorch run it in float32.

    In parts of a tensor's largest element, the least of some runs. Where a sum ends next to the border of a
    ``ReLU``, rounding alone decides on which side: both may be far then, or one of them. What is wrong is
    far in each run.
    """

    ours: float
    eager: float

    @property
    def is_right(self) -> bool:
        return self.ours <= min(FLOOR + TIMES * self.eager, MOST)

    def __str__(self) -> str:
        return f"{self.ours:9.2e} {self.eager:9.2e} {'' if self.is_right else 'WRONG '}"


Ran = tuple[list[torch.Tensor], list[torch.Tensor]]


def trained_and_run(module: nn.Module, call: Any, inputs: Any) -> Ran:
    """Return results of a training step and of a call thereafter, gradients of the step."""
    module.train()
    found, grads = gradients(module, call, inputs)
    module.eval()
    with torch.no_grad():
        return [*found, *tensors(call(*inputs))], grads


def nudge(module: nn.Module) -> None:
    """Change parameters by about what float32 rounds."""
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(1 + torch.finfo(torch.float32).eps * torch.empty_like(p).uniform_(-1, 1))


RUNS = 3
"""Of a model as it is made and of nudged ones."""


def checked(make: Callable[[], Made]) -> tuple[str, Distance, Distance]:
    """Return what happened to a model, and the distances of its results and of its gradients from float64."""
    torch.manual_seed(1)
    module, inputs = make()
    in_double = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    torch._dynamo.reset()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compiled, runs = torch.compile(module, backend=polyloom), []
        for _ in range(RUNS):
            exact, eager = copy.deepcopy(module).double(), copy.deepcopy(module)
            want = trained_and_run(exact, exact, in_double)
            runs.append(
                (trained_and_run(module, compiled, inputs), trained_and_run(eager, eager, inputs), want)
            )
            nudge(module)
    results, grads = (
        Distance(*(min(difference(run[who][k], run[2][k]) for run in runs) for who in (0, 1))) for k in (0, 1)
    )
    refused = [str(w.message) for w in said if "runs as PyTorch" in str(w.message)]
    what = "whole"
    if refused:
        what = f"{len(refused)} graphs in PyTorch: {refused[0].splitlines()[2][:150]}"
    return what, results, grads


ROUNDS, LEAST = 20, 0.6
"""Rounds and seconds that all contenders take in turns, at least."""

WINDOWS = 3
"""How often COMMAND of ``--inside`` runs."""

Step = Callable[[], Any]


def core_seconds() -> float:
    """Return the processor's seconds of this process and of the ones that it waited for."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def prepared(make: Callable[[], Made], *, is_training: bool) -> tuple[list[Step], list[float]]:
    """Return a step of a model as PyTorch, inductor and Polyloom run it, core seconds of two first steps."""
    torch.manual_seed(1)
    module, inputs = make()
    module.train(is_training)
    steps: list[Step] = [step(module, module, inputs, is_training=is_training)]
    firsts = []
    torch._dynamo.reset()
    torch._inductor.config.compile_threads = 1  # it waits for no process of its own else
    for backend in ("inductor", polyloom):
        compiled = torch.compile(module, backend=backend)
        steps.append(step(module, compiled, inputs, is_training=is_training))
        start = core_seconds()
        steps[-1]()
        firsts.append(core_seconds() - start)
    return steps, firsts


def step(module: nn.Module, call: Any, inputs: tuple[Any, ...], *, is_training: bool) -> Step:
    """Return a call: forward without gradients, or forward and backward to the gradients of parameters."""

    def forward() -> Any:
        with torch.no_grad():
            return call(*inputs)

    def both() -> None:
        module.zero_grad()
        sum(found.sum() for found in tensors(call(*inputs))).backward()

    return both if is_training else forward


WAITING = "import sys; print(flush=True); sys.stdin.read()"
"""What COMMAND of ``--inside`` runs: it says that it is there, and ends with its input."""


@contextlib.contextmanager
def inside(command: str) -> Iterator[None]:
    """Keep a command running, with a waiting program as its arguments; an empty command: nothing."""
    if not command:
        yield
        return
    words = [*shlex.split(command), sys.executable, "-c", WAITING]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin and running.stdout
        running.stdout.readline()
        yield
        running.stdin.close()


def measured(steps: list[Step]) -> list[float]:
    """Return the least seconds of each step, taken in turns."""
    times: list[list[float]] = [[] for _ in steps]
    for call in steps:
        call()
    end = time.perf_counter() + LEAST
    while time.perf_counter() < end or len(times[0]) < ROUNDS:
        for call, found in zip(steps, times, strict=True):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return [min(found) for found in times]


def table(
    chosen: dict[str, Callable[[], Made]], command: str, *, is_training: bool, order: Sequence[str] = ()
) -> None:
    """Print times and, at the end, the geometric means of how many times as fast Polyloom is.

    ``order``: of all models, where rows are to be kept.
    """
    rows = []
    print(torch_times.HEAD)
    for name, make in chosen.items():
        steps, firsts = prepared(make, is_training=is_training)
        windows = []
        for _ in range(WINDOWS if command else 1):
            with inside(command):
                windows.append(measured(steps))
        found = [min(times) for times in zip(*windows, strict=True)]
        row = torch_times.Row(name, is_training, *found, *firsts)
        rows.append(row)
        if order:
            torch_times.keep(row, order)
        print(row, flush=True)
    print(f"\n{torch_times.means(rows)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--update", action="store_true", help="keep times for the table of docs/python.md")
    parser.add_argument("--inside", default="", metavar="COMMAND")
    parser.add_argument(
        "-k", action="append", help="only the model of this name, or those whose name holds it"
    )
    options = parser.parse_args()
    everything = {**MODELS, **dict(of_torchvision()), **dict(of_timm()), **dict(of_transformers())}
    asked = [{k} if k in everything else {n for n in everything if k in n} for k in options.k or [""]]
    chosen = {n: m for n, m in everything.items() if any(n in names for names in asked)}
    if options.times:
        order = list(everything) if options.update else ()
        table(chosen, options.inside, is_training=options.training, order=order)
        return 0
    return report(chosen)


def report(chosen: dict[str, Callable[[], Made]]) -> int:
    """Print how far each model is from float64, and return 1 where one is wrong."""
    wrong = 0
    for name, make in chosen.items():
        try:
            what, results, grads = checked(make)
        except Exception as fault:
            what = f"{type(fault).__name__}: {str(fault)[:300]}"
            results = grads = Distance(math.inf, 0)
        wrong += not (results.is_right and grads.is_right)
        print(f"{name:24} {results} {grads} {what}", flush=True)
    print(f"{len(chosen)} models, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
