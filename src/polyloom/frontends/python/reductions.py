"""Sums, products, largest elements and matrix products of whole arrays, as statements before the one at hand.

    y[:] = x - x.sum(axis=1)[:, None]        sum_1[i] = 0;  sum_1[i] += x[i, j];  y[:] = x - sum_1[:, None]

Results have NumPy's types; sums are added up in them, those of float16 in float32.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from polyloom.frontends.python import affine
from polyloom.frontends.python.affine import Affine
from polyloom.frontends.python.operators import product_type
from polyloom.frontends.python.reading import Points
from polyloom.frontends.python.scope import Array, broadcast
from polyloom.frontends.python.storing import Stores
from polyloom.frontends.python.values import REDUCTIONS, Kind, Typed, as_kind, held, truth
from polyloom.ir.expressions import Binary, Compare, CompareOp, Constant, Expression, Select, Unary
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType

INT, BYTE = ElementType.INT64, ElementType.UINT8
_BEYOND = 2**62
"""More than any position in an array."""


@dataclass(frozen=True)
class Total:
    """How elements are combined: ``start``: what with; None: the first element, so that there has to be one.

    ``inside``: in which type, of what that of elements is; ``result``: the type of the result.
    ``end``: what is done with the total and the number of elements.
    """

    op: BinaryFunction
    start: int | None
    inside: Callable[[Kind], ElementType]
    result: Callable[[Kind], ElementType]
    end: Callable[[Expression, Expression], Expression] | None = None


def _wide(kind: Kind) -> ElementType:
    """Return the type of a sum, as NumPy has it."""
    found = held(kind)
    if found.is_float:
        return found
    return ElementType.UINT64 if found.value.startswith("u") else INT


def _inside(kind: Kind) -> ElementType:
    """Return the type that a sum is added up in."""
    return ElementType.FLOAT32 if _wide(kind) is ElementType.FLOAT16 else _wide(kind)


def _real(kind: Kind) -> ElementType:
    """Return the type of a mean."""
    return held(kind) if held(kind).is_float else ElementType.FLOAT64


def _real_inside(kind: Kind) -> ElementType:
    return _inside(_real(kind))


def _bytes(kind: Kind) -> ElementType:
    return BYTE if kind is ElementType.BOOL else held(kind)


def _mean(total: Expression, count: Expression) -> Expression:
    return total / as_kind(Typed(count, INT), total.type)


_MEAN = Total(BinaryOp.ADD, 0, _real_inside, _real, _mean)
_TOTALS = {
    "sum": Total(BinaryOp.ADD, 0, _inside, _wide),
    "prod": Total(BinaryOp.MULTIPLY, 1, _inside, _wide),
    "mean": _MEAN,
    **dict.fromkeys(("max", "amax"), Total(BinaryOp.MAXIMUM, None, _bytes, held)),
    **dict.fromkeys(("min", "amin"), Total(BinaryOp.MINIMUM, None, _bytes, held)),
    "any": Total(BinaryOp.MAXIMUM, 0, _bytes, held),
    "all": Total(BinaryOp.MINIMUM, 1, _bytes, held),
}
_OF_TRUTHS = ("any", "all")
_POSITIONS = {"argmax": "max", "argmin": "min"}
_SPREADS = ("var", "std")
_FUNCTIONS = {id(getattr(np, name)): name for name in REDUCTIONS}
_PRODUCTS = {id(np.matmul), id(np.dot)}


@dataclass(frozen=True)
class _Asked:
    """A reduction of a function: of what, along which axes, and what else is said of it."""

    name: str
    value: ast.expr
    axes: tuple[int, ...]
    keeps: bool
    given: Mapping[str, ast.expr]
    node: ast.expr


@dataclass
class Reductions(Stores):
    """Reads expressions with reductions, of which it makes statements. ``totals``: names of their results."""

    totals: set[str] = field(default_factory=set)

    def reduced(self, node: ast.expr) -> ast.expr:
        """Return an expression in which names stand for reductions; their statements are made.

        What Python may leave out stays: the sides of ``a if t else b``, what follows ``and`` and ``or``.
        """
        return _reduced(self, copy.deepcopy(node))

    def total_of(self, node: ast.expr) -> ast.expr:
        """Return a name in place of a reduction, or of what a part is taken of; else an expression itself."""
        match node:
            case ast.BinOp(op=ast.MatMult(), left=a, right=b):
                return self._product(node, a, b)
            case ast.Call(func=function, args=[a, b], keywords=[]) if id(self.meant(function)) in _PRODUCTS:
                return self._product(node, a, b)
            case ast.Call(func=ast.Attribute(value=a, attr="dot"), args=[b], keywords=[]) if self.shape(a):
                return self._product(node, a, b)
            case ast.Subscript(value=value) if self.slices(value) is None and self.shape(value):
                return ast.copy_location(ast.Subscript(self._with_name(value), node.slice, node.ctx), node)
            case ast.Call() if (asked := self._asked(node)) is not None:
                return self._reduction(asked)
            case _:
                return node

    # -- what is asked for

    def _asked(self, node: ast.Call) -> _Asked | None:
        """Return what a call asks for; None where it is none of a reduction of an array."""
        places: Sequence[ast.expr] = node.args
        match node.func:
            case ast.Attribute(value=value, attr=name) if name in REDUCTIONS and self.shape(value):
                pass
            case function if (name := _FUNCTIONS.get(id(self.meant(function)), "")) and node.args:
                value, *places = node.args
            case _:
                return None
        rank = len(self.shape(value))
        if not rank:
            return None
        given = dict(zip(("axis", "dtype"), places, strict=False))
        given |= {k.arg or "": k.value for k in node.keywords}
        known = {"axis", "keepdims"} | ({"dtype"} if name in ("sum", "prod", "mean") else set())
        known |= {"ddof"} if name in _SPREADS else set()
        if len(node.keywords) + len(places) != len(given) or given.keys() - known:
            help_ = f"it takes {', '.join(f'`{word}`' for word in sorted(known))}"
            self.text.refuse("python-call", f"`{name}` has other arguments here", node, "", help_)
        keeps = given.get("keepdims", ast.Constant(False))
        if not isinstance(keeps, ast.Constant) or not isinstance(keeps.value, bool):
            self.text.refuse("python-call", "`keepdims` is neither `True` nor `False`", keeps)
        axes = self._axes(given.get("axis"), rank)
        if name in _POSITIONS and len(axes) not in (1, rank):
            self.text.refuse("python-call", f"`{name}` goes along one axis, or all", node)
        return _Asked(name, value, axes, keeps.value, given, node)

    def _axes(self, given: ast.expr | None, rank: int) -> tuple[int, ...]:
        """Return axes, counted from 0. Errors: ``python-shape``."""
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return tuple(range(rank))
        parts = given.elts if isinstance(given, ast.Tuple) else [given]
        numbers = [whole.number if (whole := self.affine(part)) is not None else None for part in parts]
        found = tuple(n % rank for n in numbers if n is not None and -rank <= n < rank)
        if len({*found}) != len(numbers):
            help_ = f"axes are different numbers from {-rank} to {rank - 1}"
            self.text.refuse("python-shape", f"`{ast.unparse(given)}` is no axis here", given, "", help_)
        return tuple(sorted(found))

    def _reduction(self, asked: _Asked) -> ast.Name:
        if asked.name in _SPREADS:
            return self._spread(asked)
        if asked.name in _POSITIONS:
            return self._position(asked)
        total = _TOTALS[asked.name]
        if (stated := self.element_type(asked.given.get("dtype"))) is not None:
            kind = stated
            total = replace(total, inside=lambda _: _inside(kind), result=lambda _: kind)

        def element() -> Typed:
            found = self.whole_value(asked.value)
            return Typed(truth(found), ElementType.BOOL) if asked.name in _OF_TRUTHS else found

        return self._combined(asked, total, self.shape(asked.value), element)

    # -- the statements of one

    def _combined(
        self, asked: _Asked, total: Total, extents: Sequence[Affine], element: Callable[[], Typed]
    ) -> ast.Name:
        """Make the statements of a reduction of elements; return the name of what it gives."""
        node, others = asked.node, [k for k in range(len(extents)) if k not in asked.axes]
        kept = [k for k in range(len(extents)) if asked.keeps or k in others]
        rows = [extents[k] for k in others]
        shape = [extents[k] if k in others else affine.number(1) for k in kept]
        kind = self._kind(node, extents, element)
        inside = total.inside(kind)
        name = self._made(asked.name, inside, shape, node)

        def place(space: Points) -> tuple[Affine, ...]:
            return tuple(space[k][0] for k in kept)

        def at_first() -> Points:
            left = iter(self.space)
            nought = affine.number(0)
            return tuple((nought, e) if k in asked.axes else next(left) for k, e in enumerate(extents))

        with self.points(node, rows):
            first = at_first()
            start: Expression
            if total.start is None:
                self.need([f"{extents[k].text} >= 1" for k in asked.axes])
                with self.reading_at(first):
                    start = as_kind(element(), inside)
            else:
                start = Constant(total.start, inside)
            self.store(name, place(first), start, node)
        with self.points(node, extents):
            there = tuple(
                (affine.number(0), e) if k in asked.axes else (i, e) for k, (i, e) in enumerate(self.space)
            )
            before = self.read(name, place(there), node)
            after = Binary(total.op, before.value, as_kind(element(), inside))
            self.store(name, place(there), after, node)
        result = total.result(kind)
        if total.end is None and result is inside:
            return _name(name, node)
        ended = self._made(asked.name, result, shape, node)
        with self.points(node, rows):
            found = self.read(name, place(at_first()), node).value
            if total.end is not None:
                counted = [extents[k].value for k in asked.axes]
                found = total.end(found, reduce(lambda a, b: a * b, counted[1:], counted[0]))
            self.store(ended, place(at_first()), as_kind(Typed(found, found.type), result), node)
        return _name(ended, node)

    def _kind(self, node: ast.expr, extents: Sequence[Affine], value: Callable[[], Typed]) -> Kind:
        """Return the kind of a value of whole arrays."""
        with self.trying(), self.points(node, extents):
            return value().kind

    def _made(self, word: str, kind: ElementType, extents: Sequence[Affine], node: ast.expr) -> str:
        """Return the name of a new array, or variable, for a result."""
        name = self.fresh(word)
        self.totals.add(name)
        self.arrays[name] = Array(kind, tuple(extents), self.text.span(node), own=True)
        if not extents:
            self.kinds[name] = kind
        return name

    def _with_name(self, node: ast.expr) -> ast.expr:
        """Return a part of an array, or a new array that holds an expression."""
        if self.slices(node) is not None:
            return node
        name = self.fresh("part")
        self.arrays[name] = self.at_all(node, name, self.shape(node), node)
        return _name(name, node)

    # -- of several steps

    def _spread(self, asked: _Asked) -> ast.Name:
        """Return variances about the mean, ``sum((x - mean) ** 2) / (count - ddof)``, or their roots."""
        less = 0
        if (given := asked.given.get("ddof")) is not None:
            if (whole := self.affine(given)) is None or whole.number is None:
                self.text.refuse("python-call", "`ddof` is a whole number here", given)
            less = whole.number
        value = self._with_name(asked.value)
        extents = self.shape(value)
        asked = replace(asked, value=value)
        mean = self._combined(
            replace(asked, keeps=True),
            replace(_MEAN, result=_real_inside),
            extents,
            lambda: self.whole_value(value),
        )

        def squared() -> Typed:
            middle = self.value(mean)
            difference = as_kind(self.whole_value(value), held(middle.kind)) - middle.value
            return Typed(difference * difference, middle.kind)

        kind = self._kind(asked.node, extents, lambda: self.whole_value(value))
        result = _real(kind)

        def end(total: Expression, count: Expression) -> Expression:
            rest = Binary(BinaryOp.MAXIMUM, count - Constant(less, INT), Constant(0, INT))
            found = as_kind(Typed(_mean(total, rest), total.type), result)
            return Unary(UnaryOp.SQRT, found) if asked.name == "std" else found

        return self._combined(asked, replace(_MEAN, result=lambda _: result, end=end), extents, squared)

    def _position(self, asked: _Asked) -> ast.Name:
        """Return the first position of the largest element, or of a NaN."""
        value = self._with_name(asked.value)
        extents = self.shape(value)
        asked = replace(asked, value=value)
        best = replace(_TOTALS[_POSITIONS[asked.name]], result=_bytes)
        found = self._combined(replace(asked, keeps=True), best, extents, lambda: self.whole_value(value))

        def position() -> Typed:
            wanted, own = self.value(found), self.whole_value(value)
            element = as_kind(own, held(wanted.kind))
            is_it: Expression = Compare(CompareOp.EQ, element, wanted.value)
            if element.type.is_float:
                is_it = Binary(BinaryOp.OR, is_it, Compare(CompareOp.NE, element, element))
            place: Expression = Constant(0, INT)
            for k in asked.axes:
                place = place * self.space[k][1].value + self.space[k][0].value
            return Typed(Select(is_it, place, Constant(_BEYOND, INT)), INT)

        least = Total(BinaryOp.MINIMUM, _BEYOND, lambda _: INT, lambda _: INT)
        return self._combined(asked, least, extents, position)

    # -- products of matrices

    def _product(self, node: ast.expr, a: ast.expr, b: ast.expr) -> ast.expr:
        """Return ``a @ b``: rows of ``a`` by columns of ``b``, of all matrices of stacks of them."""
        shapes = self.shape(a), self.shape(b)
        is_dot = isinstance(node, ast.Call) and self.meant(node.func) is not np.matmul
        if not all(shapes) and is_dot:
            return ast.copy_location(ast.BinOp(a, ast.Mult(), b), node)
        if not all(shapes) or (is_dot and max(map(len, shapes)) > 2):
            message = f"`{ast.unparse(node)}` is no product of vectors, matrices or stacks of these"
            self.text.refuse("python-value", message, node, "", "write loops over elements")
        a, b = self._with_name(a), self._with_name(b)
        (*stack_a, rows), inner = _rows(shapes[0])
        (*stack_b, columns), _ = _rows((*shapes[1][:-2], *shapes[1][-2:][::-1]))
        stack = broadcast([tuple(stack_a), tuple(stack_b)])
        sides = [len(shape) > 1 for shape in shapes]
        ends = [e for e, is_there in zip((rows, columns), sides, strict=True) if is_there]
        extents = (*stack, *ends, inner)

        def element() -> Typed:
            *others, along = self.space
            batch, ends = others[: len(stack)], others[len(stack) :]
            row, column = ends[: sides[0]], ends[sides[0] :]
            with self.reading_at((*batch, *row, along)):
                left = self.value(a)
            with self.reading_at((*batch, along, *column)):
                right = self.value(b)
            kind = product_type(left, right)
            if kind is None:
                self.text.refuse("python-value", f"`{ast.unparse(node)}` has no form for these types", node)
            inside = _inside(kind) if kind.is_float else kind
            return Typed(as_kind(left, inside) * as_kind(right, inside), kind)

        def inside(kind: Kind) -> ElementType:
            return _inside(kind) if held(kind).is_float else held(kind)

        asked = _Asked("product", node, (len(extents) - 1,), False, {}, node)
        return self._combined(asked, Total(BinaryOp.ADD, 0, inside, held), extents, element)


def _rows(shape: Sequence[Affine]) -> tuple[tuple[Affine, ...], Affine]:
    """Return the extents of the rows of a matrix, or stack of them, and that of a row; of a vector 1 row."""
    return (tuple(shape[:-1]) or (affine.number(1),), shape[-1])


def _name(name: str, node: ast.expr) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), node)


def _reduced(reductions: Reductions, node: ast.expr) -> ast.expr:
    """Change an expression: names stand for reductions inside of it. Return it, or a name for it."""
    match node:
        case ast.IfExp():
            node.test = _reduced(reductions, node.test)
            return node
        case ast.BoolOp():
            node.values[0] = _reduced(reductions, node.values[0])
            return node
    for name, part in ast.iter_fields(node):
        if isinstance(part, ast.expr):
            setattr(node, name, _reduced(reductions, part))
        elif isinstance(part, list):
            parts = [_reduced(reductions, p) if isinstance(p, ast.expr) else p for p in part]
            setattr(node, name, parts)
    return reductions.total_of(node)
