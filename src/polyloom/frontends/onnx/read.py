"""``ModelProto`` to a graph: constants as arrays, attributes as values, the file's own functions inlined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from polyloom.diagnostics import Unsupported, error
from polyloom.frontends.graph.consistency import check_names
from polyloom.frontends.graph.model import Graph, GraphTensor, Node, widened, widened_end, widened_name
from polyloom.frontends.graph.refusal import Refusal, unsupported
from polyloom.frontends.onnx import bfloat16
from polyloom.frontends.onnx.narrow import (
    DOMAIN,
    FORMATS,
    NAMES,
    NUMBERS,
    Narrow,
    Unusable,
    on_wide,
)
from polyloom.frontends.onnx.tensors import TYPES, Place, Unreadable, array_of, narrow_of, type_name
from polyloom.frontends.protobuf.onnx_schema import onnx_messages
from polyloom.frontends.protobuf.reading import broken, parse, read_bytes, text
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]
OLDEST = 6
"""The first opset that is read; 7 brought the broadcasting of NumPy, 6 says it by attributes."""

DEEPEST = 20
"""How deep functions of the file may call each other."""

UNSTATED = 0
"""The version of an operation whose domain the file gives no opset."""

MOST_NODES = 100_000
"""Nodes after inlining at most."""


def read_graph(path: Path | bytes) -> Graph:
    """Return the graph of an ONNX file. Errors: ``file-...``, ``model-broken``, ``model-opset``."""
    if isinstance(path, bytes):
        return graph_of_bytes(path, "the model", Place(None))
    data = read_bytes(path)
    return graph_of_bytes(data, f"`{path}`", Place(path.parent))


def graph_of_bytes(data: bytes, what: str, place: Place) -> Graph:
    """Return the graph of a model's bytes; ``what`` is its name in messages."""
    model = parse(onnx_messages()["ModelProto"], data, what)
    if not model.HasField("graph"):
        raise broken(what, "it has no graph: it is no ONNX model")
    opsets = _opsets(model.opset_import)
    default = opsets.get("", OLDEST if opsets else 1)
    if default < OLDEST:
        helps = ["convert it: `onnx.version_converter.convert_version(model, 13)`"]
        message = f"{what} is of opset {default}; Polyloom reads {OLDEST} and later"
        raise Unsupported(error("model-opset", message, helps=helps))
    functions = {(_domain(f.domain), text(f.name), text(f.overload)): f for f in model.functions}
    reader = _Reader(place, functions, _free_ending(data))
    graph = reader.graph(model.graph, opsets, {}, whole=True)
    inputs = {t.name for t in graph.inputs if t.other_type == bfloat16.NAME}
    return bfloat16.rounded(graph, inputs | reader.bfloats)


def _opsets(entries: Any) -> dict[str, int]:
    """Return the opset of each domain that a model or function names. Errors: ``model-broken``."""
    found: dict[str, int] = {}
    for entry in entries:
        if found.setdefault(_domain(entry.domain), entry.version) != entry.version:
            raise broken("the model", f"it is of two opsets of the domain `{text(entry.domain)}`")
    return found


def _domain(name: bytes) -> str:
    found = text(name)
    return "" if found == "ai.onnx" else f"{found} of the file" if found == DOMAIN else found


def _free_ending(data: bytes) -> str:
    """Return an ending of the names of wide tensors that no name in the file has."""
    ending = widened_name("")
    while ending.encode() in data:
        ending += "'"
    return ending


@dataclass
class _Reader:
    place: Place
    functions: Mapping[tuple[str, str, str], Any]
    ending: str
    count: int = 0
    calls: int = 0
    prefixes: set[str] = field(default_factory=set)
    depth: int = 0
    bfloats: set[str] = field(default_factory=set)
    around: Mapping[str, str] = field(default_factory=dict)
    """The formats of the narrow constants that bodies of control flow may read."""

    def graph(
        self, graph: Any, opsets: Mapping[str, int], given: Mapping[str, Any], *, whole: bool = False
    ) -> Graph:
        """Return a graph or a body; ``given``: attributes of the function around it.

        ``whole``: it is the model's, which may be given and give tensors of narrow formats.
        """
        constants: dict[str, NDArray] = {}
        unreadable: dict[str, str] = {}
        formats: dict[str, str] = {}
        for tensor in graph.initializer:
            if any(text(tensor.name) in known for known in (constants, unreadable, formats)):
                raise broken("the model", f"it has two constants `{text(tensor.name)}`")
            self._constant(text(tensor.name), tensor, constants, unreadable, formats)
        for sparse in graph.sparse_initializer:
            unreadable[text(sparse.values.name)] = "a sparse constant"
        stated = tuple(map(_tensor, graph.input))
        held = {*constants, *unreadable, *formats}
        inputs = tuple(t for t in stated if t.name not in held)
        if whole:
            kinds = {text(info.name): info.type.tensor_type.elem_type for info in graph.input}
            formats |= {t.name: NAMES[kinds[t.name]] for t in inputs if kinds[t.name] in FORMATS}
        outer = {name: form for name, form in self.around.items() if name not in _defined(graph)}
        self.around, before = {**outer, **formats}, self.around
        read = [*self._without_constants(self.nodes(graph.node, opsets, given), constants, formats)]
        self.around = before
        formats = {**outer, **formats}
        outputs = tuple(map(_tensor, graph.output))
        results = set() if whole else {o.name for o in outputs}
        nodes = widened(read, formats, unreadable, results, on_wide, self.wide_name)
        declared = (*(t for t in stated if t.name in held), *map(_tensor, graph.value_info))
        if whole:
            inputs, outputs = (tuple(self._widened(t, formats) for t in ends) for ends in (inputs, outputs))
        found = Graph(text(graph.name), nodes, inputs, outputs, constants, unreadable, declared)
        check_names(found)
        return found

    def _widened(self, tensor: GraphTensor, formats: Mapping[str, str]) -> GraphTensor:
        """Return an input or output; of a narrow format as programs hold it."""
        if tensor.name not in formats:
            return tensor
        return widened_end(tensor, FORMATS[NUMBERS[formats[tensor.name]]], self.wide_name(tensor.name))

    def wide_name(self, name: str) -> str:
        """Return the name of the wide tensor that holds a narrow one."""
        return name + self.ending

    def _without_constants(
        self, nodes: Sequence[Node], constants: dict[str, NDArray], formats: dict[str, str]
    ) -> Iterator[Node]:
        """Yield nodes; those that are constants of narrow formats become constants of the graph."""
        for node in nodes:
            value = node.attributes.get("value")
            if node.op == "Constant" and isinstance(value, Narrow) and not node.domain:
                self._held(node.outputs[0], value, constants, formats)
            else:
                yield node

    def _constant(
        self,
        name: str,
        tensor: Any,
        constants: dict[str, NDArray],
        unreadable: dict[str, str],
        formats: dict[str, str],
    ) -> None:
        try:
            found = narrow_of(tensor, self.place)
            if found is None:
                constants[name] = array_of(tensor, self.place)
            else:
                self._held(name, found, constants, formats)
        except Unreadable as reason:
            unreadable[name] = str(reason)

    def _held(self, name: str, found: Narrow, constants: dict[str, NDArray], formats: dict[str, str]) -> None:
        """Add a constant of a narrow format; one of bfloat16 is a tensor like others (``bfloat16``)."""
        if found.kind == bfloat16.NUMBER:
            constants[name] = found.values
            self.bfloats.add(name)
        else:
            constants[self.wide_name(name)] = found.values
            formats[name] = NAMES[found.kind]

    def nodes(self, nodes: Any, opsets: Mapping[str, int], given: Mapping[str, Any]) -> tuple[Node, ...]:
        """Return nodes with calls of the file's functions replaced by their bodies."""
        found: list[Node] = []
        self.count += len(nodes)
        if self.count > MOST_NODES:
            raise broken("the model", f"more than {MOST_NODES} nodes")
        for node in nodes:
            read = self._node(node, opsets, given)
            function = self.functions.get((read.domain, read.op, text(node.overload)))
            found += [read] if function is None else self._inlined(function, read)
        return tuple(found)

    def _node(self, node: Any, opsets: Mapping[str, int], given: Mapping[str, Any]) -> Node:
        domain = _domain(node.domain)
        attributes = {}
        for attribute in node.attribute:
            name, reference = text(attribute.name), text(attribute.ref_attr_name)
            if name in attributes:
                raise broken("the model", f"the node `{text(node.name)}` has two attributes `{name}`")
            if reference:
                if reference in given:
                    attributes[name] = given[reference]
            else:
                attributes[name] = self._attribute(attribute, opsets, given)
        return Node(
            text(node.name),
            text(node.op_type),
            tuple(map(text, node.input)),
            tuple(map(text, node.output)),
            attributes,
            domain,
            opsets.get(domain, UNSTATED),
        )

    def _attribute(self, attribute: Any, opsets: Mapping[str, int], given: Mapping[str, Any]) -> Any:
        match attribute.type or _guessed(attribute):
            case 1:
                return attribute.f
            case 2:
                return attribute.i
            case 3:
                return text(attribute.s)
            case 4:
                return self._tensor(attribute.t)
            case 5:
                return self.graph(attribute.g, opsets, given)
            case 6:
                return tuple(attribute.floats)
            case 7:
                return tuple(attribute.ints)
            case 8:
                return tuple(map(text, attribute.strings))
            case 9:
                return tuple(self._tensor(t) for t in attribute.tensors)
            case 10:
                return tuple(self.graph(g, opsets, given) for g in attribute.graphs)
            case other:
                return Unusable(f"an attribute of kind {other}")

    def _tensor(self, tensor: Any) -> NDArray | Unusable:
        try:
            narrow = narrow_of(tensor, self.place)
            return array_of(tensor, self.place) if narrow is None else narrow
        except Unreadable as reason:
            return Unusable(str(reason))

    def _inlined(self, function: Any, call: Node) -> list[Node]:
        """Return the nodes of a function's body, with the names of the call."""
        self.calls += 1
        self.depth += 1
        if self.depth > DEEPEST:
            raise broken("the model", f"the function `{call.op}` calls itself, or calls go too deep")
        opsets = _opsets(function.opset_import)
        given = {text(a.name): self._attribute(a, opsets, {}) for a in function.attribute_proto}
        _check_call(function, call, {*given, *map(text, function.attribute)})
        given |= call.attributes
        self.around, before = {}, self.around
        body = self.nodes(function.node, opsets, given)
        self.around = before
        self.depth -= 1
        names = _call_names(function, call)
        prefix = f"{call.name or call.op + str(self.calls)}/"
        if prefix in self.prefixes:
            prefix = f"{call.name or call.op}_{self.calls}/"
        self.prefixes.add(prefix)
        return [_renamed(node, names, prefix) for node in body]


def _defined(graph: Any) -> set[str]:
    """Return the names that a graph defines itself: there they mean nothing of the graph around it."""
    given = (*graph.input, *graph.initializer)
    return {*(text(t.name) for t in given), *(text(o) for node in graph.node for o in node.output)}


def _check_call(function: Any, call: Node, known: set[str]) -> None:
    """Raise ``Unsupported`` for a call that gives or takes what the function does not know."""
    faults = [
        f"attribute `{name}` is not known of this function" for name in call.attributes if name not in known
    ]
    for what, formal, actual in (
        ("inputs", function.input, call.inputs),
        ("outputs", function.output, call.outputs),
    ):
        if len(actual) > len(formal):
            faults.append(f"{len(actual)} {what}, at most {len(formal)} are known")
    if faults:
        label = call.name or next((f"-> {o}" for o in call.outputs if o), "")
        refused = Refusal(label, f"{call.domain}.{call.op}", faults[0])
        raise unsupported("the model", [refused])


def _call_names(function: Any, call: Node) -> dict[str, str]:
    """Return what the parameters of a function are called at a call: an operand left out is ``""``.

    A result that the call does not ask for is not in it: others of the body may need it.
    """
    operands = [*call.inputs, *[""] * max(0, len(function.input) - len(call.inputs))]
    names = dict(zip(map(text, function.input), operands, strict=False))
    results = zip(map(text, function.output), call.outputs, strict=False)
    return names | {formal: actual for formal, actual in results if actual}


def _renamed(node: Node, names: Mapping[str, str], prefix: str) -> Node:
    """Return a node of a body with the names of a call; names inside get a prefix."""

    def name(old: str) -> str:
        return names.get(old, prefix + old) if old else ""

    return replace(
        node,
        name=prefix + (node.name or node.op),
        inputs=tuple(map(name, node.inputs)),
        outputs=tuple(map(name, node.outputs)),
        attributes={k: _renamed_graph(a, names, prefix) for k, a in node.attributes.items()},
    )


def _renamed_graph(attribute: Any, names: Mapping[str, str], prefix: str) -> Any:
    """Return a body of control flow inside a function's body with the names of a call."""
    if not isinstance(attribute, Graph):
        return attribute
    own = {t.name for t in attribute.inputs} | {*attribute.constants, *attribute.unreadable}
    own |= {o for node in attribute.nodes for o in node.outputs}
    seen = {**names, **{n: n for n in own}}
    free = {i for node in attribute.nodes for i in node.inputs} | {o.name for o in attribute.outputs}
    seen |= {n: prefix + n for n in free if n and n not in seen}
    nodes = tuple(_renamed(node, seen, "") for node in attribute.nodes)
    outputs = tuple(replace(o, name=seen.get(o.name, o.name)) for o in attribute.outputs)
    return replace(attribute, nodes=nodes, outputs=outputs)


def _guessed(attribute: Any) -> int:
    """Return the kind of an attribute that does not state it, as files of the first years."""
    for number, name in enumerate(("f", "i", "s", "t", "g"), start=1):
        if attribute.HasField(name):
            return number
    for number, name in enumerate(("floats", "ints", "strings", "tensors", "graphs"), start=6):
        if len(getattr(attribute, name)):
            return number
    return 7


def _tensor(info: Any) -> GraphTensor:
    """Return a declared input or output; sequences, maps and optionals have no type."""
    name = text(info.name)
    if not info.type.HasField("tensor_type"):
        others = [what for field, what in _NO_TENSORS.items() if info.type.HasField(field)]
        return GraphTensor(name, None, None, next(iter(others), ""))
    tensor = info.type.tensor_type
    kind = ElementType.FLOAT32 if tensor.elem_type == bfloat16.NUMBER else TYPES.get(tensor.elem_type)
    other = f"tensors of {type_name(tensor.elem_type)}" if kind is None and tensor.elem_type else ""
    other = bfloat16.NAME if tensor.elem_type == bfloat16.NUMBER else other
    shape = tuple(_dimension(d) for d in tensor.shape.dim) if tensor.HasField("shape") else None
    return GraphTensor(name, kind, shape, other)


_NO_TENSORS = {
    "sequence_type": "sequences",
    "map_type": "maps",
    "sparse_tensor_type": "sparse tensors",
    "optional_type": "optional values",
}


def _dimension(dimension: Any) -> int | str:
    if dimension.HasField("dim_value") and dimension.dim_value >= 0:
        return int(dimension.dim_value)
    return text(dimension.dim_param)
