"""Make the PyTorch test cases: archives of torch.export, their inputs, and what PyTorch computes for them.

    python tests/frontends/torch/make_cases.py FOLDER [NAME ...]

For each case FOLDER gets NAME.pt2 and NAME.npz with the arrays ``in/INPUT`` and ``out/N``, the results in
order. Cases are exported as they are (`conv2d`), or decomposed to core operations (`conv2d.core`); those of
`training` hold the gradients of every parameter. It needs the package torch (2.13), which the tests of the
importer do not.
"""

from __future__ import annotations

import copy
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

CASES: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {}
TRAINING: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {}


def shape(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def case(name: str, make: Callable[[], Any], *arguments: Any) -> None:
    CASES[name] = make, arguments


def training(name: str, make: Callable[[], Any], *arguments: Any) -> None:
    TRAINING[name] = make, arguments


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any, y: Any = None, z: Any = None) -> Any:
        return self.function(*(v for v in (x, y, z) if v is not None))


def function(name: str, body: Callable[..., Any], *arguments: Any) -> None:
    case(name, lambda: Function(body), *arguments)


class Float8(nn.Module):
    """Weights of float8 with scales; one is transposed before it is converted."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", torch.randn(4, 6).to(torch.float8_e4m3fn))
        self.register_buffer("second", torch.randn(6, 3).to(torch.float8_e5m2))
        self.register_buffer("scale", torch.rand(6))

    def forward(self, x: torch.Tensor) -> Any:
        hidden = x @ (self.first.t().to(torch.float32) * self.scale[:, None])
        return torch.relu(hidden) @ self.second.to(torch.float32)[:4]


class Recurrent(nn.Module):
    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.cell = kind(3, 4, batch_first=True, **options)

    def forward(self, x: Any) -> Any:
        return self.cell(x)[0]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, need_weights=False)[0]


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        out = self.bn(self.conv(x))
        out += x
        return {"image": self.relu(out)}


def warmed(module: nn.Module, *sizes: int) -> nn.Module:
    """Return a module whose running statistics are not those of the start."""
    module.train()
    module(2 * shape(*sizes) + 1)
    return module


torch.manual_seed(11)
case("linear", lambda: nn.Linear(5, 3), shape(2, 4, 5))
case("linear_no_bias", lambda: nn.Linear(5, 3, bias=False), shape(5))
case("bilinear", lambda: nn.Bilinear(3, 4, 2), shape(5, 3), shape(5, 4))
case("mlp", lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3), nn.Softmax(-1)), shape(2, 6))
case("conv1d", lambda: nn.Conv1d(2, 3, 3, stride=2, padding=1), shape(2, 2, 9))
case(
    "conv2d",
    lambda: nn.Conv2d(4, 6, 3, stride=(2, 1), padding=(1, 2), dilation=2, groups=2),
    shape(2, 4, 9, 8),
)
case("conv2d_same", lambda: nn.Conv2d(2, 3, (2, 3), padding="same", dilation=2), shape(2, 6, 7))
case("conv2d_reflect", lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"), shape(1, 2, 5, 5))
case("conv3d", lambda: nn.Conv3d(2, 2, 2, padding=1), shape(1, 2, 4, 3, 4))
case(
    "conv_transpose1d",
    lambda: nn.ConvTranspose1d(3, 2, 3, stride=2, padding=1, output_padding=1),
    shape(2, 3, 5),
)
case(
    "conv_transpose2d", lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, dilation=2), shape(1, 4, 4, 3)
)
case("max_pool", lambda: nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), shape(1, 2, 8, 7))
case("avg_pool", lambda: nn.AvgPool2d(3, 2, padding=1, ceil_mode=True), shape(1, 2, 8, 7))
case("avg_pool_inside", lambda: nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), shape(1, 2, 8, 7))
case("adaptive", lambda: nn.AdaptiveAvgPool2d((2, 1)), shape(1, 3, 6, 5))
case("batch_norm", lambda: warmed(nn.BatchNorm2d(3), 4, 3, 2, 2), shape(2, 3, 4, 4))
case("batch_norm1d", lambda: warmed(nn.BatchNorm1d(3, affine=False), 4, 3), shape(5, 3))
case("instance_norm", lambda: nn.InstanceNorm2d(3, affine=True), shape(2, 3, 4, 4))
case("layer_norm", lambda: nn.LayerNorm((3, 4)), shape(2, 3, 4))
case("group_norm", lambda: nn.GroupNorm(2, 4), shape(2, 4, 3, 3))
case("rms_norm", lambda: nn.RMSNorm(6), shape(2, 6))
case("embedding", lambda: nn.Embedding(7, 3), torch.tensor([[0, 6, 2], [3, 3, 1]]))
case(
    "dynamic",
    lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3), nn.Softmax(-1)),
    shape(3, 1, 5, 5),
)
function("dynamic_sizes", lambda x: (x.reshape(x.shape[0] * 2, -1), x * x.shape[0]), shape(3, 4, 2))
function("in_place", lambda x, y: (x * 2).relu_().mul_(y).add_(1), shape(3, 4), shape(4))
case("prelu", lambda: nn.PReLU(3), shape(2, 3, 4))
case("attention", Attention, shape(2, 3, 8))
case("encoder", lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), shape(2, 3, 8))
case("lstm", lambda: Recurrent(nn.LSTM), shape(2, 4, 3))
case("lstm_deep", lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), shape(2, 3, 3))
case("lstm_projected", lambda: nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), shape(3, 2, 3))
case("lstm_one_sequence", lambda: nn.LSTM(3, 4), shape(3, 3))
case("gru_cell", lambda: nn.GRUCell(3, 4), shape(2, 3), shape(2, 4))
case("lstm_cell", lambda: nn.LSTMCell(3, 4), shape(2, 3))
case("gru", lambda: Recurrent(nn.GRU, bidirectional=True), shape(2, 3, 3))
case("rnn", lambda: Recurrent(nn.RNN, nonlinearity="relu"), shape(2, 3, 3))
case("residual", Residual, shape(1, 3, 5, 5))
case("upsample", lambda: nn.Upsample(scale_factor=2), shape(1, 2, 3, 3))
case("float8", Float8, shape(2, 6))
case("pixel_shuffle", lambda: nn.PixelShuffle(2), shape(1, 8, 2, 3))
for kind in (
    nn.GELU,
    nn.SiLU,
    nn.ELU,
    nn.SELU,
    nn.CELU,
    nn.Softplus,
    nn.Hardswish,
    nn.Hardsigmoid,
    nn.Mish,
    nn.LeakyReLU,
    nn.Softsign,
    nn.LogSigmoid,
    nn.Hardtanh,
    nn.Softshrink,
    nn.Hardshrink,
    nn.Tanhshrink,
    nn.ReLU6,
    nn.LogSoftmax,
):
    options = {"dim": -1} if kind is nn.LogSoftmax else {}
    case(kind.__name__.lower(), lambda kind=kind, options=options: kind(**options), 3 * shape(3, 7))
function(
    "einsum", lambda x, y, z: torch.einsum("ijk,jr,kr->ir", x, y, z), shape(3, 4, 5), shape(4, 2), shape(5, 2)
)
function(
    "matmuls",
    lambda x, y: (x @ y, torch.bmm(x, y), torch.mm(x[0], y[0]), x[0] @ y[0, :, 0]),
    shape(2, 3, 4),
    shape(2, 4, 5),
)
function(
    "addmms",
    lambda x, y: (torch.addmm(x[0], x, y, beta=2, alpha=0.5), torch.baddbmm(x, x[None], y[None])),
    shape(3, 3),
    shape(3, 3),
)
function("sdpa", lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), shape(1, 2, 4, 3))
function(
    "sdpa_mask",
    lambda x, y: F.scaled_dot_product_attention(x, x, x, attn_mask=y > 0, scale=0.3),
    shape(1, 2, 4, 3),
    shape(4, 4) + 0.5,
)
function(
    "views",
    lambda x: (
        x.permute(2, 0, 1).reshape(4, 6),
        x[:, 1:, ::2],
        x.transpose(0, 1).unsqueeze(1),
        x[..., -1].squeeze(),
        x.flatten(1)[1],
        x.expand(5, 2, 3, 4).sum(0),
        x.flip(0, 2),
        torch.roll(x, 1, 2),
        x.diagonal(0, 1, 2),
    ),
    shape(2, 3, 4),
)
function(
    "joins",
    lambda x, y: (
        torch.cat([x, y], 1),
        torch.stack([x, x * 2], -1),
        *torch.split(y, 2, 1),
        *torch.chunk(x, 2, 1),
        F.pad(x, (1, 2), value=3.0),
        x.repeat(2, 1, 2),
        torch.tril(x),
        x.repeat_interleave(2, 1),
    ),
    shape(3, 4),
    shape(3, 5),
)
function(
    "reductions",
    lambda x: (
        x.sum(),
        x.sum(1),
        x.mean((0, 2), keepdim=True),
        x.amax(1),
        *x.max(2),
        x.min(),
        x.argmax(1),
        x.var(1),
        x.std(),
        x.norm(),
        (x > 0).any(1),
        x.prod(2),
        x.cumsum(1),
        torch.logsumexp(x, 1),
    ),
    shape(2, 3, 4),
)
function(
    "arithmetic",
    lambda x, y: (
        x + 2,
        x * y - y / 3,
        1 - x,
        x.pow(2),
        (x.abs() + 1) ** y,
        x > y,
        x.eq(x),
        torch.where(x > 0, x, y),
        x.clamp(-0.5, 0.5),
        torch.maximum(x, y),
        x // y,
        x % y,
        (x > 0) & (y > 0),
        torch.add(x, y, alpha=3),
        x.to(torch.int32) + 1,
        x.masked_fill(y > 0, -1.0),
        torch.expm1(x),
        torch.log1p(x.abs()),
        torch.arange(4) * x,
    ),
    shape(3, 4),
    shape(3, 4),
)
function(
    "integers",
    lambda x, y: (
        x // y,
        x % y,
        x / y,
        x * 2,
        x.float().mean(),
        x << 1 if False else x - y,
        torch.div(x, y, rounding_mode="trunc"),
        x > 1.5,
        x + 0.5,
    ),
    torch.tensor([7, -7, 5, -1]),
    torch.tensor([2, 2, -3, 4]),
)
function(
    "index",
    lambda x, y: (
        x[y],
        torch.index_select(x, 1, y),
        torch.gather(x, 0, y[None].expand(2, 3)),
        F.one_hot(y, 5),
    ),
    shape(4, 4),
    torch.tensor([2, 0, 3]),
)
function(
    "index_several",
    lambda x: (
        x[torch.tensor([1]), torch.tensor([0, 2])],
        x[torch.tensor(1), torch.tensor(2)],
        x[torch.tensor([[0], [2]]), torch.tensor([1, 3])],
        x[torch.tensor([0, 2]), :, torch.tensor([1, -1])],
    ),
    shape(4, 5, 3),
)
function(
    "resized",
    lambda x: (
        F.interpolate(x, size=(7, 3), mode="bicubic"),
        F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True),
        F.interpolate(x, size=(3, 7), mode="nearest-exact"),
        F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True),
        F.interpolate(x, size=(2, 9), mode="bicubic", antialias=True),
    ),
    shape(1, 2, 5, 6),
)
function(
    "sampled",
    lambda x, grid, theta: (
        F.grid_sample(x, grid, align_corners=False),
        F.grid_sample(x, grid, "nearest", "border", True),
        F.grid_sample(x, grid, "bicubic", "reflection", False),
        F.grid_sample(x, F.affine_grid(theta, [2, 2, 3, 4], False), "bilinear", "reflection", True),
    ),
    shape(2, 2, 4, 5),
    shape(2, 3, 2, 2),
    shape(2, 2, 3),
)
function(
    "patches",
    lambda x: (
        F.unfold(x, (2, 3), padding=1, stride=2),
        F.fold(F.unfold(x[0], 2), (4, 6), 2),
        F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    ),
    shape(1, 2, 4, 6),
)
function(
    "in_order",
    lambda x: (
        *(t for t in x.median(1)),
        *(t for t in x.kthvalue(2, 0, keepdim=True)),
        x.median(),
        *(t for t in x.cummax(1)),
        *(t for t in x.cummin(0)),
        x.logcumsumexp(1),
        torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])),
        torch.searchsorted(x.sort(1)[0], x, right=True),
        torch.cdist(x, x[:2] + 1),
        torch.cdist(x, x[:2] + 1, p=1.0),
    ),
    shape(4, 5),
)
function(
    "adaptive_uneven",
    lambda x: (
        F.adaptive_avg_pool2d(x, (3, 4)),
        *F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
        F.adaptive_max_pool1d(x[0], 3),
    ),
    shape(2, 3, 7, 5),
)
function(
    "losses_weighed",
    lambda x, y, z: (
        F.cross_entropy(x, z, label_smoothing=0.1),
        F.cross_entropy(x, z, y[0].abs(), label_smoothing=0.2, ignore_index=4, reduction="none"),
        F.cross_entropy(x, y.softmax(1), y[0].abs(), label_smoothing=0.1),
        F.binary_cross_entropy_with_logits(x, y.sigmoid(), y.abs(), pos_weight=y[1].abs()),
        F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), y.abs(), reduction="sum"),
    ),
    shape(4, 5),
    shape(4, 5),
    torch.tensor([1, 0, 4, 4]),
)
function(
    "not_finite",
    lambda x, y: (
        torch.nan_to_num(x / y.relu(), nan=2.0, posinf=3.0, neginf=-4.0),
        torch.isinf(x / y.relu()),
        torch.isfinite(x / y.relu()),
        torch.signbit(-y.relu()),
        torch.copysign(x, y),
        torch.frac(x * 3),
        torch.round(x, decimals=1),
        torch.xlogy(y.relu(), y.relu()),
        (x * 9).to(torch.int64) >> 1,
        (x * 9).to(torch.int64) << 2,
    ),
    shape(3, 4),
    shape(3, 4),
)
function(
    "parts",
    lambda x, y: (
        x.unfold(1, 3, 2),
        x.repeat_interleave(torch.tensor([2, 0, 1, 3]), 0),
        F.rrelu(x),
        F.glu(x, 0),
        F.channel_shuffle(x[None], 2),
        torch.select_scatter(x, y, 1, -2),
        torch.diagonal_scatter(x[:, :, 0], y[:4, 1], 0),
        torch.diagonal_scatter(x[:, :, 0], y[:3, 1], -1),
    ),
    shape(4, 7, 3),
    shape(4, 3),
)
function("truths", lambda x: (*(x > 0).max(1), (x > 1).min(), *(x > -1).min(0)), shape(3, 4))
function(
    "small_matrices",
    lambda x: (torch.det(x[:, :2, :2]), torch.det(x[0]), torch.det(x), torch.linalg.inv_ex(x)[0]),
    shape(2, 4, 4),
)
function(
    "bags",
    lambda words, starts, rows: (
        F.embedding_bag(words, rows, starts, mode="sum"),
        F.embedding_bag(words, rows, starts, mode="mean"),
        F.embedding_bag(words, rows, torch.tensor([0, 1, 5]), mode="max"),
        F.embedding_bag(words.view(3, 2), rows, mode="sum", per_sample_weights=rows.flatten()[:6].view(3, 2)),
    ),
    torch.tensor([1, 4, 1, 0, 3, 2]),
    torch.tensor([0, 2, 2]),
    shape(5, 3),
)
function(
    "losses",
    lambda x, y: (
        F.mse_loss(x, y),
        F.l1_loss(x, y, reduction="sum"),
        F.smooth_l1_loss(x, y),
        F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    ),
    shape(3, 4),
    shape(3, 4),
)
function(
    "replaced",
    lambda x, rows, at: (
        x.index_put((at,), rows),
        torch.ops.aten.index_put(x, (None, at), rows[:, :1].T.contiguous()),
        x.index_put((x > 0,), torch.tensor(0.0)),
        x.scatter(0, at[:, None].expand(2, 3), rows),
        x.scatter_reduce(1, at[:, None] % 3, rows[:, :1], "amax"),
        x.index_copy(0, at, rows),
        torch.slice_scatter(x, rows, 0, 1, 5, 2),
    ),
    shape(5, 3),
    shape(2, 3),
    torch.tensor([2, 0]),
)
function(
    "ordered",
    lambda x: (
        *(t for t in x.topk(3)),
        *(t for t in x.sort(0)),
        x.argsort(1, descending=True),
        torch.hypot(x, x + 1),
    ),
    shape(4, 5),
)
function("cross_entropy", lambda x, y: F.cross_entropy(x, y), shape(4, 5), torch.tensor([1, 0, 4, 4]))


class Training(nn.Module):
    """The mean square of a module's result as a loss."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *arguments: Any) -> Any:
        return (self.module(*arguments) * 0.7).square().mean()


training("mlp", lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), shape(2, 6))
training(
    "conv",
    lambda: nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2), nn.Tanh()),
    shape(2, 2, 6, 7),
)
training("conv_transpose", lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1), shape(1, 2, 4, 4))
training(
    "pools", lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.AvgPool2d(2)), shape(1, 1, 10, 10)
)
training("layer_norm", lambda: nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6)), shape(3, 4))
training("group_norm", lambda: nn.Sequential(nn.Conv2d(2, 4, 2), nn.GroupNorm(2, 4)), shape(2, 2, 3, 3))
training("batch_norm", lambda: nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)), shape(3, 2, 3, 3))
training("softmax", lambda: nn.Sequential(nn.Linear(4, 6), nn.Softmax(-1)), shape(3, 4))
training("log_softmax", lambda: nn.Sequential(nn.Linear(4, 6), nn.LogSoftmax(-1)), shape(3, 4))
training("gelu", lambda: nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 6), nn.SiLU()), shape(3, 4))
training("embedding", lambda: nn.Embedding(5, 3), torch.tensor([1, 4, 1]))
training("lstm", lambda: Recurrent(nn.LSTM), shape(2, 3, 3))
training(
    "adaptive",
    lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.AdaptiveAvgPool2d((2, 3)), nn.Flatten(), nn.Linear(18, 2)),
    shape(2, 2, 5, 7),
)
training(
    "adaptive_max",
    lambda: nn.Sequential(
        nn.Conv2d(2, 3, 1),
        nn.ReplicationPad2d((1, 2, 0, 1)),
        nn.ReflectionPad2d(1),
        nn.AdaptiveMaxPool2d((2, 3)),
    ),
    shape(2, 2, 5, 7),
)
training("attention", Attention, shape(2, 3, 8))


def flat(result: Any) -> list[Any]:
    return [v for v in torch.utils._pytree.tree_leaves(result) if isinstance(v, torch.Tensor)]


def write(folder: Path, name: str, program: Any, arguments: Any, outputs: list[Any]) -> None:
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    inputs = {f"in/{n}": a.numpy() for n, a in zip(names, arguments, strict=True)}
    results = {f"out/{k}": v.detach().numpy() for k, v in enumerate(outputs)}
    np.savez_compressed(folder / f"{name}.npz", **inputs, **results)
    buffer = io.BytesIO()
    program._example_inputs = None
    torch.export.save(program, buffer)
    (folder / f"{name}.pt2").write_bytes(smaller(buffer.getvalue()))


def smaller(data: bytes) -> bytes:
    """Return an archive without source positions and compressed, so that it may lie in a repository."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new,
    ):
        for info in old.infolist():
            content = old.read(info)
            if "sample_inputs" in info.filename:
                continue
            if info.filename.endswith("models/model.json"):
                model = json.loads(content)
                for node in model["graph_module"]["graph"]["nodes"]:
                    for key in ("stack_trace", "torch_fn", "source_fn_stack", "from_node"):
                        node.get("metadata", {}).pop(key, None)
                content = json.dumps(model, separators=(",", ":")).encode()
            new.writestr(zipfile.ZipInfo(info.filename, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def make(folder: Path, name: str) -> None:
    base, _, form = name.partition(".")
    torch.manual_seed(7)
    if form == "train":
        from torch.export.experimental import _export_forward_backward

        build, arguments = TRAINING[base]
        module = Training(build()).train()
        with sdpa_kernel(SDPBackend.MATH):  # others have no plain gradient
            plain = torch.export.export(module, arguments, strict=False)
            program = _export_forward_backward(plain)
        module = copy.deepcopy(module)  # an export shares its buffers
        loss = module(*arguments)
        loss.backward()
        gradients = {n: p.grad for n, p in module.named_parameters()}
        targets = [
            s.target for s in program.graph_signature.output_specs if s.kind.name == "GRADIENT_TO_PARAMETER"
        ]
        buffers = dict(module.named_buffers())
        outputs = []
        for spec in program.graph_signature.output_specs:
            outputs.append(
                {
                    "LOSS_OUTPUT": lambda: loss,
                    "GRADIENT_TO_PARAMETER": lambda t=spec.target: gradients[t],
                    "BUFFER_MUTATION": lambda t=spec.target: buffers[t],
                }[spec.kind.name]()
            )
        assert targets
        write(folder, name, program, arguments, outputs)
        return
    build, arguments = CASES[base]
    module = build().eval()
    batch = {0: torch.export.Dim("batch", min=2, max=64)}
    shapes = (
        ((batch,) if base == "dynamic" else (batch, None, None)[: len(arguments)])
        if base.startswith("dynamic")
        else None
    )
    program = torch.export.export(module, arguments, dynamic_shapes=shapes, strict=False)
    outputs = flat(module(*arguments))
    if form == "core":
        program = program.run_decompositions()
    write(folder, name, program, arguments, outputs)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[2:] or [*CASES, *(f"{n}.core" for n in CASES), *(f"{n}.train" for n in TRAINING)]
    for one in wanted:
        try:
            make(target, one)
        except Exception as fault:
            print("not made:", one, type(fault).__name__, str(fault)[:300].replace("\n", " "))
