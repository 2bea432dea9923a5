"""A call of an operation of PyTorch: its arguments by the names of its schema.

What an archive leaves out has the schema's default, which the function of the table gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.context import Context, Operation, axes, axis
from polyloom.frontends.graph.lists import Anything
from polyloom.frontends.graph.lookups import Recorded
from polyloom.frontends.graph.operations.elementwise import cast
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value
from polyloom.frontends.torch.ignored import refuse_ignored
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

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
class Call:
    """A node with its arguments. The methods raise ``Refused`` for what is missing or of another kind."""

    context: Context

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.context.builder

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments that are given, as the archive has them."""
        found: Mapping[str, Any] = self.context.node.attributes[ARGUMENTS]
        return found

    @property
    def overload(self) -> str:
        """Which of the operation's schemas this is."""
        return self.context.node.op.rpartition(".")[2]

    def type_of(self, position: int = 0) -> ElementType:
        """Return the element type that a result has in PyTorch."""
        types: Sequence[ElementType | None] = self.context.node.attributes[TYPES_OF_RESULTS]
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
        return len(self.context.node.outputs)

    def given(self, name: str) -> bool:
        """Tell whether an argument is given and not None."""
        return self.arguments.get(name) is not None

    def argument(self, name: str, default: Any = None) -> Any:
        """Return an argument that is no tensor; symbolic numbers as the numbers that they are."""
        found = self.arguments.get(name, default)
        found = default if found is None else found
        if isinstance(found, tuple):
            return tuple(self._plain(name, n) for n in found)
        return self._plain(name, found)

    def _plain(self, name: str, found: Any) -> Any:
        if isinstance(found, Unusable):
            raise Refused(f"`{name}`: {found.reason}")
        return self.known(found, name).item() if isinstance(found, Operand) else found

    def known(self, operand: Operand, name: str) -> NDArray:
        """Return a tensor of one element that must be known at import."""
        found = self.context.known(operand.position, f"`{name}`")
        if found.size != 1:
            raise Refused(f"`{name}` is no number")
        return found

    # -- tensors

    def tensor(self, name: str = "self") -> Value:
        """Return an argument that is a tensor."""
        found = self.optional(name)
        if found is None:
            raise Refused(f"the argument `{name}` is missing")
        return found

    def optional(self, name: str) -> Value | None:
        """Return an argument that is a tensor or None."""
        found = self.arguments.get(name)
        if found is not None and not isinstance(found, Operand):
            raise Refused(f"the argument `{name}` is no tensor")
        return None if found is None else self.context.input(found.position)

    def tensors(self, name: str) -> list[Value]:
        """Return an argument that is a list of tensors."""
        return [v for v in self.optional_tensors(name) if v is not None]

    def optional_tensors(self, name: str) -> list[Value | None]:
        """Return an argument that is a list of tensors and None."""
        found = self.arguments.get(name)
        if not isinstance(found, tuple) or any(not isinstance(o, Operand | None) for o in found):
            raise Refused(f"the argument `{name}` is no list of tensors")
        return [None if o is None else self.context.input(o.position) for o in found]

    def is_tensor(self, name: str) -> bool:
        """Tell whether an argument is a tensor, and not a number."""
        return isinstance(self.arguments.get(name), Operand)

    def operand(self, name: str, kind: ElementType, default: float | None = None) -> Value:
        """Return a tensor or a number as a value of a type."""
        if self.is_tensor(name):
            return cast(self.b, self.tensor(name), kind, hint=name)
        number = self.argument(name, default)
        if not isinstance(number, int | float):
            raise Refused(f"the argument `{name}` is no number")
        return self.b.constant(np.full((), number).astype(kind.dtype))

    # -- numbers

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an argument that is an integer."""
        found = self.argument(name, default)
        if not isinstance(found, int):
            raise Refused(f"the argument `{name}` is no integer")
        return int(found)

    def number(self, name: str, default: float | None = None) -> float:
        """Return an argument that is a number."""
        found = self.argument(name, default)
        if not isinstance(found, int | float):
            raise Refused(f"the argument `{name}` is no number")
        return float(found)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an argument that is a truth value."""
        return bool(self.argument(name, default))

    def text(self, name: str, default: str = "") -> str:
        """Return an argument that is a text."""
        found = self.argument(name, default)
        if not isinstance(found, str):
            raise Refused(f"the argument `{name}` is no text")
        return found

    def integers(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return an argument that is a list of integers; one integer is a list of one."""
        found = self.argument(name, None if default is None else tuple(default))
        listed = (found,) if isinstance(found, int) else found
        if not isinstance(listed, tuple) or not all(isinstance(n, int) for n in listed):
            raise Refused(f"the argument `{name}` is no list of integers")
        return tuple(int(n) for n in listed)

    def spatial(self, name: str, rank: int, default: int) -> tuple[int, ...]:
        """Return a number for each of ``rank`` axes; one number stands for all."""
        found = self.integers(name, (default,))
        if len(found) not in (1, rank):
            raise Refused(f"`{name}` has {len(found)} numbers for {rank} axes")
        return found if len(found) == rank else found * rank

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """Return an argument that is an axis, counted from 0; a scalar has none."""
        return axis(self.integer(name, default), rank)

    def axes(self, name: str, rank: int) -> list[int]:
        """Return an argument that is axes, counted from 0; none given: all of them."""
        found = self.integers(name, ())
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
        results = function(Call(replace(context, node=node)))
        scalars = all(isinstance(v, Value) and v.rank == 0 for v in context.values)
        refuse_ignored(node.op, arguments.unasked, scalars=scalars)
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
