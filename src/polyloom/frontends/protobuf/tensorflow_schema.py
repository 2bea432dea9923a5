"""The messages of TensorFlow that are read: graphs, functions, tensors, SavedModels, checkpoints' indices.

Source: tensorflow/core/framework and tensorflow/core/protobuf, whose field numbers never change.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from polyloom.frontends.protobuf.schema import message_types

TENSORFLOW = {
    "GraphDef": {"node": "1 NodeDef*", "library": "2 FunctionDefLibrary", "versions": "4 VersionDef"},
    "VersionDef": {"producer": "1 int32", "min_consumer": "2 int32"},
    "NodeDef": {
        "name": "1 string",
        "op": "2 string",
        "input": "3 string*",
        "device": "4 string",
        "attr": "5 map<string,AttrValue>",
    },
    "AttrValue": {
        "list": "1 AttrList",
        "s": "2 bytes",
        "i": "3 int64",
        "f": "4 float",
        "b": "5 bool",
        "type": "6 int32",
        "shape": "7 TensorShapeProto",
        "tensor": "8 TensorProto",
        "placeholder": "9 string",
        "func": "10 NameAttrList",
    },
    "AttrList": {
        "s": "2 bytes*",
        "i": "3 int64*",
        "f": "4 float*",
        "b": "5 bool*",
        "type": "6 int32*",
        "shape": "7 TensorShapeProto*",
        "tensor": "8 TensorProto*",
        "func": "9 NameAttrList*",
    },
    "NameAttrList": {"name": "1 string", "attr": "2 map<string,AttrValue>"},
    "TensorShapeProto": {"dim": "2 Dimension*", "unknown_rank": "3 bool"},
    "Dimension": {"size": "1 int64", "name": "2 string"},
    "TensorProto": {
        "dtype": "1 int32",
        "tensor_shape": "2 TensorShapeProto",
        "tensor_content": "4 bytes",
        "float_val": "5 float*",
        "double_val": "6 double*",
        "int_val": "7 int32*",
        "string_val": "8 bytes*",
        "int64_val": "10 int64*",
        "bool_val": "11 bool*",
        "half_val": "13 int32*",
        "uint32_val": "16 uint32*",
        "uint64_val": "17 uint64*",
        "float8_val": "18 bytes",
    },
    "FunctionDefLibrary": {"function": "1 FunctionDef*", "gradient": "2 GradientDef*"},
    "GradientDef": {"function_name": "1 string", "gradient_func": "2 string"},
    "FunctionDef": {
        "signature": "1 OpDef",
        "node_def": "3 NodeDef*",
        "ret": "4 map<string,string>",
        "attr": "5 map<string,AttrValue>",
        "control_ret": "6 map<string,string>",
    },
    "OpDef": {"name": "1 string", "input_arg": "2 ArgDef*", "output_arg": "3 ArgDef*"},
    "ArgDef": {
        "name": "1 string",
        "type": "3 int32",
        "type_attr": "4 string",
        "number_attr": "5 string",
        "type_list_attr": "6 string",
    },
    "SavedModel": {"saved_model_schema_version": "1 int64", "meta_graphs": "2 MetaGraphDef*"},
    "MetaGraphDef": {
        "meta_info_def": "1 MetaInfoDef",
        "graph_def": "2 GraphDef",
        "saver_def": "3 SaverDef",
        "signature_def": "5 map<string,SignatureDef>",
        "object_graph_def": "7 SavedObjectGraph",
    },
    "MetaInfoDef": {"tags": "4 string*", "tensorflow_version": "5 string"},
    "SaverDef": {
        "filename_tensor_name": "1 string",
        "save_tensor_name": "2 string",
        "restore_op_name": "3 string",
    },
    "SignatureDef": {
        "inputs": "1 map<string,TensorInfo>",
        "outputs": "2 map<string,TensorInfo>",
        "method_name": "3 string",
    },
    "TensorInfo": {"name": "1 string", "dtype": "2 int32", "tensor_shape": "3 TensorShapeProto"},
    "SavedObjectGraph": {
        "nodes": "1 SavedObject*",
        "concrete_functions": "2 map<string,SavedConcreteFunction>",
    },
    "SavedObject": {
        "children": "1 ObjectReference*",
        "asset": "5 Empty",
        "function": "6 SavedFunction",
        "variable": "7 SavedVariable",
        "bare_concrete_function": "8 SavedBareConcreteFunction",
        "constant": "9 SavedConstant",
        "resource": "10 Empty",
        "captured_tensor": "12 CapturedTensor",
    },
    "Empty": {},
    "ObjectReference": {"node_id": "1 int32", "local_name": "2 string"},
    "SavedFunction": {"concrete_functions": "1 string*"},
    "SavedVariable": {
        "dtype": "1 int32",
        "shape": "2 TensorShapeProto",
        "trainable": "3 bool",
        "name": "6 string",
    },
    "SavedConcreteFunction": {"bound_inputs": "2 int32*"},
    "SavedBareConcreteFunction": {"concrete_function_name": "1 string"},
    "SavedConstant": {"operation": "1 string"},
    "CapturedTensor": {"name": "1 string", "concrete_function": "2 string"},
    "TrackableObjectGraph": {"nodes": "1 TrackableObject*"},
    "TrackableObject": {"children": "1 ObjectReference*", "attributes": "2 SerializedTensor*"},
    "SerializedTensor": {"name": "1 string", "full_name": "2 string", "checkpoint_key": "3 string"},
    "BundleHeaderProto": {"num_shards": "1 int32", "endianness": "2 int32", "version": "3 VersionDef"},
    "BundleEntryProto": {
        "dtype": "1 int32",
        "shape": "2 TensorShapeProto",
        "shard_id": "3 int32",
        "offset": "4 int64",
        "size": "5 int64",
        "crc32c": "6 fixed32",
    },
}
"""Of the fields, those that importing needs. Messages of messages have names of their own here."""


@cache
def tensorflow_messages() -> dict[str, Any]:
    """Return the message classes, made once."""
    return message_types("polyloom.tensorflow", TENSORFLOW)
