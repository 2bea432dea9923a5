"""What is known at one point of the walk through a static control part, and what has been found so far.

Inside the walk iterators are parameters of isl sets, with names of their own; ``finish.py`` makes them
dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

import islpy as isl
from pycparser import c_ast

from polyloom.diagnostics import Diagnostic, PolyloomError, Span
from polyloom.frontends.c.c_types import CType, Extent, Record
from polyloom.frontends.c.places import Places
from polyloom.frontends.c.sets import without_set
from polyloom.ir.expressions import Expression
from polyloom.ir.types import ElementType
from polyloom.scop.model import Origin, StatedParallel


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable of the source;
    ``unique`` is its name in the model, where another one may be called the same.
    """

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


class Mode(Enum):
    """What becomes of calls and of conditions on data."""

    TEXT = "text"
    """As pet has them: a call of a function that is not ``inline`` is one statement; a condition on data
    that is no
    comparison of elements, or that its branches change, is evaluated by a statement of its own."""
    COMPUTE = "compute"
    """Functions are inlined, conditions are part of the statements that they guard."""


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

    def find(self, name: str) -> Binding | None:
        """Return what a name stands for here. Errors: those of an ``Unusable`` name's declaration."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                found = scope.names[name]
                if isinstance(found, Unusable):
                    raise found.fault
                return found
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


@dataclass(frozen=True)
class Hooks:
    """What expressions need of the modules above them: statements inside calls."""

    walk: Callable[[Sequence[c_ast.Node], State], Stops]
    inline: Callable[[Defined, c_ast.FuncCall, State], Expression | None]
    summarise: Callable[[Defined | None, c_ast.FuncCall, State], Expression]


@dataclass
class State:
    """The walk's state: where it is, what it knows, what it found."""

    places: Places
    scope: Scope
    path: isl.Set
    context: isl.Set
    taken: set[str]
    limits: isl.Set = field(default_factory=lambda: isl.Set("{ [] }"))
    """What the types of parameters say about their values."""
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
    pending: list[StatedParallel] = field(default_factory=list)
    """What pragmas state about the loop that comes next."""
    assumed: dict[str, None] = field(default_factory=dict)
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
    hooks: Hooks | None = None
    results: list[Place | None] = field(default_factory=list)
    """Where the functions that are being inlined put what they return."""
    assuming: bool = False
    """Whether the parameters may be taken to have values for which unsigned arithmetic does not wrap."""
    calls: list[str] = field(default_factory=list)
    """The functions that are being inlined."""

    @property
    def above(self) -> Hooks:
        """The hooks, which are there from the start of the walk."""
        assert self.hooks is not None
        return self.hooks

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
        """Return ``name``, or ``name_0``, ``name_1``, ... if that is taken, and take it."""
        name = f"{name}_" if name in _ISL_WORDS else name
        found, count = name, 0
        while found in self.taken:
            found, count = f"{name}_{count}", count + 1
        self.taken.add(found)
        return found

    def local(self, name: str) -> str:
        """Return the name in the model of a variable that is declared inside the SCoP."""
        if name not in self.taken and name not in self.repeated:
            return self.fresh(name)
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

        What is so assumed is part of the context, which is checked before the program runs.
        """
        failing = self.path.intersect(self.context).intersect(self.limits).subtract(holding)
        refused = without_set(failing, self.iterators).gist(self.limits)
        context = self.context.subtract(refused).coalesce()
        possible = context.intersect(self.limits)
        if possible.is_empty() or not self.path.intersect(possible).is_subset(holding):
            return False
        self.context = context
        return True

    def always(self, holds: isl.Set) -> bool:
        """Whether a condition holds wherever the walk now is."""
        return bool(self.path.intersect(self.context).intersect(self.limits).is_subset(holds))

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


def constant_affine(value: int) -> isl.PwAff:
    """Return ``{ [] -> [value] }``."""
    return isl.PwAff(f"{{ [] -> [({value})] }}")


def parameter_affine(name: str) -> isl.PwAff:
    """Return ``[name] -> { [] -> [name] }``."""
    return isl.PwAff(f"[{name}] -> {{ [] -> [({name})] }}")


def everywhere() -> isl.Set:
    """Return ``{ [] }``, no condition."""
    return isl.Set("{ [] }")
