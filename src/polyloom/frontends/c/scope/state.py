"""What is known at one point of the walk through a static control part, and what has been found so far.

Inside the walk iterators are parameters of isl sets, with names of their own; ``finish.py`` makes them
dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields, replace
from enum import Enum

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import PolyloomError, Span
from polyloom.frontends.c.scope.drafts import Access, Draft, FoundArray, Frame, Product, Stops, Touched
from polyloom.frontends.c.scope.names import Defined, Fact, Formula, Known, Place, Scope, Variable
from polyloom.frontends.c.scope.sets import without_set
from polyloom.frontends.c.syntax.places import Places
from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.polyhedra.text.names import isl_name
from polyloom.scop.model import StatedParallel


class Mode(Enum):
    """What becomes of calls and of conditions on data."""

    TEXT = "text"
    """As pet has them: a call of a function that is not ``inline`` is one statement; a condition on data
    that is no
    comparison of elements, or that its branches change, is evaluated by a statement of its own."""
    COMPUTE = "compute"
    """Functions are inlined, conditions are part of the statements that they guard."""


@dataclass(frozen=True)
class Hooks:
    """What expressions need of the modules above them: statements inside calls."""

    walk: Callable[[Sequence[c_ast.Node], State], Stops]
    inline: Callable[[Defined, c_ast.FuncCall, State], Expression | None]
    place: Callable[[c_ast.Node, State], Place]
    size: Callable[[c_ast.Node, State], isl.PwAff]
    staying: Callable[[c_ast.Node, State], Known | None]
    summarise: Callable[[Defined | None, c_ast.FuncCall, State], Expression]
    value: Callable[[c_ast.Node, State], Expression]
    not_null: Callable[[c_ast.Node, State], bool | None]


@dataclass(frozen=True, eq=False)
class Result:
    """Where a function puts what it returns, and the condition on data under which it is called."""

    place: Place | None
    condition: Expression | None = None


@dataclass
class ConstantElements:
    """Places in memory whose values are taken to stay as they are while the part runs, by their paths.

    ``integers``: those that are parameters. ``pointers``: those that are arrays of their own. ``wanted``: of
    an earlier walk, so that every read of one place is the same parameter. ``refused``: the part writes them.
    """

    wanted: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    integers: dict[str, ConstantElement] = field(default_factory=dict)
    pointers: dict[str, ConstantElement] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ConstantElement:
    """A place whose value stays; ``variable``: what it is in the model. ``known``: an integer's value."""

    place: Place
    variable: Variable
    known: Known | None = None


@dataclass
class State:
    """The walk's state: where it is, what it knows, what it found."""

    places: Places
    scope: Scope
    path: isl.Set
    context: isl.Set
    taken: set[str]
    above: Hooks
    limits: isl.Set = field(default_factory=lambda: isl.Set("{ [] }"))
    """What the types of parameters say about their values."""
    known: dict[Variable, Fact] = field(default_factory=dict)
    unusable: dict[Variable, str] = field(default_factory=dict)
    """Variables that cannot be read, and why."""
    frames: list[Frame] = field(default_factory=list)
    position: list[int] = field(default_factory=lambda: [0])
    condition: Expression | None = None
    pool: list[Access] = field(default_factory=list)
    arrays: dict[str, FoundArray] = field(default_factory=dict)
    array_names: dict[tuple[Variable, tuple[str, ...]], str] = field(default_factory=dict)
    """The names of ``arrays``, by the variable and the path of members in it."""
    drafts: list[Draft] = field(default_factory=list)
    parameters: dict[str, ElementType] = field(default_factory=dict)
    stated: list[StatedParallel] = field(default_factory=list)
    pending: list[StatedParallel] = field(default_factory=list)
    """What pragmas state about the loop that comes next."""
    assumed: dict[str, None] = field(default_factory=dict)
    products: dict[tuple[tuple[tuple[str, int], ...], ...], Product] = field(default_factory=dict)
    """Parameters that are made for products of others in bounds, by their factors."""
    equal: tuple[Product, ...] = ()
    """What parameters are taken to be, beside what ``context`` says."""
    refused: list[PolyloomError] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    mode: Mode = Mode.COMPUTE
    repeated: frozenset[str] = frozenset()
    """Names that the function declares more than once."""
    renamed: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    iterators: set[str] = field(default_factory=set)
    touched: Touched = field(default_factory=lambda: Touched())
    """What the calls inside the expression that is being read touch."""
    results: list[Result] = field(default_factory=list)
    """Of the functions that are being inlined."""
    assuming: bool = False
    """Whether the parameters may be taken to have values for which unsigned arithmetic does not wrap."""
    calls: list[str] = field(default_factory=list)
    """The functions that are being inlined."""
    bodies: list[c_ast.Node] = field(default_factory=list)
    """The statements of the part, and of the functions that are being inlined, as they are walked."""
    elements: ConstantElements = field(default_factory=lambda: ConstantElements())
    heading: bool = False
    """Whether a loop's head is being read."""
    fused: list[Span | None] = field(default_factory=list)
    """Where ``fma`` was called."""
    present: dict[Variable, Span | None] = field(default_factory=dict)
    """Pointers that are taken not to be NULL, and where that is asked."""
    nulls: set[Variable] = field(default_factory=set)
    """Pointers that are NULL."""
    outside: frozenset[str] = frozenset()
    """Variables of the file that loops count in: their last values are for others to see."""
    inner_names: frozenset[str] = frozenset()
    """Names of the function's own variables; a variable of the file with the same name gets another."""

    def span(self, node: c_ast.Node | None) -> Span | None:
        """Return where a node stands."""
        return self.places.span(node)

    def text(self, node: c_ast.Node) -> str:
        """Return a node as C."""
        return self.places.text(node)

    def type_of(self, name: str) -> ElementType:
        """Return the type of a parameter or iterator, by its name in isl."""
        for frame in self.frames:
            if frame.iterator == name:
                return frame.type
        return self.parameters.get(name, ElementType.INT32)

    def fresh(self, name: str) -> str:
        """Return ``name`` as isl can read it, or ``name_0``, ... if that is taken, and take it."""
        name = isl_name(name.replace("$", "_"))
        found, count = name, 0
        while found in self.taken:
            found, count = f"{name}_{count}", count + 1
        self.taken.add(found)
        return found

    def local(self, name: str) -> str:
        """Return the name in the model of a variable that is declared inside the SCoP."""
        if name not in self.taken and name not in self.repeated:
            return self.fresh(name)
        name = name.replace("$", "_")
        while f"{name}_{self.renamed}" in self.taken:
            self.renamed += 1
        self.renamed += 1
        return self.fresh(f"{name}_{self.renamed - 1}")

    def numbered(self, kind: str) -> str:
        """Return ``__pet_KIND_0``, ``__pet_KIND_1``, ...: names that pet gives to what it makes."""
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return self.fresh(f"__pet_{kind}_{number}")

    def assume(self, holding: isl.Set) -> bool:
        """Take for granted that a condition holds here, if that is a question of the parameters alone.

        What is so assumed is part of the context, which is checked before the program runs. It must be
        possible, and leave something here.
        """
        failing = self.path.intersect(self.context).intersect(self.limits).subtract(holding)
        refused = without_set(failing, self.iterators).gist(self.limits)
        context = self.context.subtract(refused).coalesce()
        left = self.path.intersect(context).intersect(self.limits)
        if left.is_empty() or not left.is_subset(holding):
            return False
        self.context = context
        return True

    def fact(self, variable: Variable) -> Fact | None:
        """Return what is known of a variable here."""
        found = self.known.get(variable)
        usable = not isinstance(found, Formula) or found.where is None or self.always(found.where)
        return found if usable else None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Look at what comes; nothing of what is found out meanwhile is kept."""
        kept = {f.name: copy(getattr(self, f.name)) for f in fields(self) if f.name != "scope"}
        kept["elements"] = replace(
            self.elements,
            integers=dict(self.elements.integers),
            pointers=dict(self.elements.pointers),
        )
        try:
            yield
        finally:
            for name, value in kept.items():
                setattr(self, name, value)

    def always(self, holds: isl.Set) -> bool:
        """Whether a condition holds wherever the walk now is."""
        return bool(self.path.intersect(self.context).intersect(self.limits).is_subset(holds))

    def never(self, holds: isl.Set) -> bool:
        """Whether a condition holds nowhere where the walk now is."""
        return bool(self.path.intersect(self.context).intersect(self.limits).is_disjoint(holds))

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
    def head(self) -> Iterator[None]:
        """Read a loop's head: what it needs of memory is a parameter."""
        before, self.heading = self.heading, True
        try:
            yield
        finally:
            self.heading = before

    @contextmanager
    def plain_arithmetic(self) -> Iterator[None]:
        """Read a bound, a condition or a subscript: there unsigned arithmetic is not meant to wrap."""
        before, self.assuming = self.assuming, True
        try:
            yield
        finally:
            self.assuming = before

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
