"""What is known at one point of the walk through a static control part, and what has been found so far.

Inside the walk iterators are parameters of isl sets, with names of their own; ``finish.py`` makes them dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Diagnostic, Span
from polyloom.frontends.c.c_types import CType, Extent, Record, Scalar
from polyloom.frontends.c.places import Places
from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.scop.model import Origin, StatedParallel


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of the source; ``unique`` is its name in the model, where another one may be called the same."""

    name: str
    unique: str
    type: CType
    origin: Origin
    constant: bool = False
    span: Span | None = None


@dataclass(frozen=True, eq=False)
class Known:
    """An integer whose value is an affine function of iterators and parameters."""

    affine: isl.PwAff
    value: Expression


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
    """

    variable: Variable
    type: CType
    indices: tuple[Index, ...] = ()
    members: tuple[str, ...] = ()
    levels: tuple[int, ...] = (0,)
    extents: tuple[Extent | None, ...] = ()


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
    """A member of an enumeration."""

    value: int


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


_ISL_WORDS = frozenset(
    [
        "and",
        "or",
        "not",
        "mod",
        "exists",
        "true",
        "false",
        "min",
        "max",
        "floor",
        "ceil",
        "implies",
        "infty",
        "rat",
        "lexmin",
    ]
)

Binding = Variable | Address | Value | EnumConstant | TypeName | Defined


class Scope:
    """Names, and those of the blocks around."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.names: dict[str, Binding] = {}
        self.records: dict[str, Record] = {}

    def find(self, name: str) -> Binding | None:
        """Return what a name stands for here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def record(self, tag: str) -> Record | None:
        """Return the structure with a tag."""
        scope: Scope | None = self
        while scope is not None:
            if tag in scope.records:
                return scope.records[tag]
            scope = scope.outer
        return None

    @property
    def file(self) -> Scope:
        """The scope of the file."""
        return self if self.outer is None else self.outer.file


@dataclass(frozen=True, eq=False)
class Access:
    """A reference: ``array[indices]``, made on the points ``within`` (iterators are parameters)."""

    array: str
    indices: tuple[Index, ...]
    within: isl.Set
    span: Span | None
    whole: int = 0
    """How many further dimensions are touched as a whole (a row that a call is given)."""


@dataclass(frozen=True, eq=False)
class FoundArray:
    """An array that statements access, with the levels of structures that it lies in."""

    name: str
    type: Scalar
    extents: tuple[Extent | None, ...]
    levels: tuple[int, ...]
    place: Place


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
    refused: tuple[Diagnostic, ...] = ()
    text: str = ""


@dataclass
class State:
    """The walk's state: where it is, what it knows, what it found."""

    places: Places
    scope: Scope
    path: isl.Set
    context: isl.Set
    taken: set[str]
    known: dict[Variable, Known] = field(default_factory=dict)
    lost: dict[Variable, str] = field(default_factory=dict)
    """Variables that cannot be read, and why."""
    frames: list[Frame] = field(default_factory=list)
    position: list[int] = field(default_factory=lambda: [0])
    condition: Expression | None = None
    pool: list[Access] = field(default_factory=list)
    arrays: dict[str, FoundArray] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    parameters: dict[str, ElementType] = field(default_factory=dict)
    stated: list[StatedParallel] = field(default_factory=list)
    assumed: dict[str, None] = field(default_factory=dict)
    refused: list[Diagnostic] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    """The functions that are being inlined."""

    def span(self, node: c_ast.Node | None) -> Span | None:
        """Return where a node stands."""
        return self.places.span(node)

    def text(self, node: c_ast.Node) -> str:
        """Return a node as C."""
        return self.places.text(node)

    def fresh(self, name: str) -> str:
        """Return ``name``, or ``name_0``, ``name_1``, ... if that is taken, and take it."""
        name = f"{name}_" if name in _ISL_WORDS else name
        found, count = name, 0
        while found in self.taken:
            found, count = f"{name}_{count}", count + 1
        self.taken.add(found)
        return found

    def always(self, holds: isl.Set) -> bool:
        """Whether a condition holds wherever the walk now is."""
        return bool(self.path.intersect(self.context).is_subset(holds))

    @contextmanager
    def within(self, path: isl.Set) -> Iterator[None]:
        """Walk on where also ``path`` holds."""
        before, self.path = self.path, self.path.intersect(path).coalesce()
        try:
            yield
        finally:
            self.path = before

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Walk on in another scope."""
        before, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = before

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Walk on inside a function, which cannot be inlined into itself."""
        self.calls.append(name)
        try:
            yield
        finally:
            self.calls.pop()

    def forget(self, variables: Iterable[Variable]) -> None:
        """What is known of variables holds no longer."""
        for variable in variables:
            self.known.pop(variable, None)


def constant_affine(value: int) -> isl.PwAff:
    """Return ``{ [] -> [value] }``."""
    return isl.PwAff(f"{{ [] -> [({value})] }}")


def parameter_affine(name: str) -> isl.PwAff:
    """Return ``[name] -> { [] -> [name] }``."""
    return isl.PwAff(f"[{name}] -> {{ [] -> [({name})] }}")


def everywhere() -> isl.Set:
    """Return ``{ [] }``, no condition."""
    return isl.Set("{ [] }")
