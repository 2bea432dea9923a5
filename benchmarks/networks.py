"""Networks as ONNX files with made-up weights, for measurements of speed: the usual shapes, nothing trained.

    python benchmarks/networks.py FOLDER [NAME ...]      writes NAME.onnx for each network

Images have 224 x 224 points, texts 128 tokens, the batch is 1, numbers are float32. Sources of the shapes:
the papers of the networks (ResNet, MobileNetV3, EfficientNet, SqueezeNet 1.1, DenseNet, ShuffleNetV2, ViT,
BERT, GPT-2). Batch normalisation stays a node.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IMAGE, TOKENS = 224, 128


class Graph:
    """Nodes one after another; every method returns the name of its result."""

    def __init__(self, name: str, channels: int = 0) -> None:
        self.name, self.rng = name, np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: list[Any] = []

    def input(self, shape: Sequence[int]) -> str:
        self.inputs.append(helper.make_tensor_value_info("input", TensorProto.FLOAT, shape))
        return "input"

    def constant(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape: int) -> str:
        fan = max(1, int(np.prod(shape[1:] if len(shape) == 4 else shape[:1])))
        return self.constant(self.rng.standard_normal(shape).astype(np.float32) / np.float32(fan**0.5))

    def vector(self, n: int, mean: float = 0.0) -> str:
        return self.constant((mean + 0.1 * self.rng.random(n)).astype(np.float32))

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def model(self, result: str) -> onnx.ModelProto:
        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, self.inputs, [output], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)

    # Parts of networks of images

    def convolution(
        self, x: str, before: int, after: int, size: int, stride: int = 1, groups: int = 1, bias: bool = False
    ) -> str:
        extra = [self.vector(after)] if bias else []
        return self.node(
            "Conv",
            x,
            self.weight(after, before // groups, size, size),
            *extra,
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=[size // 2] * 4,
            group=groups,
        )

    def normalised(self, x: str, n: int) -> str:
        return self.node(
            "BatchNormalization",
            x,
            self.vector(n, 1.0),
            self.vector(n),
            self.vector(n),
            self.vector(n, 1.0),
        )

    def block(self, x: str, before: int, after: int, size: int, activation: str = "", **rest: int) -> str:
        """Return a convolution, normalised, under an activation."""
        x = self.normalised(self.convolution(x, before, after, size, **rest), after)
        return self.activated(x, activation)

    def activated(self, x: str, activation: str) -> str:
        if activation == "Silu":
            return self.node("Mul", x, self.node("Sigmoid", x))
        return self.node(activation, x) if activation else x

    def pooled(self, x: str, kind: str, size: int, stride: int, pad: int = 0) -> str:
        return self.node(kind, x, kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4)

    def squeezed(self, x: str, n: int, inner: int, first: str, gate: str) -> str:
        """Return channels weighted by what their means say."""
        y = self.activated(self.convolution(self.node("GlobalAveragePool", x), n, inner, 1, bias=True), first)
        return self.node("Mul", x, self.activated(self.convolution(y, inner, n, 1, bias=True), gate))

    def classified(self, x: str, n: int, hidden: int = 0) -> str:
        x = self.node("Flatten", self.node("GlobalAveragePool", x))
        if hidden:
            x = self.node("HardSwish", self.node("Gemm", x, self.weight(n, hidden), self.vector(hidden)))
        return self.node("Gemm", x, self.weight(hidden or n, 1000), self.vector(1000))

    # Parts of networks of texts

    def dense(self, x: str, before: int, after: int) -> str:
        return self.node("Add", self.node("MatMul", x, self.weight(before, after)), self.vector(after))

    def layer_normalised(self, x: str, n: int) -> str:
        return self.node("LayerNormalization", x, self.vector(n, 1.0), self.vector(n), axis=-1, epsilon=1e-5)

    def attention(self, x: str, tokens: int, n: int, heads: int, *, causal: bool = False) -> str:
        def split(order: list[int]) -> str:
            shape = self.constant(np.array([1, tokens, heads, n // heads], np.int64))
            return self.node("Transpose", self.node("Reshape", self.dense(x, n, n), shape), perm=order)

        scores = self.node("MatMul", split([0, 2, 1, 3]), split([0, 2, 3, 1]))
        scores = self.node("Mul", scores, self.constant(np.float32((n // heads) ** -0.5)))
        if causal:
            mask = np.triu(np.full((tokens, tokens), -1e9, np.float32), 1)
            scores = self.node("Add", scores, self.constant(mask))
        found = self.node("MatMul", self.node("Softmax", scores, axis=-1), split([0, 2, 1, 3]))
        found = self.node("Transpose", found, perm=[0, 2, 1, 3])
        found = self.node("Reshape", found, self.constant(np.array([1, tokens, n], np.int64)))
        return self.dense(found, n, n)

    def gelu(self, x: str, approximate: str = "none") -> str:
        return self.node("Gelu", x, approximate=approximate)

    def transformer(
        self,
        x: str,
        tokens: int,
        n: int,
        heads: int,
        *,
        first: bool,
        causal: bool = False,
        gelu: str = "none",
    ) -> str:
        """Return a layer; ``first``: normalised before each part, else after it."""
        y = self.attention(self.layer_normalised(x, n) if first else x, tokens, n, heads, causal=causal)
        x = self.node("Add", x, y)
        x = x if first else self.layer_normalised(x, n)
        y = self.dense(self.layer_normalised(x, n) if first else x, n, 4 * n)
        x = self.node("Add", x, self.dense(self.gelu(y, gelu), 4 * n, n))
        return x if first else self.layer_normalised(x, n)


def image(graph: Graph) -> str:
    return graph.input([1, 3, IMAGE, IMAGE])


def resnet(graph: Graph, counts: Sequence[int], *, bottleneck: bool) -> str:
    x = graph.block(image(graph), 3, 64, 7, "Relu", stride=2)
    x, n = graph.pooled(x, "MaxPool", 3, 2, 1), 64
    for level, count in enumerate(counts):
        inner = 64 << level
        after = 4 * inner if bottleneck else inner
        for k in range(count):
            stride = 2 if level and not k else 1
            if bottleneck:
                y = graph.block(x, n, inner, 1, "Relu")
                y = graph.block(y, inner, inner, 3, "Relu", stride=stride)
                y = graph.block(y, inner, after, 1)
            else:
                y = graph.block(x, n, inner, 3, "Relu", stride=stride)
                y = graph.block(y, inner, inner, 3)
            x = graph.block(x, n, after, 1, stride=stride) if n != after or stride > 1 else x
            x, n = graph.node("Relu", graph.node("Add", x, y)), after
    return graph.classified(x, n)


def _eighths(value: float) -> int:
    found = max(8, int(value + 4) // 8 * 8)
    return found if found >= 0.9 * value else found + 8


def mobilenet(graph: Graph) -> str:
    x, n = graph.block(image(graph), 3, 16, 3, "HardSwish", stride=2), 16
    rows = [
        (3, 16, 16, 0, "Relu", 1),
        (3, 64, 24, 0, "Relu", 2),
        (3, 72, 24, 0, "Relu", 1),
        (5, 72, 40, 1, "Relu", 2),
        (5, 120, 40, 1, "Relu", 1),
        (5, 120, 40, 1, "Relu", 1),
        (3, 240, 80, 0, "HardSwish", 2),
        (3, 200, 80, 0, "HardSwish", 1),
        (3, 184, 80, 0, "HardSwish", 1),
        (3, 184, 80, 0, "HardSwish", 1),
        (3, 480, 112, 1, "HardSwish", 1),
        (3, 672, 112, 1, "HardSwish", 1),
        (5, 672, 160, 1, "HardSwish", 2),
        (5, 960, 160, 1, "HardSwish", 1),
        (5, 960, 160, 1, "HardSwish", 1),
    ]
    for size, inner, after, gated, activation, stride in rows:
        y = graph.block(x, n, inner, 1, activation) if inner != n else x
        y = graph.block(y, inner, inner, size, activation, stride=stride, groups=inner)
        if gated:
            y = graph.squeezed(y, inner, _eighths(inner / 4), "Relu", "HardSigmoid")
        y = graph.block(y, inner, after, 1)
        x, n = graph.node("Add", x, y) if stride == 1 and n == after else y, after
    return graph.classified(graph.block(x, n, 960, 1, "HardSwish"), 960, hidden=1280)


def efficientnet(graph: Graph) -> str:
    x, n = graph.block(image(graph), 3, 32, 3, "Silu", stride=2), 32
    rows = [
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    ]
    for factor, after, count, stride, size in rows:
        for k in range(count):
            step, inner = (1 if k else stride), factor * n
            y = graph.block(x, n, inner, 1, "Silu") if factor > 1 else x
            y = graph.block(y, inner, inner, size, "Silu", stride=step, groups=inner)
            y = graph.block(graph.squeezed(y, inner, n // 4, "Silu", "Sigmoid"), inner, after, 1)
            x, n = graph.node("Add", x, y) if step == 1 and n == after else y, after
    return graph.classified(graph.block(x, n, 1280, 1, "Silu"), 1280)


def squeezenet(graph: Graph) -> str:
    def relu(x: str, before: int, after: int, size: int, stride: int = 1) -> str:
        return graph.node("Relu", graph.convolution(x, before, after, size, stride, bias=True))

    x, n = relu(image(graph), 3, 64, 3, 2), 64
    for pool, inner, outer in [
        (1, 16, 64),
        (0, 16, 64),
        (1, 32, 128),
        (0, 32, 128),
        (1, 48, 192),
        (0, 48, 192),
        (0, 64, 256),
        (0, 64, 256),
    ]:
        x = graph.pooled(x, "MaxPool", 3, 2) if pool else x
        y = relu(x, n, inner, 1)
        x, n = graph.node("Concat", relu(y, inner, outer, 1), relu(y, inner, outer, 3), axis=1), 2 * outer
    return graph.node("Flatten", graph.node("GlobalAveragePool", relu(x, n, 1000, 1)))


def densenet(graph: Graph) -> str:
    x = graph.block(image(graph), 3, 64, 7, "Relu", stride=2)
    x, n = graph.pooled(x, "MaxPool", 3, 2, 1), 64
    for level, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            y = graph.node("Relu", graph.normalised(x, n))
            y = graph.block(y, n, 128, 1, "Relu")
            x, n = graph.node("Concat", x, graph.convolution(y, 128, 32, 3), axis=1), n + 32
        x = graph.node("Relu", graph.normalised(x, n))
        if level < 3:
            x, n = graph.pooled(graph.convolution(x, n, n // 2, 1), "AveragePool", 2, 2), n // 2
    return graph.classified(x, n)


def shufflenet(graph: Graph) -> str:
    def numbers(*values: int) -> str:
        return graph.constant(np.array(values, np.int64))

    def branch(x: str, before: int, inner: int, stride: int) -> str:
        y = graph.block(x, before, inner, 1, "Relu")
        y = graph.block(y, inner, inner, 3, stride=stride, groups=inner)
        return graph.block(y, inner, inner, 1, "Relu")

    x = graph.block(image(graph), 3, 24, 3, "Relu", stride=2)
    x, n, size = graph.pooled(x, "MaxPool", 3, 2, 1), 24, 56
    for after, count in ((116, 4), (232, 8), (464, 4)):
        inner, size = after // 2, size // 2
        for k in range(count):
            if k:
                left = graph.node("Slice", x, numbers(0), numbers(inner), numbers(1))
                right = branch(
                    graph.node("Slice", x, numbers(inner), numbers(after), numbers(1)), inner, inner, 1
                )
            else:
                left = graph.block(graph.block(x, n, n, 3, stride=2, groups=n), n, inner, 1, "Relu")
                right = branch(x, n, inner, 2)
            x = graph.node("Concat", left, right, axis=1)
            x = graph.node("Reshape", x, numbers(1, 2, inner, size, size))
            x = graph.node("Transpose", x, perm=[0, 2, 1, 3, 4])
            x, n = graph.node("Reshape", x, numbers(1, after, size, size)), after
    return graph.classified(graph.block(x, n, 1024, 1, "Relu"), 1024)


def vit(graph: Graph) -> str:
    n, tokens = 192, 197
    x = graph.node(
        "Conv",
        image(graph),
        graph.weight(n, 3, 16, 16),
        graph.vector(n),
        kernel_shape=[16, 16],
        strides=[16, 16],
    )
    x = graph.node("Reshape", x, graph.constant(np.array([1, n, 196], np.int64)))
    x = graph.node("Concat", graph.weight(1, 1, n), graph.node("Transpose", x, perm=[0, 2, 1]), axis=1)
    x = graph.node("Add", x, graph.weight(1, tokens, n))
    for _ in range(12):
        x = graph.transformer(x, tokens, n, 3, first=True)
    x = graph.node("Gather", graph.layer_normalised(x, n), graph.constant(np.int64(0)), axis=1)
    return graph.node("Gemm", x, graph.weight(n, 1000), graph.vector(1000))


def text(graph: Graph, layers: int, *, first: bool) -> str:
    """Return what layers make of embedded tokens; ``first``: as in GPT-2, else as in BERT."""
    x = graph.input([1, TOKENS, 768])
    x = x if first else graph.layer_normalised(x, 768)
    gelu = "tanh" if first else "none"
    for _ in range(layers):
        x = graph.transformer(x, TOKENS, 768, 12, first=first, causal=first, gelu=gelu)
    return graph.layer_normalised(x, 768) if first else x


NETWORKS: dict[str, Callable[[Graph], str]] = {
    "resnet18": lambda g: resnet(g, (2, 2, 2, 2), bottleneck=False),
    "resnet50": lambda g: resnet(g, (3, 4, 6, 3), bottleneck=True),
    "mobilenetv3": mobilenet,
    "efficientnet_b0": efficientnet,
    "squeezenet": squeezenet,
    "densenet121": densenet,
    "shufflenetv2": shufflenet,
    "vit_tiny": vit,
    "bert_2": lambda g: text(g, 2, first=False),
    "bert_12": lambda g: text(g, 12, first=False),
    "gpt2": lambda g: text(g, 12, first=True),
}


def written(name: str, folder: Path) -> Path:
    """Write a network as a file, unless it is there; return where."""
    path = folder / f"{name}.onnx"
    if not path.exists():
        graph = Graph(name)
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(graph.model(NETWORKS[name](graph)), path)
    return path


def main() -> None:
    folder, *names = sys.argv[1:]
    for name in names or NETWORKS:
        print(written(name, Path(folder)))


if __name__ == "__main__":
    main()
