"""Statements of a function as drafts: domains in isl's notation, accesses, values with their types."""

from __future__ import annotations

import ast
from collections.abc import Iterator as Iterator_
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from polyloom.diagnostics import Span
from polyloom.frontends.python import affine
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.reading import Access, Reader
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
    Select,
    Unary,
)
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType


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
        span = self.text.span(node)
        condition: Expression | None = None
        for test in self.tests:
            found = self._tested(test)
            condition = found if condition is None else Binary(BinaryOp.AND, condition, found)
        target = Access(name, indices, (), span)
        if value.type is ElementType.BOOL:
            held = self.arrays[name].held
            value = Select(value, Constant(1, held), Constant(0, held))
        numbers = {loop.iterator: k for k, loop in enumerate(self.loops)}
        self.drafts.append(
            Draft(
                loops=self.loops,
                conditions=self.conditions,
                position=tuple(self.counters),
                target=target,
                reads=tuple(self.reads),
                value=with_iterators(value, numbers),
                condition=None if condition is None else with_iterators(condition, numbers),
                span=span,
            )
        )
        self.reads = []
        self.defined.add(name)
        self.counters[-1] += 1

    def _tested(self, test: Test) -> Expression:
        found = self.read(test.variable, (), test.node).value if test.variable else self.truth(test.node)
        match found:
            case _ if test.wanted:
                return found
            case Compare(op=CompareOp.NE, left=a, right=b):
                return Compare(CompareOp.EQ, a, b)
            case _:
                return Unary(UnaryOp.NOT, found)


def with_iterators(expression: Expression, numbers: Mapping[str, int]) -> Expression:
    """Return an expression with iterators as dimensions."""

    def own(part: Expression) -> Expression | None:
        if isinstance(part, ParameterValue) and part.name in numbers:
            return Iterator(numbers[part.name], part.type)
        return None

    return rebuilt(expression, own)
