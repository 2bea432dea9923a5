"""Small ONNX files, written with our own statement of the messages: no other package is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from polyloom.frontends.onnx.tensors import TYPES
from polyloom.frontends.protobuf.onnx_schema import onnx_messages

NUMBERS = {kind.dtype: number for number, kind in TYPES.items()}
Shape = Sequence[int | str]


def tensor(name: str, array: Any) -> Any:
    found = np.asarray(array)
    message = onnx_messages()["TensorProto"](name=name.encode(), data_type=NUMBERS[found.dtype])
    message.dims.extend(found.shape)
    message.raw_data = found.tobytes()
    return message


def attribute(name: str, value: Any) -> Any:
    message = onnx_messages()["AttributeProto"](name=name.encode())
    match value:
        case float():
            message.f, message.type = value, 1
        case int():
            message.i, message.type = value, 2
        case str():
            message.s, message.type = value.encode(), 3
        case np.ndarray():
            message.t.CopyFrom(tensor("", value))
            message.type = 4
        case [*numbers] if all(isinstance(n, int) for n in numbers):
            message.ints.extend(numbers)
            message.type = 7
        case _:
            message.g.CopyFrom(value)
            message.type = 5
    return message


def node(op: str, inputs: str, outputs: str, name: str = "", domain: str = "", **attributes: Any) -> Any:
    """Make a node; names are separated by spaces, ``-`` is a missing one."""
    message = onnx_messages()["NodeProto"](op_type=op.encode(), name=name.encode(), domain=domain.encode())
    message.input.extend(b"" if n == "-" else n.encode() for n in inputs.split())
    message.output.extend(b"" if n == "-" else n.encode() for n in outputs.split())
    message.attribute.extend(attribute(k, v) for k, v in attributes.items())
    return message


def declared(name: str, shape: Shape | None, dtype: str = "float32") -> Any:
    message = onnx_messages()["ValueInfoProto"](name=name.encode())
    message.type.tensor_type.elem_type = NUMBERS[np.dtype(dtype)]
    if shape is not None:
        message.type.tensor_type.shape.SetInParent()
        for extent in shape:
            dimension = message.type.tensor_type.shape.dim.add()
            if isinstance(extent, int):
                dimension.dim_value = extent
            else:
                dimension.dim_param = extent.encode()
    return message


def graph(
    nodes: Sequence[Any],
    inputs: Mapping[str, Any],
    outputs: Sequence[str],
    constants: Mapping[str, Any] | None = None,
    name: str = "net",
) -> Any:
    """Make a graph; ``inputs``: shapes, or declared inputs, by name."""
    message = onnx_messages()["GraphProto"](name=name.encode())
    message.node.extend(nodes)
    message.initializer.extend(tensor(k, v) for k, v in (constants or {}).items())
    for key, shape in inputs.items():
        message.input.append(shape if hasattr(shape, "type") else declared(key, shape))
    message.output.extend(onnx_messages()["ValueInfoProto"](name=o.encode()) for o in outputs)
    return message


def function(name: str, inputs: str, outputs: str, nodes: Sequence[Any], domain: str = "own") -> Any:
    message = onnx_messages()["FunctionProto"](name=name.encode(), domain=domain.encode())
    message.input.extend(n.encode() for n in inputs.split())
    message.output.extend(n.encode() for n in outputs.split())
    message.node.extend(nodes)
    message.opset_import.add(version=18)
    return message


def model(body: Any, opset: int = 18, functions: Sequence[Any] = ()) -> bytes:
    message = onnx_messages()["ModelProto"](ir_version=9)
    message.graph.CopyFrom(body)
    message.opset_import.add(version=opset)
    message.functions.extend(functions)
    return bytes(message.SerializeToString())
