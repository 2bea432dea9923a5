"""PE coordinates as tiles of iterators: ``j//4``, ``2*(k//2) + w//4``, ``3``.

One arithmetic for text, extents and costs, so that nothing is enumerated. Not in the papers (dtg_codegen,
Sec. 4.1.2, leaves the choice of a placement for the future).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from polyloom.ir.host import Index
from polyloom.ir.statements import Statement
from polyloom.polyhedra.text.names import isl_name


@dataclass(frozen=True)
class Tile:
    """``step * floor((expression - low) / size)``, an expression of a statement's iterators.

    ``low``, ``high``: the least and greatest value of the expression on the domain. With a ``cycle``, values
    are distributed cyclically instead: ``step * ((expression - low) mod cycle)``.
    """

    expression: Index
    low: int
    high: int
    size: int
    step: int = 1
    cycle: int = 0

    @cached_property
    def count(self) -> int:
        """Number of tiles."""
        if self.cycle:
            return min(self.cycle, self.high - self.low + 1)
        return (self.high - self.low) // self.size + 1

    @cached_property
    def iterator(self) -> int | None:
        """The iterator that the tile is of, if the expression is one iterator, counted upwards."""
        used = self.expression.used
        unit = len(used) == 1 and used[0][1] == 1
        return used[0][0] if unit and self.expression.constant == self.low == 0 else None


@dataclass(frozen=True)
class Coordinate:
    """The sum of tiles and a constant."""

    tiles: tuple[Tile, ...] = ()
    constant: int = 0

    @cached_property
    def last(self) -> int:
        """The largest value."""
        return self.constant + sum(tile.step * (tile.count - 1) for tile in self.tiles)

    def text(self, names: tuple[str, ...]) -> str:
        """Return it in isl notation."""
        terms = [_tile_text(tile, names) for tile in self.tiles if tile.count > 1]
        if self.constant or not terms:
            terms.append(str(self.constant))
        return " + ".join(terms)


@dataclass(frozen=True)
class Place:
    """Where a statement's instances are."""

    x: Coordinate
    y: Coordinate

    def text(self, statement: Statement) -> str:
        """Return ``ff[i, j] -> PE[j//4, i//8]``."""
        names = tuple(map(isl_name, statement.iterators))
        indices = ", ".join(names)
        return f"{statement.name}[{indices}] -> PE[{self.x.text(names)}, {self.y.text(names)}]"


def range_of(expression: Index, domain: tuple[int, ...]) -> tuple[int, int]:
    """Return the least and greatest value of an expression on a zero-based rectangle."""
    ends = [(0, c * (n - 1)) for c, n in zip(expression.coefficients, domain, strict=True)]
    low, high = (sum(choose(e) for e in ends) for choose in (min, max))
    return expression.constant + low, expression.constant + high


def _tile_text(tile: Tile, names: tuple[str, ...]) -> str:
    inner = affine_text(tile.expression, names, -tile.low)
    if tile.cycle:
        inner = f"{inner} mod {tile.cycle}" if inner.isidentifier() else f"({inner}) mod {tile.cycle}"
        return inner if tile.step == 1 else f"{tile.step}*({inner})"
    if tile.size > 1:
        inner = f"{inner}//{tile.size}" if inner.isidentifier() else f"({inner})//{tile.size}"
    simple = inner.isidentifier() or tile.size > 1
    if tile.step == 1:
        return inner
    return f"{tile.step}*{inner}" if simple and tile.size == 1 else f"{tile.step}*({inner})"


def affine_text(expression: Index, names: tuple[str, ...], shift: int = 0) -> str:
    """Return ``expression + shift`` in isl notation."""
    terms: list[str] = []
    for c, name in zip(expression.coefficients, names, strict=True):
        if c:
            sign = ("- " if c < 0 else "+ ") if terms else ("-" if c < 0 else "")
            terms.append(sign + (name if abs(c) == 1 else f"{abs(c)}*{name}"))
    constant = expression.constant + shift
    if constant or not terms:
        terms.append(str(constant) if not terms else f"{'-' if constant < 0 else '+'} {abs(constant)}")
    return " ".join(terms)
