"""What is known at the place in a kernel that is being written."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyloom.ir.host import MdHom
from polyloom.mdh.kernel.accumulators import Combining
from polyloom.mdh.kernel.arguments import Signature
from polyloom.mdh.kernel.lines import Lines, Namer
from polyloom.mdh.kernel.loads import Place, Points
from polyloom.mdh.print.values import integer_c
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, names_in, sum_of


@dataclass(frozen=True)
class Spot:
    """A point of a register tile along one dimension, or ``width`` neighbours in a vector.

    ``offset``: from where the tile begins; ``nominal``: the same, had nothing to be clamped; ``inside``: the
    C condition under which the point exists, None where it always does.
    """

    offset: IntExpression
    nominal: int
    width: int = 1
    inside: str | None = None


@dataclass(frozen=True)
class Axis:
    """A dimension in the register tile at hand: where it begins, and its spots."""

    base: IntExpression
    spots: tuple[Spot, ...]


@dataclass(kw_only=True)
class State:
    """The kernel so far.

    ``low``, ``high``: per dimension, what the tile at hand covers; ``item``: per dimension, the variable of
    the work-item's number; ``item_stride``: how far apart neighbours along a dimension are numbered.
    ``axes``: the register tile at hand. ``group_ranges``: what the work-group covers. ``top``: where local
    arrays are declared.
    """

    signature: Signature
    facts: TileFacts
    lines: Lines
    namer: Namer
    points: Points
    low: list[IntExpression]
    high: list[IntExpression]
    item: dict[int, str] = field(default_factory=dict)
    item_stride: dict[int, int] = field(default_factory=dict)
    item_number: str = "0"
    axes: dict[int, Axis] = field(default_factory=dict)
    group_ranges: dict[int, tuple[IntExpression, IntExpression]] = field(default_factory=dict)
    top: Lines = field(default_factory=Lines)

    @property
    def hom(self) -> MdHom:
        """The md_hom that is written."""
        return self.facts.hom

    @property
    def combining(self) -> Combining | None:
        """The operator of the reduction, None for a map."""
        combiner = self.facts.combiner
        return None if combiner is None else Combining(self.points, combiner)

    @property
    def integer(self) -> str:
        """The C type of indices."""
        return self.signature.integer

    def c(self, expression: IntExpression) -> str:
        """Return an integer expression in C."""
        return integer_c(expression, self.signature.names)

    def position(self, d: int) -> Name:
        """Return the variable of a dimension's position."""
        return Name(self.hom.iterators[d])

    def variable(self, d: int, ending: str) -> Name:
        """Return a new variable named after a dimension."""
        return Name(self.namer.fresh(f"{self.signature.names[self.hom.iterators[d]]}_{ending}"))

    def constant(self, variable: Name, value: IntExpression) -> Name:
        """Declare an integer."""
        self.lines.add(f"const {self.integer} {self.c(variable)} = {self.c(value)};")
        return variable

    def condition(self, condition: IntExpression | None, place: Place) -> str | None:
        """Return a condition over the iterators at a place, in C; None where there is none."""
        if condition is None:
            return None
        names = dict(self.signature.names)
        used = names_in(condition)
        for d, iterator in enumerate(self.hom.iterators):
            if iterator in used:
                names[iterator] = f"({self.c(place.positions[d])})"
        return integer_c(condition, names)

    def known_names(self) -> frozenset[str]:
        """Return the variables that are known where the register tile begins."""
        names = set(self.signature.numbers) | set(self.signature.defined)
        for expression in (*self.low, *self.high, *(axis.base for axis in self.axes.values())):
            names |= names_in(expression)
        for axis in self.axes.values():
            names |= {n for spot in axis.spots for n in names_in(spot.offset)}
        return frozenset(names) - {self.hom.iterators[d] for d in self.facts.reduced}


def minimum(a: IntExpression, b: IntExpression) -> IntExpression:
    """Return the smaller of two integers."""
    return Operation("min", (a, b))


def plus(a: IntExpression, b: IntExpression | int, factor: int = 1) -> IntExpression:
    """Return ``a + factor * b``."""
    return sum_of([(1, a), (factor, Number(b) if isinstance(b, int) else b)])


def conditions(lines: list[str | None]) -> str | None:
    """Return the conjunction of conditions, None where there is none."""
    given = list(dict.fromkeys(f"({c})" for c in lines if c is not None))
    if not given:
        return None
    return " && ".join(given) if len(given) > 1 else given[0][1:-1]
