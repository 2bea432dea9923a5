"""Variables: what nodes read and write in order becomes tensors that are written once.

    ReadVariableOp(W); AssignSubVariableOp(W, d); ReadVariableOp(W)      becomes
    Identity(W); W:1 = AssignSubVariableOp(W, d); Identity(W:1)          and the output W_new

A node that takes a variable gets its value at that time. One that changes it (``UPDATED``) has the new value
as an output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polyloom.frontends.graph.model import Node
from polyloom.frontends.tensorflow.functions import RawNode, tensor_name

VARIABLES = ("VarHandleOp", "VariableV2", "Variable", "AutoReloadVariable")

UPDATED: Mapping[str, tuple[int, ...]] = {
    "AssignVariableOp": (0,),
    "AssignAddVariableOp": (0,),
    "AssignSubVariableOp": (0,),
    "Assign": (0,),
    "AssignAdd": (0,),
    "AssignSub": (0,),
    "ResourceApplyGradientDescent": (0,),
    "ResourceApplyMomentum": (0, 1),
    "ResourceApplyKerasMomentum": (0, 1),
    "ResourceApplyAdam": (0, 1, 2),
    "ResourceApplyAdagradV2": (0, 1),
    "ResourceApplyRMSProp": (0, 1, 2),
    "ResourceScatterUpdate": (0,),
    "ResourceScatterAdd": (0,),
    "ResourceScatterSub": (0,),
    "ApplyGradientDescent": (0,),
    "ApplyMomentum": (0, 1),
    "ApplyAdam": (0, 1, 2),
}
"""Which inputs of an operation are variables that it changes; its outputs are their new values, in order."""

_ALIASES = ("Identity", "IdentityN", "StopGradient")


@dataclass
class State:
    """The value of each variable as nodes are passed in order.

    ``handles``: tensors that stand for a variable, with its name; ``current``: the tensor that holds its
    value; ``references``: variables whose nodes give values themselves (TensorFlow 1).
    """

    handles: dict[str, str] = field(default_factory=dict)
    current: dict[str, str] = field(default_factory=dict)
    references: set[str] = field(default_factory=set)
    changed: list[str] = field(default_factory=list)

    def declare(self, handle: str, variable: str, *, reference: bool = False) -> None:
        """Let a tensor stand for a variable; the variable's first value is the tensor called like it."""
        self.handles[handle] = variable
        self.current.setdefault(variable, variable)
        if reference:
            self.references.add(variable)

    def passed(self, node: RawNode, outputs: int, attributes: Mapping[str, object]) -> Node | None:
        """Return the node without variables, or None where it only passes one on.

        ``outputs``: how many of its outputs others use.
        """
        source = self.handles.get(node.inputs[0]) if node.inputs else None
        if node.op in _ALIASES and source is not None and source not in self.references:
            self.handles[node.name] = source
            return None
        inputs = tuple(self._value(name) for name in node.inputs)
        names = [tensor_name(node.name, k) for k in range(max(1, outputs))]
        if node.op in UPDATED:
            names = self._update(node)
        return Node(node.name, node.op, inputs, tuple(names), attributes)

    def _value(self, tensor: str) -> str:
        variable = self.handles.get(tensor)
        return tensor if variable is None else self.current[variable]

    def _update(self, node: RawNode) -> list[str]:
        names = []
        for number, position in enumerate(UPDATED[node.op]):
            if position >= len(node.inputs) or node.inputs[position] not in self.handles:
                continue
            variable = self.handles[node.inputs[position]]
            self.current[variable] = name = tensor_name(f"{node.name}/updated", number)
            if variable in self.references and number == 0:
                self.handles[node.name] = variable
            if variable not in self.changed:
                self.changed.append(variable)
            names.append(name)
        return names


def ordered(nodes: Sequence[RawNode]) -> list[RawNode]:
    """Return nodes so that each comes after what it needs and waits for; those of a cycle come last."""
    producers = {node.name: node for node in nodes}
    done: set[str] = set()
    result: list[RawNode] = []
    for root in nodes:
        _visit(root, producers, done, result)
    return result


def _visit(root: RawNode, producers: Mapping[str, RawNode], done: set[str], result: list[RawNode]) -> None:
    """Add a node after everything that it needs, without recursion."""
    stack: list[tuple[RawNode, list[str]]] = []
    open_: set[str] = set()

    def enter(node: RawNode) -> None:
        if node.name not in done and node.name not in open_:
            open_.add(node.name)
            stack.append((node, [_producer(n, producers) for n in (*node.after, *node.inputs)]))

    enter(root)
    while stack:
        node, needed = stack[-1]
        if needed:
            following = needed.pop(0)
            if following in producers:
                enter(producers[following])
        else:
            stack.pop()
            done.add(node.name)
            result.append(node)


def _producer(tensor: str, producers: Mapping[str, RawNode]) -> str:
    """Return the node that makes a tensor: a result of an inlined call is a node of its own."""
    return tensor if tensor in producers else tensor.rpartition(":")[0] or tensor
