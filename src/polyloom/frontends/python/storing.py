"""Statements of a function as drafts: domains in isl's notation, accesses, values with their types."""

from __future__ import annotations

import ast
from collections.abc import Iterator as Iterator_
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce

from polyloom.diagnostics import Span
from polyloom.frontends.python import affine
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.operators import both
from polyloom.frontends.python.reading import Access, Outside, Reader
from polyloom.frontends.python.scope import Array
from polyloom.frontends.python.values import Typed, as_kind, held, joined
from polyloom.ir.expressions import (
    Binary,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
)
from polyloom.ir.rebuild import read_positions, rebuilt, with_reads
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType

INT = ElementType.INT64


@dataclass(frozen=True)
class Loop:
    """A loop around: its iterator, its ``for``, and whether it counts down."""

    iterator: str
    span: Span
    descending: bool


@dataclass(frozen=True)
class Draft:
    """A statement: ``position`` is its place in each body around it, outermost first."""

    loops: tuple[Loop, ...]
    conditions: tuple[str, ...]
    position: tuple[int, ...]
    target: Access
    reads: tuple[Access, ...]
    value: Expression
    condition: Expression | None
    span: Span


@dataclass(frozen=True)
class Test:
    """A condition of the data: an expression, or a variable that holds it; ``wanted``: its value."""

    node: ast.expr
    variable: str
    wanted: bool


@dataclass
class Stores(Reader):
    """What statements store, at a place in loops and branches. ``assigned``: how often each name is."""

    assigned: Mapping[str, int] = field(default_factory=dict)
    drafts: list[Draft] = field(default_factory=list)
    loops: tuple[Loop, ...] = ()
    conditions: tuple[str, ...] = ()
    tests: tuple[Test, ...] = ()
    counters: list[int] = field(default_factory=lambda: [0])
    defined: set[str] = field(default_factory=set)
    temporaries: int = 0
    taken: frozenset[str] = frozenset()
    """Names that have a meaning of their own in the function."""
    flag: str = ""
    """The variable that holds the number of an index that was outside, if the function asks for one."""
    asked: list[Outside] = field(default_factory=list)
    """What is asked of indices, each by its number, which counts from 1."""

    def fresh(self, word: str) -> str:
        """Return a new name."""
        self.temporaries += 1
        while (name := f"{word}_{self.temporaries}") in self.taken:
            self.temporaries += 1
        return name

    def around(self) -> frozenset[str]:
        """Return the iterators of the loops around."""
        return frozenset(loop.iterator for loop in self.loops)

    def limits(self) -> tuple[str, ...]:
        """Return the conditions on iterators and sizes around, in isl's notation."""
        return self.conditions

    def whole_value(self, value: ast.expr) -> Typed:
        """Return the value of whole arrays at the point at hand. Errors: ``python-shape``."""
        if len(self.shape(value)) > len(self.space):
            self.text.refuse("python-shape", f"`{ast.unparse(value)}` has more dimensions", value)
        return self.value(value)

    def at_all(
        self,
        node: ast.AST,
        name: str,
        extents: tuple[Affine, ...],
        value: ast.expr,
        room: tuple[Affine, ...] = (),
    ) -> Array:
        """Store a value of whole arrays in a new one, which is returned; ``room``: its extents, if larger."""
        with self.points(node, extents):
            found = self.whole_value(value)
            array = Array(held(found.kind), room or extents, self.text.span(node), own=True)
            if found.kind is ElementType.BOOL:
                array = replace(array, type=ElementType.BOOL)
            before, self.arrays = self.arrays, {**self.arrays, name: array}
            self.store(name, tuple(iterator for iterator, _ in self.space), as_kind(found, array.type), node)
            self.arrays = before
        return array

    @contextmanager
    def points(self, node: ast.AST, extents: Sequence[Affine]) -> Iterator_[None]:
        """Read and store at all points of extents, by loops of their own."""
        at = self.fresh("at")
        names = [f"{at}_{k}" for k in range(len(extents))]
        outer = self.loops, self.conditions, self.space
        self.loops = (*self.loops, *(Loop(n, self.text.span(node), descending=False) for n in names))
        limits = (f"0 <= {affine.PREFIX}{n} < {e.text}" for n, e in zip(names, extents, strict=True))
        self.conditions = (*self.conditions, *limits)
        self.space = tuple(zip(map(affine.name, names), extents, strict=True))
        self.counters += [0] * len(names)
        yield
        del self.counters[len(self.counters) - len(names) :]
        self.counters[-1] += 1
        self.loops, self.conditions, self.space = outer

    def scalar(self, name: str, value: Typed, node: ast.AST) -> None:
        """Assign to a variable that holds a number."""
        if name in self.symbols or (name in self.arrays and self.arrays[name].extents):
            self.text.refuse("python-name", f"`{name}` has another meaning here", node)
        before = self.kinds.get(name)
        self.kinds[name] = kind = value.kind if before is None else joined(before, value.kind)
        self.arrays[name] = Array(held(kind), (), self.text.span(node), own=True)
        self.store(name, (), as_kind(value, held(kind)), node)

    def store(self, name: str, indices: tuple[Affine, ...], value: Expression, node: ast.AST) -> None:
        """Add a statement; the reads of its value have been made."""
        target = self.access(name, indices, node)
        tests = self._all_tested()
        condition = reduce(both, tests) if tests else None
        self._ask(node)
        if value.type is ElementType.BOOL:
            held = self.arrays[name].held
            value = Select(value, Constant(1, held), Constant(0, held))
        self.drafts.append(self._draft(target, tuple(self.reads), value, condition, node))
        self.reads = []
        self.defined.add(name)
        self.counters[-1] += 1

    def _all_tested(self) -> list[Expression]:
        """Return the tests around; what a statement asks of indices it asks where they hold."""
        outer, asked, self.outside = self.guards, self.outside, []
        tests = list[Expression]()
        for test in self.tests:
            self.guards = (*outer, *tests)
            tests.append(self._tested(test))
        self.guards = outer
        self.outside += [replace(one, condition=reduce(both, [*tests, one.condition])) for one in asked]
        return tests

    def _ask(self, node: ast.AST) -> None:
        """Add a statement that keeps the number of an index outside: ``m = max(m, i < n ? 0 : 1)``."""
        if not self.outside:
            return
        if not self.flag:
            self.flag = self.fresh("outside")
            self.arrays[self.flag] = Array(INT, (), self.text.span(node), own=True)
        which: Expression = Constant(0, INT)
        for one in self.outside:
            self.asked.append(one)
            which = Select(one.condition, Constant(len(self.asked), INT), which)
        self.outside = []
        reads, which = _only_needed(self.reads, which)
        kept = self.access(self.flag, (), node)
        value = Binary(BinaryOp.MAXIMUM, Read(len(reads), INT), which)
        self.drafts.append(self._draft(kept, (*reads, kept), value, None, node))
        self.counters[-1] += 1

    def _draft(
        self,
        target: Access,
        reads: tuple[Access, ...],
        value: Expression,
        condition: Expression | None,
        node: ast.AST,
    ) -> Draft:
        numbers = {loop.iterator: k for k, loop in enumerate(self.loops)}
        return Draft(
            loops=self.loops,
            conditions=self.conditions,
            position=tuple(self.counters),
            target=target,
            reads=reads,
            value=with_iterators(value, numbers),
            condition=None if condition is None else with_iterators(condition, numbers),
            span=self.text.span(node),
        )

    @contextmanager
    def trying(self) -> Iterator_[None]:
        """Read what no statement needs."""
        outer = self.reads, self.outside, [*self.counters]
        self.reads, self.outside = [], []
        yield
        self.reads, self.outside, self.counters = outer

    def _tested(self, test: Test) -> Expression:
        found = self.read(test.variable, (), test.node).value if test.variable else self.truth(test.node)
        match found:
            case _ if test.wanted:
                return found
            case Compare(op=CompareOp.NE, left=a, right=b):
                return Compare(CompareOp.EQ, a, b)
            case _:
                return Unary(UnaryOp.NOT, found)


def _only_needed(reads: Sequence[Access], value: Expression) -> tuple[tuple[Access, ...], Expression]:
    """Return the reads that a value needs, also as indices of others, and the value with their places."""
    needed, new = set[int](), {*read_positions(value)}
    while new := new - needed:
        needed |= new
        new = {k for n in new for k in read_positions(*(index.value for index in reads[n].indices))}
    places = {k: n for n, k in enumerate(sorted(needed))}

    def renumbered(part: Expression) -> Expression:
        return with_reads(part, places.__getitem__)

    def moved(access: Access) -> Access:
        indices = (replace(index, value=renumbered(index.value)) for index in access.indices)
        return replace(access, indices=tuple(indices))

    return tuple(moved(reads[k]) for k in places), renumbered(value)


def with_iterators(expression: Expression, numbers: Mapping[str, int]) -> Expression:
    """Return an expression with iterators as dimensions."""

    def own(part: Expression) -> Expression | None:
        if isinstance(part, ParameterValue) and part.name in numbers:
            return Iterator(numbers[part.name], part.type)
        return None

    return rebuilt(expression, own)
