"""Blocks of 16 x 16 elements that the matrix unit of a warp fills, loads, multiplies and stores at once.

    item for warp from 0 to 4:
      float32 sum[16, 16] in a matrix unit, sums (i, j)
      float16 left[16, 16] in a matrix unit, left (i, k)
      float16 right[16, 16] in a matrix unit, right (k, j)
      matrix for i: matrix for j: sum[i, j] = 0                                              Fill
      matrix for i: matrix for k: left[i, k] = A_copy[16 * warp + i, k]                      Fetch
      matrix for k: matrix for j: right[k, j] = B_copy[k, j]                                 Fetch
      matrix for i: matrix for j: matrix for k:
        sum[i, j] = sum[i, j] + float32(left[i, k]) * float32(right[k, j])    # S(...)       Multiply
      matrix for i: matrix for j: result[16 * warp + i, j] = sum[i, j]                       Leave
      item for lane from 0 to 32: ...

Such loops mean the same as sequential ones. A unit takes the sum over ``k`` in an order of its own, so their
points have any order in the evaluator, too. What stands beside the loops over lanes is done by a warp; lanes
see nothing of a unit, and it sees what they stored behind a barrier.

A multiplication may say which of its points are instances of a statement: ``if inside: S(...) else:`` the
same without. The unit does both alike, so what ``inside`` says is not printed.

Not in the papers; the forms are those of CUDA's ``wmma`` (PTX ISA, Warp-Level Matrix Instructions).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Convert, Expression, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import (
    ONE,
    ZERO,
    Array,
    Code,
    Compute,
    For,
    If,
    Kind,
    Let,
    Load,
    Part,
    Space,
    Statement,
    Store,
    Subscript,
)
from polyloom.mdh.tree.rewrite import blocks, loads_of, walk
from polyloom.polyhedra.loops.tree import Name, Number, linear_terms, names_in, sum_of

SIDE = 16
"""Rows, columns and steps of a block."""

LANES = 32
"""Items of a warp."""

FACTOR, SUM = ElementType.FLOAT16, ElementType.FLOAT32


@dataclass(frozen=True)
class Fill:
    """``target[i, j] = value``."""

    target: Load
    value: float | int


@dataclass(frozen=True)
class Fetch:
    """``target[x, y] = source[... + x, ... + y]``; ``first``: the source's element for x = y = 0."""

    target: Load
    first: Load


@dataclass(frozen=True)
class Multiply:
    """``sums[i, j] += left[i, k] * right[k, j]``."""

    sums: Load
    left: Load
    right: Load


@dataclass(frozen=True)
class Leave:
    """``target[... + i, ... + j] = sums[i, j]``; ``first``: the target's element for i = j = 0."""

    first: Load
    sums: Load


Step = Fill | Fetch | Multiply | Leave
Arrays = Mapping[str, Array | None]
"""The arrays that code declares, by their names; None for what is no such array."""


class NoStep(ValueError):
    """Loops of ``Kind.MATRIX`` that no unit can do; the text says why."""


def step_of(loop: For, arrays: Arrays) -> Step:
    """Return what loops of ``Kind.MATRIX`` are, without the block itself in subscripts of units.

    Errors: NoStep.
    """
    iterators, store = _nest(loop)
    nest = _Nest(frozenset(iterators), arrays)
    target = Load(store.array, store.subscripts)
    if len(iterators) == 3:
        return nest.product(target, store.value)
    if len(iterators) != 2:
        raise NoStep("has not two or three loops in each other")
    match store.value:
        case Compute(expression=Constant(value=value), loads=()):
            return Fill(nest.block(target), value)
        case Compute(expression=Read(), loads=(source,)) if nest.part(target) is not None:
            return Fetch(nest.block(target), nest.memory(source, target, FACTOR))
        case Compute(expression=Read(), loads=(source,)):
            return Leave(nest.memory(target, source, SUM), nest.block(source, (Part.SUM,)))
        case _:
            raise NoStep("computes something else than a product")


def _nest(loop: For) -> tuple[list[str], Store]:
    """Return the iterators of loops in each other and the store inside; two branches have the same one."""
    iterators: list[str] = []
    statement: Statement = loop
    while isinstance(statement, For) and statement.kind is Kind.MATRIX:
        if (statement.start, statement.end, statement.step) != (ZERO, Number(SIDE), ONE):
            raise NoStep(f"is not from 0 to {SIDE}, step 1")
        iterators.append(statement.iterator)
        if len(statement.body) != 1:
            raise NoStep("has more than one statement inside")
        (statement,) = statement.body
    match statement:
        case Store():
            return iterators, statement
        case If(body=(Store() as store,), otherwise=(Store() as other,)) if other == replace(
            store, instance=None
        ):
            return iterators, store
        case _:
            raise NoStep("has no store inside, or different ones")


@dataclass(frozen=True)
class _Nest:
    """What places are in a store inside loops over ``iterators``."""

    iterators: Collection[str]
    arrays: Arrays

    def part(self, place: Load) -> Part | None:
        """Return what a block in a unit is, None for what is in none."""
        found = self.arrays.get(place.array)
        return found.part if found is not None and found.space is Space.UNIT else None

    def block(self, place: Load, parts: Collection[Part] = tuple(Part)) -> Load:
        """Return which block of an array in a unit is meant."""
        if self.part(place) not in parts:
            raise NoStep(f"speaks of `{place.array}`, which is no such block in a matrix unit")
        *outer, x, y = place.subscripts
        if not (isinstance(x, Name) and isinstance(y, Name) and {x.name, y.name} <= set(self.iterators)):
            raise NoStep(f"takes no whole block of `{place.array}`")
        if x == y or any(map(self._moves, outer)):
            raise NoStep(f"takes no single block of `{place.array}`")
        return Load(place.array, tuple(outer))

    def _moves(self, subscript: Subscript) -> bool:
        return isinstance(subscript, Compute) or not names_in(subscript).isdisjoint(self.iterators)

    def memory(self, place: Load, block: Load, kind: ElementType) -> Load:
        """Return where a block in memory begins: its rows lie along the last axis, side by side."""
        array = self.arrays.get(place.array)
        if array is None or array.space is not Space.GROUP or array.type is not kind:
            raise NoStep(f"`{place.array}` is no array of {kind.value} that the group shares")
        if kind is FACTOR and not array.packed:
            raise NoStep(f"`{place.array}` has no halves as they are in memory")
        if len(place.subscripts) < 2 or any(map(self._moves, place.subscripts[:-2])):
            raise NoStep(f"takes no block of `{place.array}`")
        pairs = zip(place.subscripts[-2:], block.subscripts[-2:], strict=True)
        firsts = tuple(self._from(subscript, iterator) for subscript, iterator in pairs)
        return Load(place.array, (*place.subscripts[:-2], *firsts))

    def _from(self, subscript: Subscript, iterator: Subscript) -> Subscript:
        """Return a subscript where an iterator is 0, from which it counts on with it."""
        if not isinstance(subscript, Compute) and not isinstance(iterator, Compute):
            terms, constant = linear_terms([(1, subscript)])
            others = [(factor, term) for factor, term in terms if term != iterator]
            if (1, iterator) in terms and not any(self._moves(term) for _, term in others):
                return sum_of([*others, (1, Number(constant))])
        raise NoStep("does not count on along the axes of an array")

    def product(self, target: Load, value: Compute) -> Multiply:
        """Return a sum of products."""
        sums = self.block(target, (Part.SUM,))
        i, j = target.subscripts[-2:]
        match value.expression:
            case Binary(
                op=BinaryOp.ADD,
                left=Read(position=own),
                right=Binary(op=BinaryOp.MULTIPLY, left=left, right=right),
            ) if value.loads[own] == target:
                a, b = (self._factor(e, value) for e in (left, right))
            case _:
                raise NoStep("is no sum of products in its target")
        if self.part(a) in (Part.RIGHT, Part.RIGHT_TURNED):
            a, b = b, a
        k = next(Name(n) for n in sorted(self.iterators) if Name(n) not in (i, j))
        wanted = {
            Part.LEFT: (i, k),
            Part.LEFT_TURNED: (k, i),
            Part.RIGHT: (k, j),
            Part.RIGHT_TURNED: (j, k),
        }
        for place in (a, b):
            part = self.part(place)
            if part is None or wanted.get(part) != place.subscripts[-2:]:
                raise NoStep(f"takes `{place.array}` as another part of a product than it is")
        left_block = self.block(a, (Part.LEFT, Part.LEFT_TURNED))
        return Multiply(sums, left_block, self.block(b, (Part.RIGHT, Part.RIGHT_TURNED)))

    @staticmethod
    def _factor(expression: Expression, value: Compute) -> Load:
        match expression:
            case Convert(type=ElementType.FLOAT32, operand=Read(position=k, type=ElementType.FLOAT16)):
                return value.loads[k]
            case _:
                raise NoStep("has a factor that is no float16 as a float32")


def has_steps(code: Code) -> bool:
    """Whether a matrix unit has anything to do in code."""
    return any(isinstance(s, For) and s.kind is Kind.MATRIX for s in walk(code))


def wrong_steps(code: Code) -> Iterator[str]:
    """Yield what is wrong with what matrix units do: each a sentence."""
    yield from _wrong(code, {}, in_items=False)


def _wrong(code: Code, arrays: Arrays, *, in_items: bool) -> Iterator[str]:
    """``in_items``: whether the code is what a warp does."""
    for statement in code:
        match statement:
            case Array(name=name):
                arrays = {**arrays, name: statement}
                yield from _wrong_array(statement, in_items=in_items)
            case Let(name=name):
                yield from _wrong_places(statement, arrays)
                arrays = {**arrays, name: None}
            case For(kind=Kind.MATRIX):
                yield from _wrong_loop(statement, arrays, in_items=in_items)
            case For(kind=Kind.ITEM, iterator=iterator, body=body):
                of_warps = has_steps(body)
                if in_items and not of_warps and statement.end != Number(LANES):
                    yield f"the items over `{iterator}` are inside of warps, and not {LANES} lanes"
                yield from _wrong(body, arrays, in_items=of_warps)
            case _:
                yield from _wrong_places(statement, arrays)
                for block in blocks(statement):
                    yield from _wrong(block, arrays, in_items=in_items)


def _wrong_array(array: Array, *, in_items: bool) -> Iterator[str]:
    if (array.space is Space.UNIT) != (array.part is not None):
        yield f"`{array.name}` is a part of products outside of matrix units, or no part inside"
    if array.space is not Space.UNIT or array.part is None:
        return
    kind = SUM if array.part is Part.SUM else FACTOR
    if array.type is not kind or array.shape[-2:] != (Number(SIDE), Number(SIDE)):
        yield f"`{array.name}` has no blocks of {SIDE} x {SIDE} elements of {kind.value}"
    if not in_items:
        yield f"`{array.name}` is in the matrix unit of no warp"


def _wrong_loop(loop: For, arrays: Arrays, *, in_items: bool) -> Iterator[str]:
    text = f"the {loop.kind.value.replace('for', 'loop')} over `{loop.iterator}`"
    if not in_items:
        yield f"{text} is in no warp"
    try:
        step_of(loop, arrays)
    except NoStep as fault:
        yield f"{text} {fault}"


def _wrong_places(statement: Statement, arrays: Arrays) -> Iterator[str]:
    """Yield what other statements load and store of matrix units."""
    stored = [statement.array] if isinstance(statement, Store) else []
    for name in dict.fromkeys([*stored, *(load.array for load in loads_of(statement))]):
        array = arrays.get(name)
        if array is not None and array.space is Space.UNIT:
            yield f"`{name}` is in a matrix unit, and used outside of its loops"
