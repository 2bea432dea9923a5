"""What C calls the arrays and values of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyloom.diagnostics import Span
from polyloom.mdh.print.dialect import OPENCL, Dialect
from polyloom.mdh.print.values import integer_c
from polyloom.polyhedra.loops.tree import IntExpression


@dataclass(frozen=True)
class Variable:
    """What C calls a buffer: ``p[i].x[j]`` is path ``("p", "x")``, levels ``(1, 1)``.

    ``hidden``: where the call stands another variable has its name. ``layout``: what holds in C where its
    structures lie as the function takes them to. ``register``: C has no address of it.
    """

    path: tuple[str, ...]
    levels: tuple[int, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    hidden: bool = False
    layout: tuple[str, ...] = ()
    register: bool = False

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie side by side: all subscripts stand at the end."""
        return not any(self.levels[:-1])

    @property
    def base(self) -> str:
        """What stands in front of the first subscript: a pointer, or an array."""
        behind = next((k for k, count in enumerate(self.levels) if count), len(self.levels) - 1)
        return ".".join(self.path[: behind + 1])

    @property
    def structure(self) -> str:
        """The first structure of the array of structures in which a member lies."""
        count = next(count for count in self.levels if count)
        return self.base + "[0]" * count

    def is_linear(self, dimensions: int) -> bool:
        """Whether C has one subscript for several dimensions."""
        return sum(self.levels) == 1 < dimensions

    def element(self, indices: Sequence[str]) -> str:
        """Return one element, as many indices as there are subscripts; the array itself for none."""
        text, used = "", 0
        for name, count in zip(self.path, self.levels, strict=True):
            chosen = indices[used : used + count]
            text += ("." if text else "") + name + "".join(f"[{index}]" for index in chosen)
            used += count
        return text


def layout(members: Sequence[tuple[Variable, int]], size: int) -> tuple[str, ...]:
    """Return what holds in C where structures have ``size`` bytes, and members begin behind so many.

    Of ``x[i].im``: ``sizeof x[0] == 16``, ``(char *)&x[0].im - (char *)&x[0] == 8``.
    """
    whole = members[0][0].structure
    places = []
    for member, first in members:
        element = member.element(["0"] * sum(member.levels))
        places.append(f"(char *)&{element} - (char *)&{whole} == {first}")
    return f"sizeof {whole} == {size}", *places


@dataclass(frozen=True)
class Integers:
    """How integers of a host program are written where its call stands, among narrow and unsigned ones.

    ``names``: of parameters in C. ``dialect`` notes the functions that are called, which the caller declares.
    """

    names: Mapping[str, str]
    dialect: Dialect = field(default_factory=lambda: replace(OPENCL, owner="polyloom_").noting())

    def text(self, expression: IntExpression) -> str:
        """Return an expression, of which each variable is a ``long long``."""
        wide = {name: f"(long long){text}" for name, text in self.names.items()}
        return integer_c(expression, wide, self.dialect)

    @property
    def called(self) -> tuple[str, ...]:
        """The functions of two numbers of type ``long long`` that texts so far call."""
        families = dict.fromkeys(family for family, *_ in self.dialect.noted.helpers)
        return tuple(f"{self.dialect.owner}{family}" for family in sorted(families))
