"""What the walk finds: references, arrays, statements; iterators are parameters in all of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import islpy as isl

from polyloom.diagnostics import Diagnostic, Span
from polyloom.frontends.c.scope.names import Index, Place
from polyloom.frontends.c.scope.types import CType, Extent
from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType


@dataclass(frozen=True, eq=False)
class Access:
    """A reference: ``array[indices]``, made on the points ``within`` (iterators are parameters)."""

    array: str
    indices: tuple[Index, ...]
    within: isl.Set
    span: Span | None
    whole: int = 0
    """How many further dimensions are touched as a whole (a row that a call is given)."""
    relation: isl.Map | None = None
    """Where a call touches what no single subscript says: ``{ [] -> A[...] }``."""


@dataclass(frozen=True, eq=False)
class FoundArray:
    """An array that statements access, with the levels of structures that it lies in."""

    name: str
    type: CType
    extents: tuple[Extent | None, ...]
    levels: tuple[int, ...]
    place: Place
    linear: bool = False
    """Whether C has it as one dimension."""


@dataclass(frozen=True)
class Product:
    """A parameter that is taken to be the product of sums ``c0 * p0 + c1 * p1 + ...`` over others.

    A number is a multiple of the name ``""``.
    """

    name: str
    factors: tuple[tuple[tuple[str, int], ...], ...]


@dataclass(frozen=True, eq=False)
class Frame:
    """A loop around: its iterator's name in isl and in the source, its type, its ``for``."""

    iterator: str
    name: str
    type: ElementType
    span: Span | None
    descending: bool


@dataclass
class Draft:
    """A statement as the walk finds it; positions of ``Read`` index ``State.pool``."""

    name: str
    domain: isl.Set
    frames: tuple[Frame, ...]
    position: tuple[int, ...]
    target: int | None
    value: Expression | None
    condition: Expression | None
    span: Span | None
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    must: tuple[int, ...] = ()
    refused: tuple[Diagnostic, ...] = ()
    text: str = ""


@dataclass
class Touched:
    """What calls touch beside values: positions in the pool, and why the calls cannot be computed."""

    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    must: list[int] = field(default_factory=list)
    refused: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Stops:
    """Where a block is left early, by each of these; None: nowhere."""

    breaks: isl.Set | None = None
    continues: isl.Set | None = None
    returns: isl.Set | None = None

    def joined(self, other: Stops) -> Stops:
        """Return what two blocks one after the other do."""
        return Stops(
            _union(self.breaks, other.breaks),
            _union(self.continues, other.continues),
            _union(self.returns, other.returns),
        )

    def all(self) -> isl.Set | None:
        """Return where the rest of the block is not reached."""
        return _union(_union(self.breaks, self.continues), self.returns)


def _union(first: isl.Set | None, second: isl.Set | None) -> isl.Set | None:
    if first is None or second is None:
        return second if first is None else first
    return first.union(second).coalesce()
