"""A graph that contradicts itself: names defined twice or never, rings, false declared types and shapes.

Each is a fault of the file (``model-broken``), not something that tensor programs lack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from polyloom.diagnostics import PolyloomError, error, visible_name
from polyloom.frontends.graph.model import Graph, GraphTensor, Node
from polyloom.frontends.graph.values import Value


def check_names(graph: Graph) -> None:
    """Raise ``model-broken`` where a tensor of a graph is defined twice."""
    defined = Counter(t.inner for t in graph.inputs)
    defined.update({*graph.constants, *graph.unreadable})
    for node in graph.nodes:
        defined.update(o for o in node.outputs if o)
    twice = [name for name, count in defined.items() if count > 1]
    if twice:
        raise _contradiction(graph.name, [f"`{name}` is defined more than once" for name in twice])


def undefined(node: Node, name: str, nodes: Sequence[Node]) -> PolyloomError:
    """Return the error for a node that reads ``name``, which no node before it computes."""
    label = node.name or node.op
    makers = {o: n for n in nodes for o in n.outputs if o}
    if name not in makers:
        reason = f"nothing computes `{name}`, which `{label}` ({node.op}) reads"
    elif _needs(makers, name, node):
        reason = f"`{label}` ({node.op}) reads `{name}`, which is computed from its own result: a ring"
    else:
        reason = f"`{label}` ({node.op}) reads `{name}`, which a later node computes: nodes are in no order"
    return _contradiction("", [reason])


def _needs(makers: Mapping[str, Node], name: str, wanted: Node) -> bool:
    """Tell whether a tensor is computed from the results of a node."""
    seen: set[str] = set()
    left = [name]
    while left:
        node = makers.get(left.pop())
        if node is wanted:
            return True
        if node is not None:
            new = [i for i in node.inputs if i not in seen]
            seen.update(new)
            left += new
    return False


def check_declared(graph: Graph, values: Mapping[str, Value]) -> None:
    """Raise ``model-broken`` where a tensor has not the type or shape that the file declares."""
    stated = [*graph.outputs, *graph.declared]
    pairs = [(tensor, values[tensor.name]) for tensor in stated if tensor.name in values]
    faults = [fault for tensor, value in pairs for fault in _false(tensor, value)]
    if faults:
        raise _contradiction(graph.name, list(dict.fromkeys(faults)))


def check_ranges(graph: Graph, values: Mapping[str, Value]) -> None:
    """Raise ``model-size`` where an open dimension has several sizes, or one outside of its range."""
    found: dict[str, dict[int, str]] = {}
    for tensor in graph.inputs:
        for name, size in zip(tensor.shape or (), values[tensor.name].shape, strict=False):
            if name in graph.ranges:
                found.setdefault(str(name), {}).setdefault(size, tensor.name)
    faults = [
        fault for name, sizes in found.items() for fault in _unfitting(name, sizes, *graph.ranges[name])
    ]
    if faults:
        message = f"`{graph.name}` was made for other sizes"
        raise PolyloomError(error("model-size", message, notes=list(map(visible_name, faults))))


def _unfitting(name: str, sizes: Mapping[int, str], least: int | None, most: int | None) -> Iterator[str]:
    if len(sizes) > 1:
        yield f"`{name}` is " + ", and ".join(f"{size} in `{where}`" for size, where in sizes.items())
    for size in sizes:
        if least is not None and size < least:
            yield f"`{name}` is {size}, and at least {least} by the file"
        if most is not None and size > most:
            yield f"`{name}` is {size}, and at most {most} by the file"


def _false(tensor: GraphTensor, value: Value) -> list[str]:
    found = []
    said = tensor.other_type if tensor.type is None else tensor.type.value
    if said and tensor.type is not value.type:
        found.append(f"`{tensor.name}` is declared as {said} and is {value.type.value}")
    if tensor.shape is not None and not agree(tensor.shape, value.shape):
        extents = "[" + ", ".join(str(n) or "?" for n in tensor.shape) + "]"
        found.append(f"`{tensor.name}` is declared with the shape {extents} and has {list(value.shape)}")
    return found


def agree(declared: Sequence[int | str], shape: Sequence[int]) -> bool:
    """Tell whether a shape is as declared; a text stands for any extent."""
    if len(declared) != len(shape):
        return False
    return all(isinstance(d, str) or d == n for d, n in zip(declared, shape, strict=True))


def _contradiction(name: str, faults: Sequence[str]) -> PolyloomError:
    called = f"`{name}`" if name else "the model"
    return PolyloomError(
        error("model-broken", f"{called} contradicts itself", notes=list(map(visible_name, faults)))
    )
