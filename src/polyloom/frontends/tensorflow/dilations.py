"""Dilated convolutions as TensorFlow writes them on a CPU, back in one node.

    SpaceToBatchND, convolution, BatchToSpaceND      becomes      convolution with dilations and pads

TensorFlow splits an image into its phases, convolves each, and puts the phases together; that takes five
statements where one does. Nodes that another form feeds or reads stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.model import Graph, Node

Integers = npt.NDArray[np.int64]

_CONVOLUTIONS = ("Conv2D", "DepthwiseConv2dNative", "Conv3D")


def with_dilations(graph: Graph) -> Graph:
    """Return the graph with each such chain as one convolution."""
    producers = {node.outputs[0]: node for node in graph.nodes if node.outputs}
    uses = Counter(name for node in graph.nodes for name in node.inputs)
    uses.update(tensor.name for tensor in graph.outputs)
    nodes = tuple(_folded(node, graph, producers, uses) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _folded(node: Node, graph: Graph, producers: Mapping[str, Node], uses: Mapping[str, int]) -> Node:
    """Return what a BatchToSpaceND becomes; the other two then have no use and vanish."""
    if node.op != "BatchToSpaceND" or len(node.inputs) != 3:
        return node
    middle = producers.get(node.inputs[0])
    if middle is None or middle.op not in _CONVOLUTIONS or uses[node.inputs[0]] != 1:
        return node
    before = producers.get(middle.inputs[0])
    if before is None or before.op != "SpaceToBatchND" or uses[middle.inputs[0]] != 1:
        return node
    pads = _pads(graph, node, before)
    if pads is None or not _plain(middle):
        return node
    attributes = _dilated(middle, graph.constants[node.inputs[1]], pads)
    return Node(node.name, middle.op, (before.inputs[0], *middle.inputs[1:]), node.outputs, attributes)


def _pads(graph: Graph, after: Node, before: Node) -> Integers | None:
    """Return the pads around the whole, less what is cropped; None where that is not known or is negative."""
    wanted = (before.inputs[1], before.inputs[2], after.inputs[1], after.inputs[2])
    if len(before.inputs) != 3 or any(name not in graph.constants for name in wanted):
        return None
    blocks, pads, same, crops = (np.asarray(graph.constants[name], np.int64) for name in wanted)
    if not np.array_equal(blocks, same) or pads.shape != crops.shape or blocks.size > 3:
        return None
    left = pads - crops
    return left if left.size and left.min() >= 0 else None


def _plain(convolution: Node) -> bool:
    """Tell whether a convolution moves by 1, has no padding and no dilation, and channels last."""
    attributes = convolution.attributes
    numbers = (*attributes.get("strides", ()), *attributes.get("dilations", ()))
    layout = attributes.get("data_format", "NHWC")
    return (
        attributes.get("padding") == "VALID" and all(n == 1 for n in numbers) and not layout.startswith("NC")
    )


def _dilated(convolution: Node, blocks: npt.NDArray[np.generic], pads: Integers) -> dict[str, object]:
    """Return the attributes of the one convolution; spatial axes that are no blocks keep dilation 1."""
    strides = convolution.attributes["strides"]
    dilations, explicit = [1] * len(strides), [0] * (2 * len(strides))
    for k in range(len(pads)):
        dilations[1 + k] = int(blocks[k])
        explicit[2 + 2 * k : 4 + 2 * k] = (int(pads[k][0]), int(pads[k][1]))
    found = {"dilations": tuple(dilations), "padding": "EXPLICIT", "explicit_paddings": tuple(explicit)}
    return {**convolution.attributes, **found}
