"""GraphDefs to graphs: calls inlined, variables as tensors, constants as arrays.

GraphDef -> flat nodes (``functions``) -> those that the outputs need, in order -> Graph (``state``)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.graph.model import Graph, GraphTensor, Node, widened, widened_name
from polyloom.frontends.protobuf.reading import broken, parse, read_bytes, text
from polyloom.frontends.protobuf.tensorflow_schema import tensorflow_messages
from polyloom.frontends.tensorflow.bfloat16 import rounded
from polyloom.frontends.tensorflow.dilations import with_dilations
from polyloom.frontends.tensorflow.functions import RawBody, RawNode, flat_nodes
from polyloom.frontends.tensorflow.narrow import on_wide
from polyloom.frontends.tensorflow.state import UPDATED, VARIABLES, State, ordered
from polyloom.frontends.tensorflow.tensors import (
    RESOURCE,
    TYPES,
    Elements,
    Narrow,
    Unreadable,
    array_of,
    element_type,
    shape_of,
    type_name,
)
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "_Arg")
_NO_RESULTS = (
    "NoOp",
    "Assert",
    "Placeholder",
    "Const",
    "SaveV2",
    "RestoreV2",
    "PrintV2",
    *VARIABLES,
    *UPDATED,
)
_OF_INITIALISERS = ("Assign",)
"""What changes variables only where something waits for it: TensorFlow 1 keeps initialisers apart."""


@dataclass(frozen=True)
class Selection:
    """What of a graph is wanted, and what is known besides it.

    ``inputs``, ``outputs``: tensors by the name that they get; no outputs: what no node takes. ``variables``:
    what a tensor of type resource stands for, where the graph does not say; ``values``: arrays of variables;
    ``missing``: variables whose arrays cannot be used, with the reason. ``captured``: arrays of placeholders.
    ``complete``: all variables should be in ``values``; else the others become inputs. ``changes``: whatever
    changes a variable is wanted, also besides ``outputs``.
    """

    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Elements] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    captured: Mapping[str, Elements] = field(default_factory=dict)
    complete: bool = False
    changes: bool = False


def read_graph_def(path: Path) -> Graph:
    """Return the graph of a ``.pb`` file. Errors: ``file-...``, ``model-broken``."""
    return graph_of_def(read_bytes(path), path.stem, f"`{path}`")


def graph_of_def(data: bytes, name: str, what: str) -> Graph:
    """Return the graph of a GraphDef's bytes; ``what``: what messages call it. Errors: ``model-broken``."""
    message = parse(tensorflow_messages()["GraphDef"], data, what)
    if not message.node:
        raise broken(what, "it has no nodes: it is no GraphDef")
    return graph_of(message, name, Selection())


def graph_of(message: Any, name: str, selection: Selection) -> Graph:
    """Return the graph of a GraphDef. Errors: ``model-broken``, ``model-outputs``."""
    nodes = flat_nodes(message)
    outputs = dict(selection.outputs) or {n: n for n in _results(nodes)}
    everything = selection.changes or not selection.outputs
    changes = [] if not everything else [n.name for n in nodes if _changes_state(n)]
    if not outputs and not changes:
        helps = ["a graph of checkpoints or initialisers alone computes nothing"]
        raise PolyloomError(error("model-outputs", f"nothing of `{name}` is a result", helps=helps))
    roots = [*outputs.values(), *changes]
    needed = _needed(ordered(nodes), roots)
    return _Reading(selection, outputs, _used_outputs(needed, outputs)).graph(name, needed)


def _changes_state(node: RawNode) -> bool:
    return node.op in UPDATED and node.op not in _OF_INITIALISERS


def _results(nodes: Sequence[RawNode]) -> list[str]:
    """Return the results that no node takes."""
    taken = {name.partition(":")[0] for node in nodes for name in node.inputs} | {
        name for node in nodes for name in node.inputs
    }
    return [n.name for n in nodes if n.name not in taken and n.op not in _NO_RESULTS]


def _needed(nodes: Sequence[RawNode], roots: Sequence[str]) -> list[RawNode]:
    """Return the nodes that the roots need or wait for, in the same order."""
    wanted = {name for root in roots for name in (root, root.rpartition(":")[0])}
    kept = []
    for node in reversed(nodes):
        if node.name in wanted:
            kept.append(node)
            for name in (*node.inputs, *node.after):
                wanted |= {name, name.rpartition(":")[0]}
    return kept[::-1]


def _used_outputs(nodes: Sequence[RawNode], outputs: Mapping[str, str]) -> dict[str, int]:
    """Return how many outputs of each node are used."""
    counts: dict[str, int] = {}
    for name in (*(i for node in nodes for i in node.inputs), *outputs.values()):
        node, _, number = name.rpartition(":")
        if number.isdigit():
            counts[node] = max(counts.get(node, 1), int(number) + 1)
    return counts


@dataclass
class _Reading:
    """Collects what becomes of the nodes of one GraphDef."""

    selection: Selection
    outputs: Mapping[str, str]
    used: Mapping[str, int]
    state: State = field(default_factory=State)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[GraphTensor] = field(default_factory=list)
    constants: dict[str, NDArray] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    """Of the narrow constants and what moves them, by name."""

    def graph(self, name: str, nodes: Sequence[RawNode]) -> Graph:
        """Return the graph of nodes that are in order."""
        for handle, variable in self.selection.variables.items():
            self._variable(handle, variable, 0, None, reference=False)
        for node in nodes:
            self._node(node)
        kept = {*self.outputs.values()}
        self.nodes = [*widened(self.nodes, self.formats, self.unreadable, kept, on_wide)]
        self._bind()
        outputs = [GraphTensor(n, None, None) for n in self.outputs]
        for variable in self.state.changed:
            new = f"{variable}_new"
            self.nodes.append(Node(new, "Identity", (self.state.current[variable],), (new,)))
            outputs.append(GraphTensor(new, None, None))
        graph = Graph(
            name, tuple(self.nodes), tuple(self.inputs), tuple(outputs), self.constants, self.unreadable
        )
        return rounded(with_dilations(graph))

    def _bind(self) -> None:
        """Give inputs and outputs the names that were asked for; what has such a name inside gets another."""
        given = {place: key for key, place in self.selection.inputs.items()}
        outputs = {key: place for key, place in self.outputs.items() if key != place}
        asked = {*given.values(), *outputs}
        renamed = {n: f"{n}/inner" for n in self._names() if n in asked and n not in given} | given
        self.nodes = [_renamed(node, renamed) for node in self.nodes]
        self.inputs = [replace(t, name=renamed.get(t.name, t.name)) for t in self.inputs]
        self.constants = {renamed.get(n, n): a for n, a in self.constants.items()}
        self.unreadable = {renamed.get(n, n): r for n, r in self.unreadable.items()}
        for key, place in outputs.items():
            self.nodes.append(Node(key, "Identity", (renamed.get(place, place),), (key,)))

    def _names(self) -> set[str]:
        made = {name for node in self.nodes for name in node.outputs}
        return made | {t.name for t in self.inputs} | {*self.constants, *self.unreadable}

    def _node(self, node: RawNode) -> None:
        if node.op in VARIABLES:
            self._declared(node)
        elif node.op in _PLACEHOLDERS:
            self._placeholder(node)
        elif node.op == "Const":
            self._constant(node)
        elif node.op not in ("NoOp", "Assert"):
            attributes = {name: attribute(value) for name, value in node.attributes.items()}
            bodies = {name: _body(f"{node.name}/{name}", body) for name, body in node.bodies.items()}
            count = {"branches": len(bodies)} if "branches:0" in bodies else {}
            passed = self.state.passed(node, self.used.get(node.name, 1), {**attributes, **bodies, **count})
            if passed is not None and node.op in UPDATED and not passed.outputs:
                passed = self._hidden_change(passed)
            if passed is not None:
                self.nodes.append(passed)

    def _hidden_change(self, node: Node) -> Node:
        """Return an assignment to a variable that a branch, a loop or a list has passed on, to be refused."""
        handle = f"{node.name}/variable"
        self.unreadable[handle] = (
            "a variable that changes inside a branch or loop, or after one has passed it on"
        )
        return replace(node, inputs=(handle,), outputs=(node.name,))

    def _declared(self, node: RawNode) -> None:
        kind = node.attributes["dtype"].type if "dtype" in node.attributes else 0
        shape = shape_of(node.attributes["shape"].shape) if "shape" in node.attributes else None
        self._variable(node.name, variable_name(node), kind, shape, reference=node.op != "VarHandleOp")

    def _variable(
        self,
        handle: str,
        variable: str,
        kind: int,
        shape: tuple[int | str, ...] | None,
        *,
        reference: bool,
    ) -> None:
        """Declare a variable: a constant if its elements are known, else an input."""
        known = variable in self.state.current
        self.state.declare(handle, variable, reference=reference)
        if known:
            return
        if variable in self.selection.values:
            self._known(variable, self.selection.values[variable])
        elif variable in self.selection.missing:
            self.unreadable[variable] = self.selection.missing[variable]
        elif self.selection.complete:
            self.unreadable[variable] = "the checkpoint does not hold this variable"
        else:
            self.inputs.append(_declared_tensor(variable, kind, shape))

    def _placeholder(self, node: RawNode) -> None:
        number = node.attributes["dtype"].type if "dtype" in node.attributes else 0
        if number == RESOURCE:
            if node.name not in self.state.handles:
                self.unreadable[node.name] = "a variable of which the graph does not say which"
            return
        if node.name in self.selection.captured:
            self._known(node.name, self.selection.captured[node.name])
            return
        shape = shape_of(node.attributes["shape"].shape) if "shape" in node.attributes else None
        self.inputs.append(_declared_tensor(node.name, number, shape))

    def _known(self, name: str, found: Elements) -> None:
        """Add a constant; one of a narrow type is held in a wider one, under another name."""
        if isinstance(found, Narrow):
            self.constants[widened_name(name)] = found.values
            self.formats[name] = found.form
        else:
            self.constants[name] = found

    def _constant(self, node: RawNode) -> None:
        try:
            self._known(node.name, array_of(node.attributes["value"].tensor))
        except KeyError:
            self.unreadable[node.name] = "a constant without a value"
        except Unreadable as reason:
            self.unreadable[node.name] = str(reason)


def _declared_tensor(name: str, number: int, shape: tuple[int | str, ...] | None) -> GraphTensor:
    """Return an input whose type has this number in TensorFlow; 0: it is not stated."""
    kind = element_type(number)
    other = type_name(number) if number and number not in TYPES else ""
    return GraphTensor(name, kind, shape, other)


def variable_name(handle: RawNode) -> str:
    """Return the name of the variable that a node declares."""
    shared = text(handle.attributes["shared_name"].s) if "shared_name" in handle.attributes else ""
    return shared or handle.name


def _body(name: str, body: RawBody) -> Graph:
    """Return a branch or the body of a loop as a graph, of what its results need and what it changes."""
    changes = [n.name for n in body.nodes if _changes_state(n)]
    needed = _needed(ordered(body.nodes), [*body.results, *changes])
    outputs = {result: result for result in body.results}
    graph = _Reading(Selection(), outputs, _used_outputs(needed, outputs)).graph(name, needed)
    own = {t.name: "a variable or placeholder inside a branch or loop" for t in graph.inputs}
    arguments = tuple(GraphTensor(a, None, None) for a in body.arguments)
    return replace(graph, inputs=arguments, unreadable={**graph.unreadable, **own})


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    inputs = tuple(names.get(n, n) for n in node.inputs)
    outputs = tuple(names.get(n, n) for n in node.outputs)
    return Node(node.name, node.op, inputs, outputs, node.attributes)


def attribute(value: Any) -> Any:
    """Return an attribute as Python has it; an element type that the IR has not as its name in text."""
    for kind, convert in _KINDS.items():
        if value.HasField(kind):
            return convert(getattr(value, kind))
    return None


def _type(number: int) -> ElementType | str:
    return TYPES.get(number) or type_name(number)


def _tensor(tensor: Any) -> NDArray | None:
    try:
        found = array_of(tensor)
    except Unreadable:
        return None
    return None if isinstance(found, Narrow) else found


def _listed(values: Any) -> tuple[Any, ...]:
    for kind, convert in _KINDS.items():
        if kind != "list" and len(getattr(values, kind)):
            return tuple(convert(v) for v in getattr(values, kind))
    return ()


_KINDS: dict[str, Any] = {
    "list": _listed,
    "s": text,
    "i": int,
    "f": float,
    "b": bool,
    "type": _type,
    "shape": shape_of,
    "tensor": _tensor,
    "func": lambda f: text(f.name),
}

__all__ = ["Selection", "graph_of", "read_graph_def"]
