"""Operations that write into their operand (``relu_``), as functions where all that can see it is known.

y = aten.add(x, x)                        y = aten.add(x, x)
v = aten.select(y, 1, 0)         becomes  v = aten.select(y, 1, 0)
e = aten.exp_(v)                          e = aten.exp(v)
z = aten.mul(y, x)                        w = aten.select_scatter(y, e, 1, 0)
z = aten.mul(w, x)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from polyloom.frontends.graph.model import Node
from polyloom.frontends.torch.call import ARGUMENTS, Operand

FRESH = (
    *("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "convolution", "conv1d", "conv2d", "conv3d"),
    *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "batch_norm", "layer_norm"),
    *("group_norm", "add", "sub", "mul", "div", "neg", "exp", "relu", "sigmoid", "tanh", "sum", "mean"),
    *("gelu", "silu", "softmax", "cat", "stack", "clamp", "pow", "sqrt", "rsqrt", "max_pool2d", "avg_pool2d"),
    *("hardtanh", "leaky_relu", "elu", "hardswish", "hardsigmoid", "embedding", "adaptive_avg_pool2d"),
    *("clone", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "cumsum", "abs", "log"),
    *("log1p", "where"),
)
"""Operations whose result is new memory, never a view of an operand."""

_WRITTEN_BACK = {
    "slice": "slice_scatter.default",
    "select": "select_scatter.default",
    "transpose": "transpose.int",
    "unsqueeze": "squeeze.dim",
    "alias": "alias.default",
    "detach": "alias.default",
}
"""Views, and how what they are of follows from what they hold: with it, or from it alone."""


def without_in_place(nodes: Sequence[Node]) -> tuple[list[Node], dict[str, str]]:
    """Return nodes with ``f_`` as ``f`` where it writes into new memory of which all views are known.

    And what stands for each tensor at the end:  ``y = x + 1; y.mul_(2); return y``  returns the product.
    Elsewhere something else might see the change: there the operation keeps its name, and no table knows it.
    """
    memory = _Memory()
    found = [each for node in nodes for each in memory.read(node)]
    return found, {name: memory.current(name) for name in (*memory.roots, *memory.same)}


@dataclass
class _Memory:
    """``roots``: of tensors in new memory, what that is called by; ``views``: how they look at it, in order.

    ``now``: by what name a tensor's elements are known now; ``same``: results of ``f_``, with their operand;
    ``seen``: memory that something unknown may see.
    """

    roots: dict[str, str] = field(default_factory=dict)
    views: dict[str, Node] = field(default_factory=dict)
    now: dict[str, str] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    written: int = 0

    def current(self, name: str) -> str:
        """Return by what name a tensor's elements are known now."""
        place = self.same.get(name, name)
        return self.now.get(place, place)

    def read(self, given: Node) -> Iterator[Node]:
        """Yield what a node becomes."""
        node = replace(given, inputs=tuple(map(self.current, given.inputs)))
        places = tuple(self.same.get(name, name) for name in given.inputs)
        base = base_name(node.op)
        changes = base.endswith("_") and not base.startswith("_")
        if changes and places and self.roots.get(places[0], "") not in {"", *self.seen} and _single(node):
            yield replace(node, op=node.op.replace(f".{base}.", f".{base[:-1]}.", 1))
            (result,) = node.outputs
            self.same[result] = places[0]
            yield from self._written(places[0], result)
            return
        if base in _WRITTEN_BACK and len(places) == 1 and places[0] in self.roots and _single(node):
            (name,) = node.outputs
            self.roots[name] = self.roots[places[0]]
            self.views[name] = replace(given, inputs=places)
        elif base in FRESH and not changes:
            self.roots |= {name: name for name in node.outputs}
        else:
            self.seen |= {self.roots[place] for place in places if place in self.roots}
        yield node

    def _written(self, place: str, value: str) -> Iterator[Node]:
        """Yield what the memory holds after a tensor of it became ``value``, and what its views see then."""
        root, known = self.roots[place], {place}
        self.now[place] = value
        while place in self.views:
            view = self.views[place]
            (parent,) = view.inputs
            yield self._back(view, self.current(parent), self.now[place], self._name(parent))
            place = parent
            known.add(place)
        for name, view in self.views.items():
            if self.roots[name] == root and name not in known:
                (parent,) = view.inputs
                new = self._name(name)
                yield replace(view, inputs=(self.current(parent),), outputs=(new,))

    def _name(self, place: str) -> str:
        """Return a new name for what a tensor holds from now on."""
        self.written += 1
        self.now[place] = f"{place} written {self.written}"
        return self.now[place]

    @staticmethod
    def _back(view: Node, parent: str, value: str, name: str) -> Node:
        """Return what a tensor becomes when a view of it becomes ``value``."""
        op = _WRITTEN_BACK[base_name(view.op)]
        given = view.attributes[ARGUMENTS]
        scatters = "scatter" in op
        arguments = {**given, "self": Operand(0), **({"src": Operand(1)} if scatters else {})}
        attributes = {**view.attributes, ARGUMENTS: arguments}
        inputs = (parent, value) if scatters else (value,)
        return Node(f"{view.name}.written", f"aten.{op}", inputs, (name,), attributes)


def _single(node: Node) -> bool:
    return len(node.outputs) == 1


def base_name(op: str) -> str:
    """Return the name of an operation without its library and overload: ``add`` of ``aten.add.Tensor``."""
    parts = op.split(".")
    return parts[1] if len(parts) > 1 else op
