"""Graphs of TensorFlow on bfloat16, with what each operation defines: computed in float32, rounded once.

TensorFlow's own kernels round inside of a few operations on bfloat16 (softmax, ELU, running sums). So a node

    y = Softmax(x)      becomes, where its type T is bfloat16,      y = Cast(Softmax(Cast(x)))

with both casts and the softmax of TensorFlow. Operations whose types may be anything only move elements, and
stay; so do those that have a state. The bodies of functions are rewritten in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

FLOAT32, BFLOAT16 = 1, 14
"""Numbers of types in TensorFlow's files, which never change."""

Refer = Callable[[str, str, int, int], str]
"""How a result is called: from its node, the name of the result, its place in that and in all results."""


def in_float32(definition: Any) -> dict[str, str]:
    """Rewrite a GraphDef in place; return what results are called now, where that is another name."""
    for function in definition.library.function:
        moved = _rewrite(function.node_def, lambda node, result, k, place: f"{node}:{result}:{k}", ":y:0")
        for name, result in function.ret.items():
            function.ret[name] = moved.get(result, result)
    return _rewrite(definition.node, lambda node, result, k, place: f"{node}:{place}" if place else node, "")


def _rewrite(nodes: Any, refer: Refer, first: str) -> dict[str, str]:
    """Rewrite nodes in place; ``first``: what follows a cast's name where its result is meant."""
    moved: dict[str, str] = {}
    found: list[Any] = []
    for node in nodes:
        found += _Widened(node, refer, first, moved).nodes if _narrow_types(node) else [node]
    for node in found:
        if not node.name.endswith(_Widened.NARROW):
            given = [moved.get(_plain(name), name) for name in node.input]
            del node.input[:]
            node.input.extend(given)
    copied = [type(node).FromString(node.SerializeToString()) for node in found]
    del nodes[:]
    nodes.extend(copied)
    return moved


def _plain(name: str) -> str:
    """Return the one name of a graph's result: the first of a node is also called ``node:0``."""
    return name.removesuffix(":0") if name.count(":") == 1 else name


def _definition(node: Any) -> Any:
    registry: Any = import_module("tensorflow.python.framework.op_def_registry")
    return registry.get(node.op)


def _narrow_types(node: Any) -> list[str]:
    """Return the attributes of a node that say bfloat16, where the operation computes with numbers."""
    known = _definition(node)
    if known is None or known.is_stateful or node.op == "Cast":
        return []
    return [
        a.name
        for a in known.attr
        if node.attr[a.name].type == BFLOAT16 and FLOAT32 in a.allowed_values.list.type
    ]


@dataclass
class _Widened:
    """A node in float32 with casts around it; ``moved`` learns what its results are called."""

    NARROW = "/polyloom_bfloat16"

    node: Any
    refer: Refer
    first: str
    moved: dict[str, str]
    nodes: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        known, kinds = _definition(self.node), _narrow_types(self.node)
        wide = type(self.node).FromString(self.node.SerializeToString())
        given = list(self.node.input)
        for place, (argument, _) in enumerate(_each(self.node, known.input_arg)):
            if argument.type_attr in kinds:
                name = f"{self.node.name}/polyloom_float32_{place}"
                self._cast(name, given[place], BFLOAT16, FLOAT32)
                given[place] = name + self.first
        del wide.input[:]
        wide.input.extend(given)
        for kind in kinds:
            wide.attr[kind].type = FLOAT32
        self.nodes.append(wide)
        for place, (argument, within) in enumerate(_each(self.node, known.output_arg)):
            if argument.type_attr in kinds:
                name = f"{self.node.name}/{place}{self.NARROW}"
                result = self.refer(self.node.name, argument.name, within, place)
                self._cast(name, result, FLOAT32, BFLOAT16)
                self.moved[result] = name + self.first

    def _cast(self, name: str, given: str, source: int, target: int) -> None:
        cast = type(self.node)(name=name, op="Cast", input=[given], device=self.node.device)
        cast.attr["SrcT"].type, cast.attr["DstT"].type = source, target
        cast.attr["Truncate"].b = False
        self.nodes.append(cast)


def _each(node: Any, arguments: Any) -> Iterator[tuple[Any, int]]:
    """Give each operand or result with its place among those that its definition has under one name."""
    for argument in arguments:
        listed = argument.type_list_attr
        count = node.attr[argument.number_attr].i if argument.number_attr else 1
        for within in range(len(node.attr[listed].list.type) if listed else count):
            yield argument, within
