"""Random programs of the IR and random LAIR trees, for hypothesis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from polyloom.diagnostics import Source, Span
from polyloom.frontends.lair.syntax import tree
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.host import Buffer, Index, View
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType

TYPES = (ElementType.FLOAT16, ElementType.FLOAT32, ElementType.INT16, ElementType.INT32)
REDUCTIONS = (Combine.ADD, Combine.MULTIPLY, Combine.MAXIMUM, Combine.MINIMUM)
ITERATORS = "ijkl"
EXACT_UNARY = (UnaryOp.NEGATE, UnaryOp.ABS, UnaryOp.FLOOR, UnaryOp.CEIL, UnaryOp.ROUND)
ARITHMETIC = (BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.DIVIDE)


def affines(domain: Sequence[int]) -> st.SearchStrategy[Index]:
    """Affine functions whose least value on the domain is 0 to 2."""
    coefficients = st.tuples(*[st.sampled_from([0, 0, 1, 1, 2, 3, -1, -2]) for _ in domain])
    return st.builds(lambda c, extra: _shifted(c, domain, extra), coefficients, st.integers(0, 2))


def _shifted(coefficients: tuple[int, ...], domain: Sequence[int], extra: int) -> Index:
    least = sum(min(0, c * (n - 1)) for c, n in zip(coefficients, domain, strict=True))
    return Index.of(coefficients, extra - least)


def extent(index: Index, domain: Sequence[int]) -> int:
    return (
        index.constant + 1 + sum(max(0, c * (n - 1)) for c, n in zip(index.coefficients, domain, strict=True))
    )


@st.composite
def accesses(draw: Any, name: str, kind: ElementType, domain: Sequence[int]) -> tuple[View, Buffer]:
    indices = draw(st.lists(affines(domain), max_size=3).map(tuple))
    shape = tuple(extent(i, domain) + draw(st.integers(0, 1)) for i in indices)
    return View(name, indices), Buffer.of(name, kind, shape)


@st.composite
def writes(draw: Any, name: str, kind: ElementType, domain: Sequence[int]) -> tuple[View, Buffer, Combine]:
    if draw(st.booleans()):
        access, tensor = draw(accesses(name, kind, domain))
        return access, tensor, draw(st.sampled_from(REDUCTIONS))
    order = draw(st.permutations(range(len(domain))))
    units = tuple(Index.unit(k, len(domain)) for k in order)
    return View(name, units), Buffer.of(name, kind, tuple(domain[k] for k in order)), Combine.CONCATENATE


def literals(kind: ElementType) -> st.SearchStrategy[Constant]:
    whole = st.integers(-9, 9)
    values = st.one_of(whole, st.floats(-9, 9, width=16)) if kind.is_float else whole
    return values.map(lambda v: Constant(v, kind))


@st.composite
def expressions(draw: Any, kind: ElementType, reads: Sequence[ElementType], depth: int = 3) -> Expression:
    """Expressions of a type over reads of given types; only operations that every library rounds alike."""
    same = [k for k, t in enumerate(reads) if t is kind]
    other = [k for k, t in enumerate(reads) if t is not kind]
    leaves = ["literal"] + ["read"] * 3 * bool(same) + ["convert"] * bool(other)
    grow = ["unary", "binary", "binary", "select", "extreme"] if depth else []
    inner = lambda t=kind: draw(expressions(t, reads, depth - 1))  # noqa: E731
    match draw(st.sampled_from(leaves + grow)):
        case "literal":
            return draw(literals(kind))
        case "read":
            return Read(draw(st.sampled_from(same)), kind)
        case "convert":
            k = draw(st.sampled_from(other))
            return Convert(kind, Read(k, reads[k]))
        case "unary":
            operand = inner()
            op = draw(st.sampled_from(EXACT_UNARY))
            negated = op is UnaryOp.NEGATE and isinstance(operand, Constant)
            return Unary(UnaryOp.ABS if negated else op, operand)
        case "binary":
            return Binary(draw(st.sampled_from(ARITHMETIC)), inner(), inner())
        case "extreme":
            return Binary(draw(st.sampled_from([BinaryOp.MAXIMUM, BinaryOp.MINIMUM])), inner(), inner())
        case _:
            compared = draw(st.sampled_from([kind, *reads]))
            condition = Compare(draw(st.sampled_from(CompareOp)), inner(compared), inner(compared))
            return Select(condition, inner(), inner())


def _renumbered(expression: Any, order: dict[int, int]) -> Any:
    """Number the reads in the order of their first appearance."""
    match expression:
        case Read(position=k, type=t):
            return Read(order.setdefault(k, len(order)), t)
        case Constant():
            return expression
        case Unary(op=op, operand=a):
            return Unary(op, _renumbered(a, order))
        case Convert(type=t, operand=a):
            return Convert(t, _renumbered(a, order))
        case Binary(op=op, left=a, right=b):
            left = _renumbered(a, order)
            return Binary(op, left, _renumbered(b, order))
        case Compare(op=op, left=a, right=b):
            left = _renumbered(a, order)
            return Compare(op, left, _renumbered(b, order))
        case Select(condition=c, then=a, otherwise=b):
            condition = _renumbered(c, order)
            then = _renumbered(a, order)
            return Select(condition, then, _renumbered(b, order))
    raise TypeError(expression)


@st.composite
def statements(draw: Any, name: str, output: str, guarded: bool) -> tuple[Statement, list[Buffer], Buffer]:
    domain = tuple(draw(st.lists(st.integers(1, 4), max_size=4)))
    kind = draw(st.sampled_from(TYPES))
    read_types = draw(st.lists(st.sampled_from([kind, kind, *TYPES]), max_size=3))
    pairs = [draw(accesses(f"{name}_x{k}", t, domain)) for k, t in enumerate(read_types)]
    write, target, reduction = draw(writes(output, kind, domain))
    order: dict[int, int] = {}
    expression = _renumbered(draw(expressions(kind, read_types)), order)
    used = [pairs[k] for k in order]
    guard = tuple(draw(st.lists(_guards(domain), max_size=2))) if guarded else ()
    statement = Statement.of(
        name,
        tuple(ITERATORS[: len(domain)]),
        domain,
        tuple(a for a, _ in used),
        write,
        expression,
        reduction,
        guard,
    )
    return statement, [t for _, t in used], target


def _guards(domain: Sequence[int]) -> st.SearchStrategy[Index]:
    coefficients = st.tuples(*[st.integers(-1, 1) for _ in domain])
    return st.builds(Index.of, coefficients, st.integers(-1, 3))


@st.composite
def programs(draw: Any, guarded: bool = False, largest: int = 3) -> Program:
    """Programs of a few statements, each with inputs of its own; some read an earlier result as well."""
    made = [draw(statements(f"S{k}", f"y{k}", guarded)) for k in range(draw(st.integers(1, largest)))]
    inputs = [t for _, tensors, _ in made for t in tensors]
    targets = [target for _, _, target in made]
    body = [s for s, _, _ in made]
    if len(made) > 1 and draw(st.booleans()):
        body.append(_difference(targets[0]))
        targets.append(Buffer.of("d", targets[0].type, targets[0].extents))
    internal = targets[0].name if len(body) > len(made) and draw(st.booleans()) else None
    outputs = [t for t in targets if t.name != internal]
    tensors = (*inputs, *outputs, *(t for t in targets if t.name == internal))
    return Program.of(
        "P", tensors, tuple(t.name for t in inputs), tuple(t.name for t in outputs), tuple(body)
    )


def _difference(of: Buffer) -> Statement:
    rank = len(of.extents)
    units = tuple(Index.unit(k, rank) for k in range(rank))
    twice = Binary(BinaryOp.SUBTRACT, Read(0, of.type), Constant(2, of.type))
    names = tuple("pqrs"[:rank])
    return Statement.of("D", names, of.extents, (View(of.name, units),), View("d", units), twice)


def data(program: Program, seed: int, integers: bool = False) -> dict[str, Any]:
    """Real numbers of ordinary size for floats, any values for integers."""
    generator = np.random.default_rng(seed)
    return {name: _data(program.buffer(name), generator, integers) for name in program.inputs}


def _data(tensor: Buffer, generator: np.random.Generator, integers: bool) -> Any:
    if tensor.type.is_float and not integers:
        return np.asarray(generator.normal(0, 2, tensor.extents)).astype(tensor.type.value)
    limit = 100 if tensor.type.is_float else int(np.iinfo(tensor.type.value).max)
    values = generator.integers(-limit, limit, tensor.extents) // generator.choice([1, 50, 5000])
    return np.asarray(values).astype(tensor.type.value)


_SOURCE = Source("made", "")
_SPAN = Span(_SOURCE, 0, 0)
_NAMES = st.sampled_from(["a", "b", "W", "x1", "T", "M", "lairs", "all_", "in_", "maxi", "_q", "e5"]).map(
    lambda text: tree.Name(text, _SPAN)
)
_NUMBERS = st.one_of(
    st.integers(0, 2**31),
    st.floats(0, 1e30, allow_nan=False, allow_infinity=False).filter(lambda v: math.copysign(1, v) > 0),
).map(lambda v: tree.Number(v, _SPAN))
_SIGNS = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!="]


def _several(parts: Any, least: int = 0, most: int = 3) -> Any:
    return st.lists(parts, min_size=least, max_size=most).map(tuple)


def _grown(inner: Any) -> Any:
    return st.one_of(
        st.builds(tree.Element, _NAMES, _several(inner, 1), st.just(_SPAN)),
        st.builds(tree.Operation, st.sampled_from(_SIGNS), st.tuples(inner, inner), st.just(_SPAN)),
        st.builds(tree.Operation, st.just("-"), st.tuples(inner), st.just(_SPAN)),
        st.builds(tree.Call, _NAMES, _several(inner), st.just(_SPAN)),
        st.builds(tree.Choice, inner, inner, inner, st.just(_SPAN)),
    )


TREES = st.recursive(st.one_of(_NAMES, _NUMBERS), _grown, max_leaves=12)
_DECLARATIONS = st.builds(tree.Declaration, _NAMES, _NAMES, _several(TREES), st.just(_SPAN))
_ELEMENTS = st.builds(tree.Element, _NAMES, _several(TREES, 1, 2), st.just(_SPAN))
_STATEMENTS = st.builds(
    tree.Statement,
    _several(_NAMES),
    _several(TREES),
    st.one_of(_NAMES, _ELEMENTS),
    st.sampled_from(["=", "+=", "*=", "max=", "min="]),
    TREES,
    st.just(_SPAN),
)
_INVOCATIONS = st.builds(
    tree.Invocation,
    _several(_NAMES, 1),
    _NAMES,
    st.one_of(st.none(), _several(_NAMES, 1)),
    st.one_of(st.none(), _several(TREES)),
    _several(TREES),
    st.just(_SPAN),
)
_TYPE_PARAMETERS = st.builds(tree.TypeParameter, _NAMES, st.one_of(st.none(), _NAMES))


def _items(kind: Any, body: Any) -> Any:
    sides = _several(_DECLARATIONS)
    parts = _several(st.one_of(_DECLARATIONS, body))
    return st.builds(
        kind, _NAMES, _several(_TYPE_PARAMETERS), _several(_NAMES), sides, sides, parts, st.just(_SPAN)
    )


MODULES = st.builds(
    tree.Module,
    _several(st.one_of(_items(tree.Node, _STATEMENTS), _items(tree.Graph, _INVOCATIONS)), 0, 2),
    st.just(_SOURCE),
)


def as_float64(program: Program, inputs: dict[str, Any]) -> tuple[Program, dict[str, Any]]:
    """Return the program and its inputs with every float as float64, literals rounded as before."""
    wide = ElementType.FLOAT64
    tensors = tuple(replace(t, type=wide if t.type.is_float else t.type) for t in program.tensors)
    body = tuple(s.changed(expression=_widened(s.expression)) for s in program.statements)
    arrays = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in inputs.items()}
    return Program.of(program.name, tensors, program.inputs, program.outputs, body), arrays


def _widened(e: Any) -> Any:
    match e:
        case Constant(value=v, type=t) if t.is_float:
            return Constant(float(np.dtype(t.value).type(v)), ElementType.FLOAT64)
        case Read(position=k, type=t):
            return Read(k, ElementType.FLOAT64 if t.is_float else t)
        case Unary(op=op, operand=a):
            return Unary(op, _widened(a))
        case Convert(type=t, operand=a):
            return Convert(ElementType.FLOAT64 if t.is_float else t, _widened(a))
        case Binary(op=op, left=a, right=b):
            return Binary(op, _widened(a), _widened(b))
        case Compare(op=op, left=a, right=b):
            return Compare(op, _widened(a), _widened(b))
        case Select(condition=c, then=a, otherwise=b):
            return Select(_widened(c), _widened(a), _widened(b))
        case _:
            return e
