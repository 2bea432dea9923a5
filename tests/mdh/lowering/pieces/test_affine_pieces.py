"""Md_homs in pieces with affine subscripts: the lines of functions point by point, and results beside C's."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from c_host_programs import host_programs_of
from compiled_c import compiled
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.host import Index, MdHom
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.ir.verification.programs import verify
from polyloom.mdh.lowering.pieces.affine import affine_pieces
from polyloom.mdh.lowering.pieces.lines import MOST_LINES, lines_of
from polyloom.polyhedra.loops.tree import leaves_in

INT = ElementType.INT32
I = Convert(INT, Iterator(0, ElementType.INT64))  # noqa: E741


def constant(value: int) -> Constant:
    return Constant(value, INT)


def value_at(e: Expression, i: int) -> int:
    """Return what C computes, without a limit of the type."""
    match e:
        case Constant(value=value):
            return int(value)
        case Iterator():
            return i
        case Convert(operand=a):
            return value_at(a, i)
        case Unary(op=UnaryOp.NOT, operand=a):
            return int(not value_at(a, i))
        case Unary(operand=a):
            return -value_at(a, i)
        case Select(condition=c, then=a, otherwise=b):
            return value_at(a if value_at(c, i) else b, i)
        case Compare(op=op, left=a, right=b):
            return int(eval(f"{value_at(a, i)} {op.value} {value_at(b, i)}"))
        case Binary(op=op, left=a, right=b):
            x, y = value_at(a, i), value_at(b, i)
            return int(WHAT[op](x, y))
    raise AssertionError(e)


WHAT = {
    BinaryOp.ADD: lambda x, y: x + y,
    BinaryOp.SUBTRACT: lambda x, y: x - y,
    BinaryOp.MULTIPLY: lambda x, y: x * y,
    BinaryOp.DIVIDE: lambda x, y: int(x / y),
    BinaryOp.REMAINDER: lambda x, y: x - y * int(x / y),
    BinaryOp.BIT_AND: lambda x, y: x & y,
    BinaryOp.MINIMUM: min,
    BinaryOp.MAXIMUM: max,
    BinaryOp.AND: lambda x, y: x and y,
    BinaryOp.OR: lambda x, y: x or y,
}


def random_function(random: Random, depth: int) -> Expression:
    if depth == 0:
        return random.choice([I, I, constant(random.randint(-9, 20))])
    a, b = random_function(random, depth - 1), random_function(random, depth - 1)
    match random.randint(0, 6):
        case 0:
            return Binary(
                random.choice([BinaryOp.DIVIDE, BinaryOp.REMAINDER]), a, constant(random.randint(1, 20))
            )
        case 1:
            return Binary(BinaryOp.BIT_AND, a, constant(random.choice([0, 1, 7, 15])))
        case 2:
            return Select(random_condition(random, a, b), b, a)
        case 3:
            return Binary(random.choice([BinaryOp.MINIMUM, BinaryOp.MAXIMUM]), a, b)
        case 4:
            return Binary(BinaryOp.MULTIPLY, a, constant(random.randint(-3, 3)))
        case 5:
            return Unary(UnaryOp.NEGATE, a)
        case _:
            return Binary(random.choice([BinaryOp.ADD, BinaryOp.SUBTRACT]), a, b)


def random_condition(random: Random, a: Expression, b: Expression) -> Expression:
    first = Compare(random.choice(list(CompareOp)), a, constant(random.randint(0, 9)))
    second = Compare(random.choice(list(CompareOp)), b, a)
    both = Binary(random.choice([BinaryOp.AND, BinaryOp.OR]), first, second)
    return random.choice([first, second, both, Unary(UnaryOp.NOT, both)])


def test_lines_are_the_function_at_each_point() -> None:
    random, several = Random(5), 0
    for _ in range(400):
        function, extent = random_function(random, random.randint(1, 3)), random.randint(1, 24)
        lines = lines_of(function, 0, extent)
        if lines is None:
            continue
        several += len(lines) > 1
        assert [i for line in lines for i in range(line.start, line.end)] == list(range(extent))
        found = [line.at(i) for line in lines for i in range(line.start, line.end)]
        assert found == [value_at(function, i) for i in range(extent)], function
    assert several > 100


@pytest.mark.parametrize(
    "function",
    [
        Binary(BinaryOp.REMAINDER, I, constant(3)),
        Binary(BinaryOp.MULTIPLY, I, I),
        Binary(BinaryOp.REMAINDER, I, constant(0)),
        Binary(BinaryOp.BIT_AND, I, constant(5)),
        Binary(BinaryOp.MULTIPLY, I, constant(1 << 28)),
        Convert(ElementType.UINT32, Binary(BinaryOp.SUBTRACT, I, constant(1))),
        Iterator(1, ElementType.INT64),
    ],
    ids=["many lines", "square", "by zero", "no mask", "too large", "below zero", "another iterator"],
)
def test_what_has_no_lines(function: Expression) -> None:
    assert lines_of(function, 0, 3 * MOST_LINES + 3) is None


RING = "B[i] = 3 * A[(i + n - 1) % n] + 5 * A[i] + 7 * A[(i + 1) % n];"
BRANCHES = "B[i] = 3 * A[i == 0 ? n - 1 : i - 1] + 5 * A[i] + 7 * A[i == n - 1 ? 0 : i + 1];"
EDGES = "B[i] = 3 * A[i - 2 < 0 ? 0 : i - 2] + 5 * A[i] + 7 * A[i + 2 > n - 1 ? n - 1 : i + 2];"
MIRROR = "B[i] = 3 * A[i < 2 ? 2 - i : i - 2] + 5 * A[i] + 7 * A[(i + 3) % n];"
ROWS = {"ring": RING, "branches": BRANCHES, "edges": EDGES, "mirror": MIRROR}

TORUS = """for (int j = 0; j < m; j++)
  B[i][j] = 3 * A[i][(j + m - 1) % m] + 5 * A[(i + 1) % n][j] + 7 * A[i == 0 ? n - 1 : i - 1][(j + 2) % m];"""
SUMS = """for (int j = 0; j < m; j++)
  for (int k = 0; k < 3; k++) B[i][j] += A[(i + n - 1) % n][k] * A[i][(j + 1) % m];"""
PLANES = {"torus": TORUS, "sums": SUMS}


def check(text: str, sizes: dict[str, int], shape: tuple[int, ...], folder: Path) -> list[MdHom]:
    """Compare the pieces of a program with C; return its md_homs, those with most points first."""
    (program,) = host_programs_of(text)
    before = specialise(program, sizes)
    made = affine_pieces(before)
    verify(made)
    random = np.random.default_rng(1)
    arrays = {name: random.integers(0, 2**32, shape, np.uint32) for name in "AB"}
    found = evaluate_host(made, {}, {b.name: arrays[b.name] for b in made.given})
    expected = compiled(text, "kernel", folder)({**sizes, **arrays})
    assert np.array_equal(found["B"], expected["B"])
    homs = [node for node in leaves_in(made.body) if isinstance(node, MdHom)]
    return sorted(homs, key=lambda hom: -int(np.prod([e.value for e in hom.extents])))  # type: ignore[union-attr]


def is_affine(hom: MdHom) -> bool:
    return all(isinstance(index, Index) for view in hom.inputs for index in view.indices)


def function_of(head: str, row: str) -> str:
    loops = f"for (int i = 0; i < n; i++)\n{row}"
    return f"void kernel({head}) {{\n#pragma scop\n{loops}\n#pragma endscop\n}}"


@pytest.mark.parametrize("n", [1, 4, 5, 11])
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_wrap_around_compute_what_c_does(name: str, n: int, tmp_path: Path) -> None:
    if name == "mirror" and n == 1:
        n = 3
    text = function_of("int n, unsigned A[n], unsigned B[n]", ROWS[name])
    largest, *ends = check(text, {"n": n}, (n,), tmp_path)
    assert n < 11 or (is_affine(largest) and ends)


@pytest.mark.parametrize(("n", "m"), [(1, 3), (4, 5), (12, 9)])
@pytest.mark.parametrize("name", PLANES)
def test_planes_that_wrap_around_compute_what_c_does(name: str, n: int, m: int, tmp_path: Path) -> None:
    text = function_of("int n, int m, unsigned A[n][m], unsigned B[n][m]", PLANES[name])
    largest, *_ = check(text, {"n": n, "m": m}, (n, m), tmp_path)
    assert n < 12 or is_affine(largest)


def test_what_is_affine_or_has_open_sizes_stays_as_it_is() -> None:
    (open_sizes,) = host_programs_of(function_of("int n, unsigned A[n], unsigned B[n]", RING))
    (affine,) = host_programs_of(function_of("int n, unsigned A[n], unsigned B[n]", "B[i] = A[i];"))
    special = specialise(affine, {"n": 9})
    assert affine_pieces(open_sizes) == open_sizes
    assert affine_pieces(special) == special
