"""Random md_homs over integers, for hypothesis: every operator where it makes a homomorphism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    Read,
    Select,
)
from polyloom.ir.host import (
    Buffer,
    CombineOperator,
    Combiner,
    HostProgram,
    Index,
    MdHom,
    Order,
    Role,
    View,
)
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

I32, I64 = ElementType.INT32, ElementType.INT64
NAMES = "ijk"


def binary_combiner(op: BinaryFunction, kind: ElementType, neutral: int | None) -> Combiner:
    return Combiner(name=op.name, results=(Binary(op, Read(0, kind), Read(1, kind)),), neutral=(neutral,))


def argmax() -> Combiner:
    """(value, place): the larger value, of equal ones the smaller place."""
    larger = Compare(CompareOp.GT, Read(0, I32), Read(2, I32))
    same = Compare(CompareOp.EQ, Read(0, I32), Read(2, I32))
    before = Compare(CompareOp.LT, Read(1, I32), Read(3, I32))
    wins = Binary(BinaryOp.OR, larger, Binary(BinaryOp.AND, same, before))
    results = tuple(Select(wins, Read(k, I32), Read(k + 2, I32)) for k in (0, 1))
    return Combiner(name="argmax", results=results, neutral=(None, None))


def affine_maps() -> Combiner:
    """(a, b) stands for x -> a x + b: first the left one, then the right. Associative, not commutative."""
    a, b, c, d = (Read(k, I32) for k in range(4))
    scaled = Binary(BinaryOp.MULTIPLY, c, b)
    results = Binary(BinaryOp.MULTIPLY, a, c), Binary(BinaryOp.ADD, scaled, d)
    return Combiner(name="then", results=results, neutral=(1, 0), commutative=False)


def first() -> Combiner:
    return Combiner(name="first", results=(Read(0, I32),), neutral=(None,), commutative=False)


LEAST = int(np.iinfo("int32").min)
COMBINERS = (
    binary_combiner(BinaryOp.ADD, I32, 0),
    binary_combiner(BinaryOp.MULTIPLY, I32, 1),
    binary_combiner(BinaryOp.MAXIMUM, I32, LEAST),
    binary_combiner(BinaryOp.MINIMUM, I32, None),
    binary_combiner(BinaryOp.BIT_XOR, I32, 0),
    argmax(),
    affine_maps(),
    first(),
)


@dataclass(frozen=True)
class Case:
    """An md_hom over buffers of known sizes; the outputs are called ``y0``, ``y1``."""

    node: MdHom
    buffers: tuple[Buffer, ...]

    @property
    def program(self) -> HostProgram:
        return HostProgram(name="case", parameters=(), buffers=self.buffers, body=(self.node,))

    def data(self, seed: int, largest: int = 5) -> dict[str, Any]:
        generator = np.random.default_rng(seed)
        given = (b for b in self.buffers if b.role in (Role.INPUT, Role.UPDATED))
        return {b.name: _values(b, generator, largest) for b in given}


def _values(buffer: Buffer, generator: np.random.Generator, largest: int) -> Any:
    shape = tuple(n.value for n in buffer.shape if isinstance(n, Number))
    return np.asarray(generator.integers(-largest, largest + 1, shape)).astype(buffer.type.value)


@st.composite
def md_homs(draw: Any, scans: bool = True, guards: bool = True, extras: bool = False) -> Case:
    """Random md_homs; ``extras``: also starts and finishing maps, which are no part of a homomorphism."""
    extents = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    combiner = draw(st.sampled_from(COMBINERS))
    combine = draw(_operators(len(extents), combiner, scans))
    combines = any(o.combiner for o in combine)
    outputs = len(combiner.results) if combines else 1
    views, buffers = draw(_inputs(extents))
    kept = [k for k, o in enumerate(combine) if o.order is not Order.POINTWISE]
    order = draw(st.permutations(kept))
    written = tuple(View(f"y{o}", tuple(unit(len(extents), k) for k in order)) for o in range(outputs))
    shape = tuple(Number(extents[k]) for k in order)
    node = MdHom(
        name="S",
        iterators=tuple(NAMES[: len(extents)]),
        extents=tuple(Number(n) for n in extents),
        inputs=views,
        outputs=written,
        terms=tuple(draw(_terms(len(views), len(extents))) for _ in range(outputs)),
        combine=combine,
        initial=(None,) * outputs,
        finish=(None,) * outputs,
        guard=draw(_conditions(len(extents))) if guards and combines and draw(st.booleans()) else None,
    )
    targets = tuple(Buffer(name=v.buffer, type=I32, shape=shape, role=Role.UPDATED) for v in written)
    case = Case(node, (*buffers, *targets))
    return draw(_with_extras(case, kept)) if extras and combines else case


def unit(dimensions: int, k: int) -> Index:
    return Index(tuple(int(j == k) for j in range(dimensions)))


@st.composite
def _operators(draw: Any, count: int, combiner: Combiner, scans: bool) -> tuple[CombineOperator, ...]:
    """One operator in all dimensions that combine; only one such dimension where it is not commutative."""
    orders = [Order.POINTWISE, Order.PREFIX] if scans else [Order.POINTWISE]
    chosen = [draw(st.sampled_from([Order.CONCATENATE, *orders])) for _ in range(count)]
    if not combiner.commutative:
        combining = [k for k, o in enumerate(chosen) if o is not Order.CONCATENATE]
        chosen = [o if k in combining[:1] else Order.CONCATENATE for k, o in enumerate(chosen)]
    return tuple(CombineOperator(o, None if o is Order.CONCATENATE else combiner) for o in chosen)


@st.composite
def _inputs(draw: Any, extents: Sequence[int]) -> tuple[tuple[View, ...], tuple[Buffer, ...]]:
    views, buffers = [], []
    for number in range(draw(st.integers(1, 2))):
        indices = draw(st.lists(_indices(extents), max_size=3))
        shape = tuple(Number(1 + _largest(i, extents)) for i in indices)
        views.append(View(f"x{number}", tuple(indices)))
        buffers.append(Buffer(name=f"x{number}", type=I32, shape=shape, role=Role.INPUT))
    return tuple(views), tuple(buffers)


def _indices(extents: Sequence[int]) -> st.SearchStrategy[Index]:
    coefficients = st.tuples(*[st.sampled_from([0, 0, 1, 1, 2, -1]) for _ in extents])
    return st.builds(lambda c, extra: _inside(c, extents, extra), coefficients, st.integers(0, 1))


def _inside(coefficients: tuple[int, ...], extents: Sequence[int], extra: int) -> Index:
    least = sum(min(0, c * (n - 1)) for c, n in zip(coefficients, extents, strict=True))
    return Index(coefficients, Number(extra - least))


def _largest(index: Index, extents: Sequence[int]) -> int:
    assert isinstance(index.offset, Number)
    pairs = zip(index.coefficients, extents, strict=True)
    return index.offset.value + sum(max(0, c * (n - 1)) for c, n in pairs)


@st.composite
def _terms(draw: Any, reads: int, dimensions: int) -> Expression:
    leaves = [Read(k, I32) for k in range(reads)] * 2
    leaves += [Iterator(draw(st.integers(0, dimensions - 1)), I32), Constant(draw(st.integers(-3, 3)), I32)]
    operators = (BinaryOp.ADD, BinaryOp.MULTIPLY, BinaryOp.SUBTRACT, BinaryOp.MAXIMUM)
    parts = [draw(st.sampled_from(leaves)) for _ in range(draw(st.integers(1, 3)))]
    result = parts[0]
    for part in parts[1:]:
        result = Binary(draw(st.sampled_from(operators)), result, part)
    return result


@st.composite
def _conditions(draw: Any, dimensions: int) -> IntExpression:
    coefficients = [draw(st.integers(-1, 1)) for _ in range(dimensions)]
    terms: list[tuple[int, IntExpression]] = [(c, Name(NAMES[k])) for k, c in enumerate(coefficients) if c]
    left = sum_of([*terms, (1, Number(draw(st.integers(-1, 4))))])
    return Operation(draw(st.sampled_from([">=", "<", "!="])), (left, Number(0)))


@st.composite
def _with_extras(draw: Any, case: Case, kept: Sequence[int]) -> Case:
    """Start from the outputs' old values, finish with a map."""
    node, count = case.node, len(case.node.inputs)
    outputs = len(node.outputs)
    starts = tuple(Read(count + o, I32) for o in range(outputs)) if draw(st.booleans()) else node.initial
    inputs = (*node.inputs, *node.outputs)
    results = [Read(len(inputs) + o, I32) for o in range(outputs)]
    finish = tuple(Binary(BinaryOp.SUBTRACT, r, Constant(1, I32)) for r in results)
    return replace(
        case,
        node=replace(
            node, inputs=inputs, initial=starts, finish=finish if draw(st.booleans()) else node.finish
        ),
    )
