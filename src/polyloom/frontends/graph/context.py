"""What a function of a table of operations gets: a node, its operands as values, and the builder.

Attributes that it never asks for are refused: what it does not know may change the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.model import Graph, Node
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Anything, Value, ValueList

NDArray = npt.NDArray[Any]

MOST_KNOWN = 2**24
"""Elements of an operand on which the shape of a result depends at most."""

MOST_INTEGERS = 10_000
"""Elements of an operand that is a shape, an order or sizes at most."""


@dataclass(frozen=True, eq=False)
class Context:
    """``b``: the builder; ``values``: the node's inputs, None where one is missing.

    ``subgraph`` lowers a body of control flow, with values for names that it uses. An input's key is its
    position; ``Call`` has names too. The methods raise ``Refused`` for what is missing or of another kind.
    """

    ATTRIBUTE: ClassVar[str] = "attribute"
    """What messages call an attribute."""
    NUMBERS: ClassVar[type[np.floating[Any]]] = np.float32
    """The type of attributes that are numbers in ONNX's and TensorFlow's files, and so of their defaults."""

    b: Builder
    node: Node
    values: tuple[Anything | None, ...]
    subgraph: Callable[[Graph, Mapping[str, Anything]], list[Anything]]

    @property
    def version(self) -> int:
        """The version of the operation."""
        return self.node.version

    def optional(self, key: Key) -> Value | None:
        """Return an input that is a tensor; None where it is missing."""
        found = self.anything(key)
        if isinstance(found, ValueList):
            raise Refused(f"input number {key} is a list of tensors")
        return found

    def anything(self, key: Key) -> Anything | None:
        """Return an input, tensor or list; None where it is missing."""
        assert isinstance(key, int), key
        return self.values[key] if 0 <= key < len(self.values) else None

    def listed(self, position: int = 0) -> ValueList:
        """Return an input that is a list."""
        found = self.anything(position)
        if not isinstance(found, ValueList):
            raise Refused(f"input number {position} is no list of tensors")
        return found

    @property
    def everything(self) -> list[Anything]:
        """All inputs, tensors and lists, none of which may be missing."""
        return self.some(range(len(self.values)))

    def some(self, positions: Sequence[int]) -> list[Anything]:
        """Return inputs, tensors and lists, none of which may be missing."""
        found = [v for v in map(self.anything, positions) if v is not None]
        if len(found) != len(positions):
            raise Refused("an input is missing")
        return found

    def lowered(self, body: Graph, given: Mapping[str, Value]) -> list[Value]:
        """Lower a body whose results are tensors."""
        return tensors_of(self.subgraph(body, given))

    def input(self, key: Key = 0) -> Value:
        """Return an input that must be there."""
        found = self.optional(key)
        if found is None:
            raise Refused(f"input number {key} is missing")
        return found

    @property
    def inputs(self) -> list[Value]:
        """All inputs, none of which may be missing."""
        return [self.input(k) for k in range(len(self.values))]

    def known(self, position: int, what: str) -> NDArray:
        """Return an input whose elements must be known at import."""
        found = self.b.known(self.input(position))
        if found is None:
            raise Refused(f"{what} is computed when the model runs: it must be a constant")
        if found.size > MOST_KNOWN:
            raise Refused(f"{what} has {found.size} elements, too many to be looked at")
        return found

    def known_or(self, position: int, what: str) -> NDArray | None:
        """Return an input that may be missing and otherwise must be known."""
        return None if self.optional(position) is None else self.known(position, what)

    def integers(self, position: int, what: str) -> list[int]:
        """Return a known input of integers as a list."""
        found = self.known(position, what)
        if found.size > MOST_INTEGERS:
            raise Refused(f"{what} has {found.size} elements")
        found = found.reshape(-1)
        if not np.isfinite(found).all():
            raise Refused(f"{what} is no integer: {found.tolist()}")
        return [int(n) for n in found]

    def one(self, position: int, what: str) -> NDArray:
        """Return a known input of one element, whatever its rank, as an array of rank 0."""
        found = self.known(position, what)
        if found.size != 1:
            raise Refused(f"{what} has {found.size} elements, not one")
        return found.reshape(())

    def whole(self, position: int, what: str, default: int | None = None) -> int:
        """Return a known input of one integer; the default where the input is missing."""
        if default is not None and self.optional(position) is None:
            return default
        found = self.integers(position, what)
        if len(found) != 1:
            raise Refused(f"{what} has {len(found)} elements, not one")
        return found[0]

    def first(self, count: int) -> list[Value]:
        """Return the first inputs, none of which may be missing."""
        return [self.input(k) for k in range(count)]

    def operands(self, count: int) -> list[Value]:
        """Return all inputs, which must be so many."""
        if len(self.values) != count:
            raise Refused(f"{len(self.values)} inputs, not {count}")
        return self.inputs

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute; the default where it is not given."""
        return self.node.attributes.get(name, default)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is an integer."""
        found = self.attribute(name, default)
        if not isinstance(found, int | np.integer):
            raise Refused(f"{self.ATTRIBUTE} `{name}` is no integer")
        return int(found)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an attribute that is a truth value."""
        return bool(self.attribute(name, default))

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is a number; a default as the format's type of attributes has it."""
        found = self.attribute(name, None if default is None else float(self.NUMBERS(default)))
        if not isinstance(found, int | float):
            raise Refused(f"{self.ATTRIBUTE} `{name}` is no number")
        return float(found)

    def numbers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        found = self.attribute(name, default)
        if not isinstance(found, tuple | list) or not all(isinstance(n, int) for n in found):
            raise Refused(f"{self.ATTRIBUTE} `{name}` is no list of integers")
        return tuple(map(int, found))

    def text(self, name: str, default: str = "") -> str:
        """Return an attribute that is a text."""
        found = self.attribute(name, default)
        if isinstance(found, bytes):
            return found.decode("utf-8", errors="backslashreplace")
        if not isinstance(found, str):
            raise Refused(f"{self.ATTRIBUTE} `{name}` is no text")
        return found

    def graph(self, name: str) -> Graph:
        """Return an attribute that is a body."""
        found = self.attribute(name)
        if not isinstance(found, Graph):
            raise Refused(f"{self.ATTRIBUTE} `{name}` is no graph")
        return found

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """Return an attribute that is an axis, counted from 0."""
        return axis(self.integer(name, default), rank)


Key = int | str
"""Which of a node's inputs: its position, or the name that its schema has for it."""

Operation = Callable[[Context], Sequence[Anything]]
Table = Mapping[str, Operation]


def axis(number: int, rank: int) -> int:
    """Return an axis counted from 0. Raises ``Refused`` where there is none."""
    if not -rank <= number < rank:
        raise Refused(f"axis {number} of {rank}")
    return number % rank


def axes(numbers: Sequence[int], rank: int) -> list[int]:
    """Return axes counted from 0, in order. Raises ``Refused`` where one is not there or is there twice."""
    found = sorted(axis(n, rank) for n in numbers)
    if len({*found}) != len(found):
        raise Refused(f"axes {list(numbers)} name one twice")
    return found


def tensors_of(results: Sequence[Anything]) -> list[Value]:
    """Return results of a body that are tensors. Raises ``Refused`` for lists."""
    kept = [v for v in results if isinstance(v, Value)]
    if len(kept) != len(results):
        raise Refused("a result of its body is a list of tensors")
    return kept


def only(value: Value) -> Sequence[Value]:
    """Return the results of an operation that has one."""
    return (value,)


class Recorded(Mapping[str, Any]):
    """A mapping that remembers which of its values were asked for (``in`` does not count)."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries
        self._asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def unread(self) -> dict[str, Any]:
        """The entries whose values nobody asked for, in their order."""
        return {n: v for n, v in self._entries.items() if n not in self._asked}


def refuse_unknown(kind: str, names: list[str], operation: str) -> None:
    """Raise ``Refused`` where there are names; ``kind``: what they are of the operation (``"attribute"``)."""
    if names:
        listed = ", ".join(f"`{n}`" for n in names)
        verb = "s {} are" if len(names) > 1 else " {} is"
        raise Refused(f"{kind}{verb.format(listed)} not known of {operation}")
