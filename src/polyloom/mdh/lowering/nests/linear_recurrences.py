"""Loops that are linear recurrences, a vector of points at a time.

    for j from lo to hi:                           for j from lo to hi - (W - 1) step W:
      y[j] = s * x(j) + a * y[j - 1]       ->        v[l] = x(j + l)                        all lanes at once
                                                     t[l] = sum over m <= l of s * a^(l - m) * v[m]
                                                     t[l] = t[l] + a^(l + 1) * carry
                                                     y[j + l] = t[l];  carry = t[W - 1]
                                                   for the rest of j: as before

Where coefficients change from point to point, ``y[j - 1] * c[j] * s`` becomes ``y[j - 1] * (c[j] * s)``.

``x`` may be anything that the loop does not change before it reads it, ``a`` and ``s`` what it never changes;
y may go back several steps. From vector to vector the chain is one product and sum, not W of them and what
else stands around y. The powers of ``a`` are the recurrence's answer to one impulse, computed by itself.

A value that is no finite number would spread backwards from lane to lane (0 * inf is NaN): where the last
lane has one, the lanes are computed again, one by one. Sums of floats have another order, so this is not
for ``--fp strict``.

Source: block recurrences (Kogge and Stone 1973: idea). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    Read,
    Unary,
    UnaryOp,
)
from polyloom.ir.naming import Names
from polyloom.ir.rebuild import read_positions, rebuilt
from polyloom.ir.rounding.nests import BLOCK
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    LetInteger,
    Load,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import plus, times
from polyloom.mdh.tree.rewrite import declared_in, rewritten, walk, with_integers
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    linear_terms,
    names_in,
    replace_name,
)

MOST_STEPS = 4
"""How far back a recurrence may go."""
APART = 4
"""Where a loop reads nothing nearer than so many points back, compilers make vectors of it as it stands."""
WIDEST = BLOCK
"""Lanes of a vector: each is a product and a sum for all of them."""


def recurrences_in_vectors(function: Function, vector_bytes: int) -> Function:
    """Return a function whose loops that are linear recurrences run in vectors of so many bytes.

    Keeps true: each instance once; values but for the order of sums. Loops of a function that is not to be
    ``contracted`` (``--fp strict``) stay.
    """
    if not function.contracted:
        return function
    return replace(function, body=rewritten(function.body, _Maker.of(function, vector_bytes).statement))


def are_all_in_vectors(function: Function, vector_bytes: int) -> bool:
    """Return whether each innermost loop that stores something is a recurrence in vectors."""
    loops = (s for s in walk(function.body) if isinstance(s, For))
    inside = ((loop, list(walk(loop.body))) for loop in loops)
    innermost = [
        loop
        for loop, body in inside
        if not any(isinstance(s, For) for s in body) and any(isinstance(s, Store) for s in body)
    ]
    maker = _Maker.of(function, vector_bytes)
    return function.contracted and all(maker.statement(loop) != (loop,) for loop in innermost)


@dataclass(frozen=True, kw_only=True)
class Linear:
    """``scale * rest + sum of coefficients[p] * Read(p)``; None: a scale of 1, no rest."""

    coefficients: Mapping[int, Expression]
    scale: Expression | None = None
    rest: Expression | None = None


def linear(expression: Expression, chain: frozenset[int], varying: frozenset[int]) -> Linear | None:
    """Return an expression as a linear function of the reads in ``chain``; None where it is none.

    ``varying``: reads that change from point to point, those of ``chain`` among them; an ``Iterator`` does.
    """
    if not chain & set(read_positions(expression)):
        return Linear(coefficients={}, rest=expression)

    def fixed(part: Expression) -> bool:
        return not varying & set(read_positions(part)) and not _has_iterator(part)

    match expression:
        case Read(position=p, type=kind):
            return Linear(coefficients={p: Constant(1, kind)})
        case Unary(op=UnaryOp.NEGATE, operand=a):
            found = linear(a, chain, varying)
            return found and _scaled(found, BinaryOp.MULTIPLY, Constant(-1, a.type))
        case Binary(op=BinaryOp.ADD | BinaryOp.SUBTRACT as op, left=a, right=b):
            left, right = linear(a, chain, varying), linear(b, chain, varying)
            return None if left is None or right is None else _added(left, right, op)
        case Binary(op=BinaryOp.MULTIPLY, left=a, right=b) if fixed(a):
            found = linear(b, chain, varying)
            return found and _scaled(found, BinaryOp.MULTIPLY, a)
        case Binary(op=BinaryOp.MULTIPLY | BinaryOp.DIVIDE as op, left=a, right=b) if fixed(b):
            found = linear(a, chain, varying)
            return found and _scaled(found, op, b)
        case _:
            return None


def _has_iterator(expression: Expression) -> bool:
    return _has(expression, lambda part: isinstance(part, Iterator))


def _divides(expression: Expression) -> bool:
    return _has(expression, lambda part: isinstance(part, Binary) and part.op is BinaryOp.DIVIDE)


def _has(expression: Expression, is_meant: Callable[[Expression], bool]) -> bool:
    found = False

    def note(part: Expression) -> None:
        nonlocal found
        found = found or is_meant(part)

    rebuilt(expression, note)
    return found


def _scaled(a: Linear, op: BinaryFunction, by: Expression) -> Linear:
    one = Constant(1, by.type)
    return Linear(
        coefficients={p: _product(c, op, by) for p, c in a.coefficients.items()},
        scale=None if a.rest is None else _product(a.scale or one, op, by),
        rest=a.rest,
    )


def _product(a: Expression, op: BinaryFunction, b: Expression) -> Expression:
    is_one = isinstance(a, Constant) and a.value == 1
    return b if is_one and op is BinaryOp.MULTIPLY else Binary(op, a, b)


def _added(a: Linear, b: Linear, op: BinaryFunction) -> Linear:
    sums: dict[int, Expression] = dict(a.coefficients)
    for p, c in b.coefficients.items():
        minus = Binary(op, Constant(0, c.type), c) if op is BinaryOp.SUBTRACT else c
        sums[p] = Binary(op, sums[p], c) if p in sums else minus
    left, right = _whole(a), _whole(b)
    if left is None and right is not None and op is BinaryOp.SUBTRACT:
        return Linear(coefficients=sums, rest=Unary(UnaryOp.NEGATE, right))
    rest = left if right is None else right if left is None else Binary(op, left, right)
    return Linear(coefficients=sums, rest=rest)


def _whole(a: Linear) -> Expression | None:
    if a.rest is None or a.scale is None:
        return a.rest
    return Binary(BinaryOp.MULTIPLY, a.scale, a.rest)


@dataclass(frozen=True, kw_only=True)
class Recurrence:
    """A loop that stores ``scale * rest + sum of coefficients[k - 1] * (what it stored k points before)``."""

    loop: For
    store: Store
    coefficients: tuple[Compute | None, ...]
    scale: Compute | None
    rest: Compute


@dataclass(frozen=True)
class _Maker:
    names: Names
    alone: frozenset[str]
    vector_bytes: int

    @staticmethod
    def of(function: Function, vector_bytes: int) -> _Maker:
        names = Names({*function.arrays, *function.integers, *declared_in(function.body)})
        alone = {p.name for p in function.parameters if p.alone} - {r.parameter for r in function.reshaped}
        return _Maker(names, frozenset(alone), vector_bytes)

    def statement(self, statement: Statement) -> Code:
        """Return what stands for a statement."""
        if not isinstance(statement, For):
            return (statement,)
        found = self._found(statement)
        if found is None:
            return (self._short(statement),)
        kind = found.store.value.type
        lanes = min(WIDEST, self.vector_bytes // kind.size)
        if lanes < max(4, len(found.coefficients)):
            return (statement,)
        return Blocks(found, lanes, kind, self.names).code()

    def _found(self, loop: For) -> Recurrence | None:
        """Return the recurrence that a loop is; None where it is none."""
        back = self._back(loop)
        if not back or max(back.values()) > MOST_STEPS or min(back.values()) >= APART:
            return None
        (store,) = loop.body
        assert isinstance(store, Store)
        return recurrence_of(loop, store, back)

    def _back(self, loop: For) -> dict[int, int] | None:
        """Return what a loop of one store loads of what it stored before: how many points, by position."""
        match loop:
            case For(kind=Kind.SEQUENTIAL, step=Number(value=1), body=(Store() as store,)):
                pass
            case _:
                return None
        if store.array not in self.alone or not store.value.type.is_float or not has_end(loop):
            return None
        if store.value.type is ElementType.FLOAT16:
            return None
        return steps_back(loop.iterator, store)

    def _short(self, loop: For) -> For:
        """Return a loop in which one product and one sum wait for a point before: ``a[i - 1] * (c[i] * s)``.

        Whatever the coefficient of a point is, ``a[i - 1] * c[i] * s`` would wait for two products.
        """
        back = self._back(loop)
        if back is None or len(back) != 1:
            return loop
        (store,), (position,) = loop.body, back
        assert isinstance(store, Store)
        value = store.value
        found = linear(value.expression, frozenset(back), frozenset(back))
        if found is None or found.scale is not None or set(found.coefficients) != set(back):
            return loop
        coefficient = found.coefficients[position]
        if _divides(coefficient) or isinstance(coefficient, Constant):
            return loop
        chain = Binary(BinaryOp.MULTIPLY, coefficient, Read(position, value.type))
        whole = chain if found.rest is None else Binary(BinaryOp.ADD, chain, found.rest)
        return replace(loop, body=(replace(store, value=replace(value, expression=whole)),))


def has_end(loop: For) -> bool:
    """Return whether a loop goes up to an end that is known before it runs."""
    try:
        return loop.end is not None
    except ValueError:
        return False


def steps_back(iterator: str, store: Store) -> dict[int, int] | None:
    """Return for each load of what the loop stored before how many points; None where that is not known."""
    target = integers_of(store.subscripts)
    if not target or any(iterator in names_in(s) for s in target[:-1]):
        return None
    if (1, Name(iterator)) not in linear_terms([(1, target[-1])])[0]:
        return None
    if iterator in names_in(plus(target[-1], Name(iterator), -1)):
        return None
    found: dict[int, int] = {}
    for position, load in enumerate(store.value.loads):
        if load.array != store.array:
            if any(isinstance(s, Compute) and _loads(s, store.array) for s in load.subscripts):
                return None
            continue
        place = integers_of(load.subscripts)
        apart = [plus(a, b, -1) for a, b in zip(place, target, strict=False)]
        if not place or not all(isinstance(a, Number) for a in apart):
            return None
        steps = [a.value for a in apart if isinstance(a, Number)]
        if not any(steps[:-1]) and steps[-1] < 0:
            found[position] = -steps[-1]
    return found


def integers_of(subscripts: tuple[IntExpression | Compute, ...]) -> tuple[IntExpression, ...]:
    """Return subscripts that are integers; none where one is data."""
    found = tuple(s for s in subscripts if not isinstance(s, Compute))
    return found if len(found) == len(subscripts) else ()


def _loads(value: Compute, array: str) -> bool:
    inner = (s for load in value.loads for s in load.subscripts if isinstance(s, Compute))
    return any(load.array == array for load in value.loads) or any(_loads(s, array) for s in inner)


def recurrence_of(loop: For, store: Store, back: Mapping[int, int]) -> Recurrence | None:
    """Return the recurrence that a store is, whose loads at these positions are of so many points before."""
    value, iterator = store.value, loop.iterator
    varying = {p for p, load in enumerate(value.loads) if p in back or _varies(load, iterator)}
    found = linear(value.expression, frozenset(back), frozenset(varying))
    if found is None or found.rest is None or set(found.coefficients) != set(back):
        return None

    def compute(expression: Expression) -> Compute:
        return compacted(Compute(expression, value.loads, value.iterators))

    sums: list[Expression | None] = [None] * max(back.values())
    for position, c in found.coefficients.items():
        before = sums[back[position] - 1]
        sums[back[position] - 1] = c if before is None else Binary(BinaryOp.ADD, before, c)
    return Recurrence(
        loop=loop,
        store=store,
        coefficients=tuple(None if c is None else compute(c) for c in sums),
        scale=None if found.scale is None else compute(found.scale),
        rest=compute(found.rest),
    )


def _varies(load: Load, iterator: str) -> bool:
    return any(isinstance(s, Compute) or iterator in names_in(s) for s in load.subscripts)


def compacted(value: Compute) -> Compute:
    """Return a scalar function with the loads and integers alone that it speaks of."""
    loads: list[Load] = []
    integers: list[IntExpression] = []

    def place(part: Expression) -> Expression | None:
        match part:
            case Read(position=p, type=kind):
                return Read(_place(loads, value.loads[p]), kind)
            case Iterator(dimension=d, type=kind):
                return Iterator(_place(integers, value.iterators[d]), kind)
            case _:
                return None

    made = rebuilt(value.expression, place)
    return Compute(made, tuple(loads), tuple(integers))


def _place(known: list[Any], wanted: object) -> int:
    if wanted not in known:
        known.append(wanted)
    return known.index(wanted)


class Blocks:
    """The code of one recurrence: ``lanes`` points at a time, and the rest as it was."""

    left = 0
    """Points that the last loop has at least."""

    def __init__(self, found: Recurrence, lanes: int, kind: ElementType, names: Names) -> None:
        self.found, self.lanes, self.kind, self.names = found, lanes, kind, names

        def name(wanted: str) -> str:
            return names.of((object(),), wanted)

        self.impulse, self.start, self.values, self.totals = map(
            name, ("impulse", "answer", "given", "recurrence")
        )
        self.columns = [name(f"answer{m}") for m in range(lanes)]
        self.carries = [name(f"before{k}") for k in range(1, len(found.coefficients) + 1)]
        self.nexts = [name(f"next{k}") for k in range(1, len(found.coefficients) + 1)]
        self.starts = [name(f"start{k}") for k in range(1, len(found.coefficients) + 1)]
        self.factors = [name(f"factor{k}") for k in range(1, len(found.coefficients) + 1)]
        self.scale, self.first, self.lane, self.rest = map(name, ("scale", "block", "lane", "rest"))

    def code(self) -> Code:
        """Return the loop in blocks, and the loop over the rest."""
        loop = self.found.loop
        count = plus(loop.end, loop.start, -1)
        whole = Operation(">=", (count, Number(2 * self.lanes)))
        blocks = Operation("/", (plus(count, -self.left), Number(self.lanes)))
        rest = LetInteger(self.rest, plus(loop.start, times(self.lanes, blocks)))
        tail = replace(loop, start=Name(self.rest))
        return (If(whole, (*self._tables(), rest, self._loop(), tail), (loop,)),)

    # -- what does not change in the loop: coefficients, the answer to an impulse, and vectors of it

    def _tables(self) -> Code:
        one = self._scalar(Constant(1, self.kind))
        zero = self._scalar(Constant(0, self.kind))
        code: list[Statement] = []
        for name, c in zip(self.factors, self.found.coefficients, strict=True):
            code += [self._array(name), Store(name, (), zero if c is None else c)]
        code += [self._array(self.scale), Store(self.scale, (), self.found.scale or one)]
        code.append(self._array(self.impulse, 2 * self.lanes, Space.PRIVATE))
        code += [self._impulse(n, zero) for n in range(self.lanes)]
        code.append(self._impulse(self.lanes, one))
        for n in range(self.lanes + 1, 2 * self.lanes):
            back = [(f, Load(self.impulse, (Number(n - k),))) for k, f in enumerate(self.factors, 1)]
            code.append(self._impulse(n, self._products([(Load(f), x) for f, x in back])))
        for m, name in enumerate(self.columns):
            column = self._products([(Load(self.scale), self._answer(-m))])
            code += [self._array(name, self.lanes), self._vector(name, column)]
        for k, name in enumerate(self.starts, 1):
            factors = enumerate(self.factors[k - 1 :])
            start = self._products([(Load(f), self._answer(-q)) for q, f in factors])
            code += [self._array(name, self.lanes), self._vector(name, start)]
        for k, name in enumerate(self.carries, 1):
            code += [self._array(name), Store(name, (), self._read(self._stored_before(k)))]
        return tuple(code)

    def _impulse(self, n: int, value: Compute) -> Store:
        return Store(self.impulse, (Number(n),), value)

    def _answer(self, shift: int) -> Load:
        """Return the answer to an impulse ``-shift`` lanes away, as a vector."""
        return Load(self.impulse, (plus(Name(self.lane), self.lanes + shift),))

    def _stored_before(self, k: int) -> Load:
        store, loop = self.found.store, self.found.loop
        *outer, last = integers_of(store.subscripts)
        first = plus(replace_name(last, loop.iterator, loop.start), -k)
        return Load(store.array, (*outer, first))

    # -- a vector of points

    def _loop(self) -> For:
        loop = self.found.loop
        end = Operation("<", (Name(self.first), Name(self.rest)))
        body = (
            self._array(self.values, self.lanes),
            self._given(),
            self._array(self.totals, self.lanes),
            *self._combined(),
            self._again(),
            *self._stored(),
            *self._carried(),
        )
        return For(iterator=self.first, start=loop.start, condition=end, step=Number(self.lanes), body=body)

    def _given(self) -> For:
        return self._lanes(self._at_lane(Store(self.values, (Name(self.lane),), self.found.rest)))

    def _at_lane(self, store: Store) -> Store:
        here = plus(Name(self.first), Name(self.lane))
        found = with_integers(store, lambda e: replace_name(e, self.found.loop.iterator, here))
        assert isinstance(found, Store)
        return found

    def _combined(self) -> Code:
        """Return the stores of the sums: first what does not wait for the vector before."""
        here = Load(self.totals, (Name(self.lane),))
        given = [Load(self.values, (Number(m),)) for m in range(self.lanes)]
        columns = [Load(c, (Name(self.lane),)) for c in self.columns]
        first, *others = zip(columns, given, strict=True)
        code: list[Statement] = [self._vector(self.totals, self._products([first]))]
        code += [self._vector(self.totals, self._products([term], here)) for term in others]
        code += self._next()
        starts = [Load(s, (Name(self.lane),)) for s in self.starts]
        for term in zip(starts, map(Load, self.carries), strict=True):
            code.append(self._vector(self.totals, self._products([term], here)))
        return tuple(code)

    def _next(self) -> list[Statement]:
        """Return what the next vector takes over, computed beside this one: no vector is in the chain."""
        code: list[Statement] = []
        for k, name in enumerate(self.nexts, 1):
            lane = Number(self.lanes - k)
            terms = [(Load(s, (lane,)), Load(c)) for s, c in zip(self.starts, self.carries, strict=True)]
            code += [self._array(name), Store(name, (), self._products(terms, Load(self.totals, (lane,))))]
        return code

    def _again(self) -> If:
        """Return the lanes one by one where the last one holds no finite number."""
        last = Read(0, self.kind)
        gone = Compare(CompareOp.NE, Binary(BinaryOp.SUBTRACT, last, last), Constant(0, self.kind))
        return If(
            Compute(gone, (Load(self.totals, (Number(self.lanes - 1),)),)),
            (
                *(Store(self.totals, (Number(m),), self._alone(m)) for m in range(self.lanes)),
                *(
                    Store(name, (), self._read(Load(self.totals, (Number(self.lanes - k),))))
                    for k, name in enumerate(self.nexts, 1)
                ),
            ),
        )

    def _alone(self, m: int) -> Compute:
        terms = [(Load(self.scale), Load(self.values, (Number(m),)))]
        for k, factor in enumerate(self.factors, 1):
            before = Load(self.totals, (Number(m - k),)) if m >= k else Load(self.carries[k - m - 1])
            terms.append((Load(factor), before))
        return self._products(terms)

    def _stored(self) -> Code:
        value = self._read(Load(self.totals, (Name(self.lane),)))
        return (self._lanes(self._at_lane(replace(self.found.store, value=value))),)

    def _carried(self) -> Code:
        pairs = zip(self.carries, self.nexts, strict=True)
        return tuple(Store(carry, (), self._read(Load(following))) for carry, following in pairs)

    # -- pieces

    def _array(self, name: str, count: int = 0, space: Space = Space.REGISTER) -> Array:
        return Array(name=name, type=self.kind, shape=(Number(count),) if count else (), space=space)

    def _vector(self, name: str, value: Compute) -> For:
        return self._lanes(Store(name, (Name(self.lane),), value))

    def _lanes(self, store: Store) -> For:
        return counted(self.lane, Number(self.lanes), (store,), kind=Kind.VECTOR)

    def _scalar(self, value: Expression) -> Compute:
        return Compute(value)

    def _read(self, load: Load) -> Compute:
        return Compute(Read(0, self.kind), (load,))

    def _products(self, terms: list[tuple[Load, Load]], start: Load | None = None) -> Compute:
        """Return a sum of products, behind what it starts from."""
        loads = [load for term in terms for load in term]
        sums: list[Expression] = [
            Binary(BinaryOp.MULTIPLY, Read(k, self.kind), Read(k + 1, self.kind))
            for k in range(0, len(loads), 2)
        ]
        if start is not None:
            sums.insert(0, Read(len(loads), self.kind))
            loads.append(start)
        return compacted(Compute(reduce(_sum, sums), tuple(loads)))


def _sum(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.ADD, a, b)
