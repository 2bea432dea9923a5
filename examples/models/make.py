"""Writes cnn.onnx: two convolutions, two poolings and a fully connected layer, with made-up weights.

Usage: python examples/models/make.py (needs the package onnx). The weights are from a fixed seed, so the file
is the same each time; it is no trained network.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPES = {"W1": (4, 1, 5, 5), "b1": (4,), "W2": (8, 4, 5, 5), "b2": (8,), "W3": (128, 10), "b3": (10,)}


def main() -> None:
    """Write the file beside this one."""
    generator = np.random.RandomState(1)
    weights = [
        numpy_helper.from_array((generator.standard_normal(shape) / 8).astype(np.float32), name)
        for name, shape in SHAPES.items()
    ]
    nodes = [
        helper.make_node("Conv", ["image", "W1", "b1"], ["c1"], name="conv1"),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], name="pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "W2", "b2"], ["c2"], name="conv2"),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], name="pool2", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p2"], ["f"], name="flatten"),
        helper.make_node("Gemm", ["f", "W3", "b3"], ["g"], name="dense"),
        helper.make_node("Softmax", ["g"], ["digit"], name="softmax", axis=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 28, 28])
    digit = helper.make_tensor_value_info("digit", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "cnn", [image], [digit], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    Path(__file__).with_name("cnn.onnx").write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
