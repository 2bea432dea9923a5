"""A call of an operation of PyTorch: its arguments by the names of its schema.

What an archive leaves out has the schema's default, which the function of the table gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from polyloom.frontends.graph.context import Context, Key, Operation, Recorded, axes
from polyloom.frontends.graph.operations.elementwise import cast
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Anything, Value
from polyloom.frontends.torch.ignored import refuse_ignored
from polyloom.ir.types import ElementType

ARGUMENTS = "arguments"
TYPES_OF_RESULTS = "types"


@dataclass(frozen=True)
class Operand:
    """An argument that is a tensor (or a symbolic number): the input of a node with this position."""

    position: int


@dataclass(frozen=True)
class Unusable:
    """An argument that cannot be used, and why: a fault of the node that asks for it."""

    reason: str


@dataclass(frozen=True, eq=False)
class Call(Context):
    """A node whose attributes are its arguments, of which some are tensors: inputs by their names."""

    ATTRIBUTE: ClassVar[str] = "the argument"
    NUMBERS: ClassVar[type[np.floating[Any]]] = np.float64

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments that are given, as the archive has them."""
        found: Mapping[str, Any] = self.node.attributes[ARGUMENTS]
        return found

    def type_of(self, position: int = 0) -> ElementType:
        """Return the element type that a result has in PyTorch."""
        types: Sequence[ElementType | None] = self.node.attributes[TYPES_OF_RESULTS]
        found = types[position] if position < len(types) else None
        if found is None:
            raise Refused("a result of a type that tensor programs have not")
        return found

    @property
    def type(self) -> ElementType:
        """The element type of the first result."""
        return self.type_of()

    @property
    def results(self) -> int:
        """How many results the node has."""
        return len(self.node.outputs)

    def given(self, name: str) -> bool:
        """Tell whether an argument is given and not None."""
        return self.arguments.get(name) is not None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an argument that is no tensor; symbolic numbers as the numbers that they are."""
        found = self.arguments.get(name, default)
        found = default if found is None else found
        if isinstance(found, tuple):
            return tuple(self._plain(name, n) for n in found)
        return self._plain(name, found)

    def _plain(self, name: str, found: Any) -> Any:
        if isinstance(found, Unusable):
            raise Refused(f"`{name}`: {found.reason}")
        if not isinstance(found, Operand):
            return found
        known = self.known(found.position, f"`{name}`")
        if known.size != 1:
            raise Refused(f"`{name}` is no number")
        return known.item()

    # -- tensors

    def input(self, key: Key = "self") -> Value:
        """Return an argument that is a tensor."""
        found = super().input(key) if isinstance(key, int) else self.optional(key)
        if found is None:
            raise Refused(f"the argument `{key}` is missing")
        return found

    def optional(self, key: Key) -> Value | None:
        """Return an argument that is a tensor or None."""
        if isinstance(key, int):
            return super().optional(key)
        found = self.arguments.get(key)
        if found is not None and not isinstance(found, Operand):
            raise Refused(f"the argument `{key}` is no tensor")
        return None if found is None else self.input(found.position)

    def tensors(self, name: str) -> list[Value]:
        """Return an argument that is a list of tensors."""
        return [v for v in self.optional_tensors(name) if v is not None]

    def optional_tensors(self, name: str) -> list[Value | None]:
        """Return an argument that is a list of tensors and None."""
        found = self.arguments.get(name)
        if not isinstance(found, tuple) or any(not isinstance(o, Operand | None) for o in found):
            raise Refused(f"the argument `{name}` is no list of tensors")
        return [None if o is None else self.input(o.position) for o in found]

    def is_tensor(self, name: str) -> bool:
        """Tell whether an argument is a tensor, and not a number."""
        return isinstance(self.arguments.get(name), Operand)

    def operand(self, name: str, kind: ElementType, default: float | None = None) -> Value:
        """Return a tensor or a number as a value of a type."""
        if self.is_tensor(name):
            return cast(self.b, self.input(name), kind, hint=name)
        number = self.attribute(name, default)
        if not isinstance(number, int | float):
            raise Refused(f"the argument `{name}` is no number")
        return self.b.constant(np.full((), number).astype(kind.dtype))

    # -- numbers

    def numbers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return an argument that is a list of integers; one integer is a list of one."""
        found = self.attribute(name, default)
        return (int(found),) if isinstance(found, int) else super().numbers(name, default)

    def spatial(self, name: str, rank: int, default: int) -> tuple[int, ...]:
        """Return a number for each of ``rank`` axes; one number stands for all."""
        found = self.numbers(name, (default,))
        if len(found) not in (1, rank):
            raise Refused(f"`{name}` has {len(found)} numbers for {rank} axes")
        return found if len(found) == rank else found * rank

    def axes(self, name: str, rank: int) -> list[int]:
        """Return an argument that is axes, counted from 0; none given: all of them."""
        found = self.numbers(name, ())
        if rank == 0:
            return []
        return axes(found, rank) if found else list(range(rank))


Lowering = Callable[[Call], Sequence[Value]]


def operation(function: Lowering) -> Operation:
    """Return a function of calls as one of the neutral table; it refuses arguments that nobody asks for."""

    def lowered(context: Context) -> Sequence[Anything]:
        given = context.node.attributes
        arguments = Recorded(given[ARGUMENTS])
        node = replace(context.node, attributes={**given, ARGUMENTS: arguments})
        results = function(Call(context.b, node, context.values, context.subgraph))
        scalars = all(isinstance(v, Value) and v.rank == 0 for v in context.values)
        refuse_ignored(node.op, arguments.unread, scalars=scalars)
        _check_types(results, given[TYPES_OF_RESULTS])
        return results

    return lowered


def _check_types(results: Sequence[Value], stated: Sequence[ElementType | None]) -> None:
    """Raise ``Refused`` where a result has not the type that the archive states."""
    for number, (result, kind) in enumerate(zip(results, stated, strict=False)):
        if kind is not None and result.type is not kind:
            raise Refused(f"result number {number} is {result.type.value}, the file says {kind.value}")


def operations(functions: Mapping[str, Lowering]) -> dict[str, Operation]:
    """Return functions of calls as a part of the neutral table."""
    return {f"aten.{name}": operation(function) for name, function in functions.items()}
