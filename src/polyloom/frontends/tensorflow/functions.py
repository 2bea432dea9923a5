"""How functions of a GraphDef name their tensors, and calls of them inlined.

In the graph itself a tensor is ``node`` or ``node:2``. Inside a function it is ``argument``, or
``node:output:0`` with the name that the operation gives its output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyloom.diagnostics import PolyloomError
from polyloom.frontends.protobuf.reading import broken, text

BODIES = {
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
}
"""Operations of control flow, and the attributes that name their functions."""

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
"""Operations that call the function in their attribute ``f``."""

DEEPEST = 50
"""How deep functions may call each other."""

MOST_NODES = 1_000_000
"""Nodes after inlining at most."""

OUTPUTS = {
    "BroadcastGradientArgs": ("r0", "r1"),
    "FusedBatchNorm": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    "FusedBatchNormV2": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"),
    "FusedBatchNormV3": (
        "y",
        "batch_mean",
        "batch_variance",
        "reserve_space_1",
        "reserve_space_2",
        "reserve_space_3",
    ),
    "FusedBatchNormGrad": (
        "x_backprop",
        "scale_backprop",
        "offset_backprop",
        "reserve_space_3",
        "reserve_space_4",
    ),
    "FusedBatchNormGradV2": (
        "x_backprop",
        "scale_backprop",
        "offset_backprop",
        "reserve_space_3",
        "reserve_space_4",
    ),
    "FusedBatchNormGradV3": (
        "x_backprop",
        "scale_backprop",
        "offset_backprop",
        "reserve_space_4",
        "reserve_space_5",
    ),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "SparseSoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "ListDiff": ("out", "idx"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "TensorListConcatV2": ("tensor", "lengths"),
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
    "UniqueV2": ("y", "idx"),
    "Switch": ("output_false", "output_true"),
    "Merge": ("output", "value_index"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
}
"""The outputs of operations that have several of different names; all others have one, or one list."""


@dataclass(frozen=True)
class RawNode:
    """A node with the names of tensors made plain: ``node`` is its output 0, ``node:2`` output 2.

    ``after``: names of nodes that it waits for (control inputs). ``bodies``: functions of control flow, by
    the attribute that names them (``branches:1`` in a list).
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    after: tuple[str, ...]
    attributes: Mapping[str, Any]
    bodies: Mapping[str, RawBody] = field(default_factory=dict)


@dataclass(frozen=True)
class RawBody:
    """A function that is not inlined where it is called: a branch, or a loop's body."""

    arguments: tuple[str, ...]
    nodes: tuple[RawNode, ...]
    results: tuple[str, ...]


def tensor_name(node: str, output: int) -> str:
    """Return the name of a node's output."""
    return node if output == 0 else f"{node}:{output}"


def flat_nodes(graph: Any) -> list[RawNode]:
    """Return the nodes of a GraphDef with all calls inlined. Errors: ``model-broken``."""
    library = {text(f.signature.name): f for f in graph.library.function}
    nodes = [raw_node(node) for node in graph.node]
    return list(_Inliner(library, {node.name for node in nodes}).nodes(nodes, 0))


def raw_node(node: Any) -> RawNode:
    """Return a node of a GraphDef with the names of tensors made plain."""
    inputs, after = _inputs([text(i) for i in node.input])
    return RawNode(text(node.name), text(node.op), tuple(map(_canonical, inputs)), tuple(after), node.attr)


def _inputs(names: Sequence[str]) -> tuple[list[str], list[str]]:
    data = [n for n in names if not n.startswith("^")]
    return data, [n[1:] for n in names if n.startswith("^")]


def _canonical(name: str) -> str:
    return name.removesuffix(":0")


@dataclass
class _Inliner:
    """``taken``: names of nodes so far. A body keeps its names where they are free: they name layers."""

    library: Mapping[str, Any]
    taken: set[str]
    count: int = 0

    def nodes(self, nodes: Sequence[RawNode], depth: int) -> Iterator[RawNode]:
        """Yield nodes, each call of a function as the nodes of its body."""
        if depth > DEEPEST:
            raise broken("the model", "a function calls itself, or calls go too deep")
        for node in nodes:
            self.count += 1
            if self.count > MOST_NODES:
                raise broken("the model", f"more than {MOST_NODES} nodes")
            function = self._called(node)
            if node.op in BODIES:
                yield replace(node, bodies=self._bodies(node, depth + 1))
            elif function is None:
                yield node
            else:
                yield from self.nodes(self._body(function, node), depth + 1)

    def _called(self, node: RawNode) -> Any | None:
        if node.op in CALLS and "f" in node.attributes:
            return self._function(text(node.attributes["f"].func.name), node)
        return self.library.get(node.op)

    def _bodies(self, node: RawNode, depth: int) -> dict[str, RawBody]:
        """Return the functions of control flow, each with arguments of its own."""
        found = {}
        for key in BODIES[node.op]:
            value = node.attributes.get(key)
            if value is None:
                raise broken("the model", f"`{node.name}` has no `{key}`")
            named = [value.func] if value.HasField("func") else value.list.func
            for number, function in enumerate(named):
                name = key if value.HasField("func") else f"{key}:{number}"
                found[name] = self._alone(
                    self._function(text(function.name), node), f"{node.name}/{name}", depth
                )
        return found

    def _alone(self, function: Any, name: str, depth: int) -> RawBody:
        arguments = tuple(f"{name}/argument_{k}" for k in range(len(function.signature.input_arg)))
        call = RawNode(name, "Function", arguments, (), {})
        nodes = tuple(self.nodes(self._body(function, call), depth))
        results = tuple(tensor_name(name, k) for k in range(len(function.signature.output_arg)))
        return RawBody(arguments, nodes, results)

    def _function(self, name: str, node: RawNode) -> Any:
        if name not in self.library:
            raise self._missing(name, node)
        return self.library[name]

    def _missing(self, name: str, node: RawNode) -> PolyloomError:
        return broken("the model", f"`{node.name}` calls the function `{name}`, which it does not hold")

    def _body(self, function: Any, call: RawNode) -> list[RawNode]:
        """Return the nodes of a body with names of the call, and one Identity for each of its results."""
        arguments = [text(a.name) for a in function.signature.input_arg]
        if len(arguments) != len(call.inputs):
            wanted = f"`{call.name}` gives {len(call.inputs)} of {len(arguments)} arguments"
            raise broken("the model", wanted)
        ops = {text(node.name): text(node.op) for node in function.node_def}
        names = {name: f"{call.name}/{name}" if name in self.taken else name for name in ops}
        self.taken |= {*names.values()}
        scope = _Scope(names, dict(zip(arguments, call.inputs, strict=True)), ops)
        after = tuple(scope.node(text(n)) for n in function.control_ret.values())
        body = [self._inner(node, scope, call) for node in function.node_def]
        results = [text(o.name) for o in function.signature.output_arg]
        for number, result in enumerate(results):
            source = scope.tensor(text(function.ret[result]) if result in function.ret else "")
            body.append(
                RawNode(
                    call.name if number == 0 else f"{call.name}:{number}", "Identity", (source,), after, {}
                )
            )
        if not results:
            body.append(RawNode(call.name, "NoOp", (), after, {}))
        return body

    def _inner(self, node: Any, scope: _Scope, call: RawNode) -> RawNode:
        inputs, after = _inputs([text(i) for i in node.input])
        attributes = {k: _resolved(v, call.attributes) for k, v in node.attr.items()}
        return RawNode(
            scope.names[text(node.name)],
            text(node.op),
            tuple(scope.tensor(i) for i in inputs),
            (*(scope.node(a) for a in after), *call.after),
            attributes,
        )


def _resolved(value: Any, given: Mapping[str, Any]) -> Any:
    """Return an attribute; one that stands for an attribute of the call is that one."""
    return given.get(text(value.placeholder), value) if value.HasField("placeholder") else value


@dataclass(frozen=True)
class _Scope:
    """``names``: of the body's nodes, outside; ``arguments``: tensors around it; ``ops``: of each node."""

    names: Mapping[str, str]
    arguments: Mapping[str, str]
    ops: Mapping[str, str]

    def node(self, name: str) -> str:
        """Return the name of a node that is waited for."""
        if name in self.arguments:
            return self.arguments[name].partition(":")[0]
        return self.names.get(name, name)

    def tensor(self, name: str) -> str:
        """Return the plain name of ``argument`` or ``node:output:k``."""
        if name in self.arguments:
            return self.arguments[name]
        node, _, rest = name.partition(":")
        output, _, position = rest.partition(":")
        number = int(position) if position.isdigit() else 0
        outputs = OUTPUTS.get(self.ops.get(node, ""), ())
        number += outputs.index(output) if output in outputs else 0
        return tensor_name(self.names.get(node, f"{node} (missing)"), number)
