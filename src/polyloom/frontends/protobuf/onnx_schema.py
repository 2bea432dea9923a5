"""The messages of ONNX that are read. Source: onnx.proto, whose field numbers never change."""

from __future__ import annotations

from functools import cache
from typing import Any

from polyloom.frontends.protobuf.schema import message_types

ONNX = {
    "ModelProto": {
        "ir_version": "1 int64",
        "producer_name": "2 string",
        "graph": "7 GraphProto",
        "opset_import": "8 OperatorSetIdProto*",
        "functions": "25 FunctionProto*",
    },
    "OperatorSetIdProto": {"domain": "1 string", "version": "2 int64"},
    "GraphProto": {
        "node": "1 NodeProto*",
        "name": "2 string",
        "initializer": "5 TensorProto*",
        "input": "11 ValueInfoProto*",
        "output": "12 ValueInfoProto*",
        "value_info": "13 ValueInfoProto*",
        "sparse_initializer": "15 SparseTensorProto*",
    },
    "NodeProto": {
        "input": "1 string*",
        "output": "2 string*",
        "name": "3 string",
        "op_type": "4 string",
        "attribute": "5 AttributeProto*",
        "domain": "7 string",
        "overload": "8 string",
    },
    "AttributeProto": {
        "name": "1 string",
        "f": "2 float",
        "i": "3 int64",
        "s": "4 bytes",
        "t": "5 TensorProto",
        "g": "6 GraphProto",
        "floats": "7 float*",
        "ints": "8 int64*",
        "strings": "9 bytes*",
        "tensors": "10 TensorProto*",
        "graphs": "11 GraphProto*",
        "type": "20 int32",
        "ref_attr_name": "21 string",
        "sparse_tensor": "22 SparseTensorProto",
    },
    "TensorProto": {
        "dims": "1 int64*",
        "data_type": "2 int32",
        "float_data": "4 float*",
        "int32_data": "5 int32*",
        "string_data": "6 bytes*",
        "int64_data": "7 int64*",
        "name": "8 string",
        "raw_data": "9 bytes",
        "double_data": "10 double*",
        "uint64_data": "11 uint64*",
        "external_data": "13 StringStringEntryProto*",
        "data_location": "14 int32",
    },
    "SparseTensorProto": {"values": "1 TensorProto", "indices": "2 TensorProto", "dims": "3 int64*"},
    "StringStringEntryProto": {"key": "1 string", "value": "2 string"},
    "ValueInfoProto": {"name": "1 string", "type": "2 TypeProto"},
    "TypeProto": {
        "tensor_type": "1 TensorTypeProto",
        "sequence_type": "4 OtherTypeProto",
        "map_type": "5 OtherTypeProto",
        "sparse_tensor_type": "8 OtherTypeProto",
        "optional_type": "9 OtherTypeProto",
    },
    "TensorTypeProto": {"elem_type": "1 int32", "shape": "2 TensorShapeProto"},
    "OtherTypeProto": {},
    "TensorShapeProto": {"dim": "1 DimensionProto*"},
    "DimensionProto": {"dim_value": "1 int64", "dim_param": "2 string"},
    "FunctionProto": {
        "name": "1 string",
        "input": "4 string*",
        "output": "5 string*",
        "attribute": "6 string*",
        "node": "7 NodeProto*",
        "opset_import": "9 OperatorSetIdProto*",
        "domain": "10 string",
        "attribute_proto": "11 AttributeProto*",
        "overload": "13 string",
    },
}
"""Messages of messages (``TypeProto.Tensor``) have names of their own here; a file does not hold names."""


@cache
def onnx_messages() -> dict[str, Any]:
    """Return the message classes, made once."""
    return message_types("polyloom.onnx", ONNX)
