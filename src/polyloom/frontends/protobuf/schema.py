"""Message types made at run time from a short statement of their fields.

    {"NodeProto": {"input": "1 string*", "attribute": "5 AttributeProto*"}}

A field is its number, then its type: a scalar type of protobuf, a message of the same schema, or
``map<string,MESSAGE>``; ``*`` stands for repeated. Enums are ``int32``: their bytes are the same. Fields that
are left out are skipped by the reader, so a statement holds what is used and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Schema = Mapping[str, Mapping[str, str]]
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "double": _FIELD.TYPE_DOUBLE,
    "float": _FIELD.TYPE_FLOAT,
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
    "int32": _FIELD.TYPE_INT32,
    "uint32": _FIELD.TYPE_UINT32,
    "fixed32": _FIELD.TYPE_FIXED32,
    "bool": _FIELD.TYPE_BOOL,
    "string": _FIELD.TYPE_BYTES,
    "bytes": _FIELD.TYPE_BYTES,
}
"""``string`` is read as bytes too: what is no UTF-8 is then a fault of one name, not of the whole file."""


def message_types(package: str, schema: Schema) -> dict[str, Any]:
    """Return the message class of each message of a schema.

    Every field that is not repeated tells whether it is there (``HasField``). The classes are in a descriptor
    pool of their own: a program that also imports the ``onnx`` or ``tensorflow`` package has other statements
    of the same messages.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")
    for name, fields in schema.items():
        _add_message(file.message_type.add(name=name), f".{package}", fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{n}")) for n in schema}


def _add_message(message: Any, package: str, fields: Mapping[str, str]) -> None:
    for name, text in fields.items():
        number, kind = text.split()
        field = message.field.add(name=name, number=int(number))
        repeated = kind.endswith("*") or kind.startswith("map<")
        field.label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
        if kind.startswith("map<"):
            key, value = kind[4:-1].split(",")
            kind = _add_entry(message, package, name, key, value)
        _set_type(field, package, kind.removesuffix("*"))


def _add_entry(message: Any, package: str, field: str, key: str, value: str) -> str:
    """Add the message of a map's entries; return its name. Keys are text: bytes cannot be keys."""
    name = "".join(part.capitalize() for part in field.split("_")) + "Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (part, kind) in enumerate((("key", key), ("value", value)), start=1):
        added = entry.field.add(name=part, number=number, label=_FIELD.LABEL_OPTIONAL)
        if part == "key" and kind == "string":
            added.type = _FIELD.TYPE_STRING
        else:
            _set_type(added, package, kind)
    return f"{message.name}.{name}"


def _set_type(field: Any, package: str, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = f"{package}.{kind}"
