"""What every framework's graph is read into: nodes between named tensors, and constants.

A tensor's name is any text; it is defined once: as an input, as a constant, or by one node. Functions of the
file are inlined by its reader, so a graph has none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.scalar_functions.narrow_formats import FORMATS
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Node:
    """``outputs = op(inputs)``. A missing input or output is ``""``.

    ``domain``: whose operation it is (``""``: the framework's own). ``attributes``: numbers, texts, arrays,
    element types, ``Graph`` for the bodies of control flow, tuples of these. ``version``: of the operation.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    version: int = 0


def with_rounding(node: Node, stored: Collection[str], op: str, domain: str = "") -> Iterator[Node]:
    """Yield a node and those that round what it stores as bfloat16: some of its outputs, by ``op``."""
    plain = {name: f"{name} as float32" for name in node.outputs if name in stored}
    yield replace(node, outputs=tuple(plain.get(name, name) for name in node.outputs))
    for name, before in plain.items():
        yield Node(f"{node.name or name}/bfloat16", op, (before,), (name,), {}, domain, 1)


@dataclass(frozen=True)
class GraphTensor:
    """A graph's input or output as the file declares it.

    ``type``: None where it is not stated, or is none that programs have: then ``other_type`` says what it is.
    Of a format that is held in a wider type that type, and ``other_type`` is the format's name (``FORMATS``).
    ``held``: the name that nodes have for it, where that is another one (``widened_name``).
    ``shape``: None where the rank is not known; a dimension is its size, or the name that stands for it
    (``""``: none).
    """

    name: str
    type: ElementType | None
    shape: tuple[int | str, ...] | None
    other_type: str = ""
    held: str = ""

    @property
    def inner(self) -> str:
        """The name that nodes have for it."""
        return self.held or self.name


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which they can be computed.

    ``inputs`` are bound by name and ``outputs`` read by name. ``constants``: the tensors whose elements the
    file holds. ``unreadable``: constants that cannot be used, with the reason; a fault where one is used.
    ``declared``: what the file says of other tensors, which has to be true. ``changing``: the constants that
    a call gives another value. ``ranges``: the least and the greatest size of open dimensions, by their
    names; such a dimension has one size, wherever it stands.
    """

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]
    constants: Mapping[str, NDArray] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    declared: tuple[GraphTensor, ...] = ()
    changing: frozenset[str] = frozenset()
    ranges: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)


def element_type(dtype: np.dtype[Any]) -> ElementType | None:
    """Return the element type of a NumPy type; None where the IR has none (text, complex)."""
    try:
        return ElementType(dtype.name)
    except ValueError:
        return None


def widened_name(name: str) -> str:
    """Return the name under which a tensor is held whose format programs have not, as float8 and int4.

    It is of a wider type, which has all values of the format. Frameworks move such tensors and convert them:

        v = Transpose(w)           becomes, where w is int4,      v widened = Transpose(w widened)
        y = Cast(v)                                               y = Cast(v widened)

    Whatever else reads one is refused by the name of its format.
    """
    return f"{name} widened"


def widened_end(tensor: GraphTensor, form: str, held: str) -> GraphTensor:
    """Return an input or output of a narrow format (a key of ``FORMATS``) as programs hold it."""
    return replace(tensor, type=FORMATS[form].held, other_type=form, held=held)


@dataclass(frozen=True)
class OnWide:
    """A node that may read wide values instead of narrow ones.

    ``results``: the narrow format of what it gives; ``""``: none, its results are as in the file.
    """

    node: Node
    results: str


def widened(
    nodes: Iterable[Node],
    formats: dict[str, str],
    unreadable: dict[str, str],
    kept: Collection[str],
    meaning: Callable[[Node, Mapping[str, str]], OnWide | None],
    named: Callable[[str], str] = widened_name,
) -> tuple[Node, ...]:
    """Return nodes with those that move, convert or make narrow tensors on wide values.

    ``formats``: of the narrow constants and inputs, by name; those of what nodes give are added. All narrow
    tensors become ``unreadable`` to other nodes.
    ``kept``: names whose tensors must be as in the file: a graph's results. ``meaning``: what a node is that
    may be read so, given the formats known so far. ``named``: what wide tensors are called.
    """
    found = [_on_wide(node, formats, kept, meaning(node, formats), named) for node in nodes]
    unreadable.update((name, f"its elements are of type {form}") for name, form in formats.items())
    return tuple(found)


def _on_wide(
    node: Node,
    known: dict[str, str],
    kept: Collection[str],
    how: OnWide | None,
    named: Callable[[str], str],
) -> Node:
    if how is None or (how.results and any(name in kept for name in node.outputs)):
        return node
    read = replace(how.node, inputs=tuple(named(n) if n in known else n for n in node.inputs))
    if not how.results:
        return read
    known.update((name, how.results) for name in node.outputs if name)
    return replace(read, outputs=tuple(named(n) if n else n for n in node.outputs))
