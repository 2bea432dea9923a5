"""What names stand for, places in memory, and the scopes that hold names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError, Span
from polyloom.frontends.c.scope.types import CType, Extent, Record
from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.scop.model import Origin


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of the source;
    ``unique`` is its name in the model, where another one may be called the same.
    ``register``: declared so, which has no address.
    """

    name: str
    unique: str
    type: CType
    origin: Origin
    constant: bool = False
    span: Span | None = None
    register: bool = False


@dataclass(frozen=True, eq=False)
class Known:
    """An integer whose value is an affine function of iterators and parameters."""

    affine: isl.PwAff
    value: Expression


@dataclass(frozen=True, eq=False)
class Formula:
    """An integer whose value is an expression over iterators and parameters, where ``where`` holds.

    ``affine``: the same as a function, where it is affine. Elsewhere memory has the value.
    """

    value: Expression
    where: isl.Set | None = None
    affine: isl.PwAff | None = None


Fact = Known | Formula
"""What is known of an integer variable."""


@dataclass(frozen=True, eq=False)
class Index:
    """A subscript; ``affine`` is None where it is no affine function, for the ``reason`` at ``span``."""

    affine: isl.PwAff | None
    value: Expression
    reason: str = ""
    span: Span | None = None


@dataclass(frozen=True, eq=False)
class Place:
    """Something in memory: ``variable[indices]``, then for each member its name and its indices.

    ``indices`` holds those of all levels; ``levels`` says how many belong to the variable and to each member.
    ``by_pointer``: a pointer with a name, or one that was cast, led there, and may have left its row.
    """

    variable: Variable
    type: CType
    indices: tuple[Index, ...] = ()
    members: tuple[str, ...] = ()
    levels: tuple[int, ...] = (0,)
    extents: tuple[Extent | None, ...] = ()
    by_pointer: bool = False


@dataclass(frozen=True, eq=False)
class Address:
    """A pointer to ``place``; ``steps``: whether arithmetic on it moves the last index of the place."""

    place: Place
    steps: bool


@dataclass(frozen=True, eq=False)
class Value:
    """The value of an argument of an inlined function, where it is no known integer."""

    value: Expression
    type: CType


@dataclass(frozen=True)
class EnumConstant:
    """A member of an enumeration, and the type of the enumeration, which need not be the member's own."""

    value: int
    element: ElementType
    enumeration: CType


@dataclass(frozen=True, eq=False)
class TypeName:
    """A name that ``typedef`` defined."""

    type: CType


@dataclass(frozen=True, eq=False)
class Defined:
    """A function; ``body`` is None where only its prototype is known."""

    name: str
    declaration: c_ast.FuncDecl
    body: c_ast.FuncDef | None
    inline: bool


@dataclass(frozen=True, eq=False)
class Unusable:
    """A name whose declaration is outside the SCoP and means nothing to it; using it is the ``fault``."""

    fault: PolyloomError


Binding = Unusable | Variable | Address | Value | EnumConstant | TypeName | Defined


class Scope:
    """Names, and those of the blocks around."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[str, Binding] = {}
        self.records: dict[str, Record] = {}
        self.enumerations: dict[str, CType] = {}

    def find(self, name: str) -> Binding | None:
        """Return what a name stands for here. Errors: those of an ``Unusable`` name's declaration."""
        found = next((scope.names[name] for scope in self._outwards() if name in scope.names), None)
        if isinstance(found, Unusable):
            raise found.fault
        return found

    def names_around(self) -> dict[str, Binding]:
        """Return all names that are known here."""
        outer = {} if self.outer is None else self.outer.names_around()
        return {**outer, **self.names}

    def variables(self, names: Iterable[str]) -> frozenset[Variable]:
        """Return the variables that names stand for or point into."""
        around = self.names_around()
        found = (around.get(name) for name in names)
        return frozenset(
            one.place.variable if isinstance(one, Address) else one
            for one in found
            if isinstance(one, (Variable, Address))
        )

    def record(self, tag: str) -> Record | None:
        """Return the structure with a tag."""
        return next((scope.records[tag] for scope in self._outwards() if tag in scope.records), None)

    def enumeration(self, tag: str) -> CType | None:
        """Return the type of the enumeration with a tag."""
        found = (scope.enumerations[tag] for scope in self._outwards() if tag in scope.enumerations)
        return next(found, None)

    def _outwards(self) -> Iterator[Scope]:
        """Yield the scope, and those around it from the nearest on."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def file(self) -> Scope:
        """The scope of the file."""
        return self if self.outer is None else self.outer.file
