"""Deliberately wrong evaluators; the comparison with nested loops must catch each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from naive import naive
from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Buffer, Combine, ElementType, Index, Program, Statement, View, evaluate
from polyloom.ir.expressions import BinaryOp, Read, UnaryOp
from polyloom.ir.scalar_functions.function import BinaryFunction
from strategies import data

TEXTS = [
    "lair dot(): float16 x[300], float16 z[300] -> float16 s { all (i) in (300) s += x[i] * z[i] }",
    "lair t(): float32 d[40], float32 W[3] -> float32 x[42]{ all (w, r) in (40, 3) x[w + r] += d[w] * W[r] }",
    "lair q(): float16 x[4][50] -> float16 y[4] { all (i, j) in (4, 50) y[i] += x[i][j] * 0.1 + x[i][j] }",
    "lair m(): float32 x[5] -> float32 y[7] { all (i) in (5) y[i] max= x[i] - 100 }",
    "lair p(): float32 x[5] -> float32 y[7] { all (i) in (5) y[i] *= x[i] }",
    "lair i(): int16 x[50], int16 z[50] -> int16 y[50] { all (i) in (50) y[i] = x[i] / z[i] }",
    "lair w(): int16 x[50], int16 z[50] -> int16 y[50] { all (i) in (50) y[i] = x[i] * z[i] }",
    "lair c(): float32 x[50] -> int32 y[50] { all (i) in (50) y[i] = int32(x[i]) }",
    "lair r(): float32 x[50] -> float32 y[50] { all (i) in (50) y[i] = round(x[i] * 4 - x[i] * 2) }",
    "lair e(): float16 x[500] -> float16 y[500] { all (i) in (500) y[i] = exp(x[i]) }",
    "lair k(): float32 x[4][3], float32 W[3] -> float32 y[9]"
    "{ all (a, b) in (4, 3) y[8 - 2*a] += x[a][b] * W[b] }",
]


def triangle() -> Program:
    f32 = ElementType.FLOAT32
    read, write = View("x", (Index.of((0, 1)),)), View("y", (Index.of((1, 0)),))
    statement = Statement.of(
        "S", ("i", "j"), (5, 5), (read,), write, Read(0, f32), Combine.ADD, (Index.of((1, -1)),)
    )
    return Program.of(
        "S", (Buffer.of("x", f32, (5,)), Buffer.of("y", f32, (5,))), ("x",), ("y",), (statement,)
    )


PROGRAMS = [*(lower(parse(Source("mutant", t))) for t in TEXTS), triangle()]


def disagreements() -> int:
    return sum(not _agree(program, seed) for program in PROGRAMS for seed in range(3))


def _agree(program: Program, seed: int) -> bool:
    inputs = data(program, seed)
    expected = naive(program, inputs)
    found = evaluate(program, inputs)
    return all(np.array_equal(found[n], expected[n], equal_nan=True) for n in expected)


def test_the_evaluator_itself_agrees() -> None:
    assert disagreements() == 0


def _pairwise(operator: np.ufunc, before: Any, lines: Any) -> Any:
    total = operator.reduce(lines, axis=0)
    return total if before is None else operator(before, total)


def _wide(operator: np.ufunc, before: Any, lines: Any) -> Any:
    wide = lines if before is None else np.concatenate([before[np.newaxis], lines])
    return operator.reduce(wide.astype(np.float64), axis=0).astype(lines.dtype)


def _always_forwards(original: Any) -> Any:
    return lambda *of: tuple(dataclasses.replace(loop, backwards=False) for loop in original(*of))


def _narrow(original: Any) -> Any:
    return lambda op, a, kind: np.float16(0) + a if op is UnaryOp.EXP else original(op, a, kind)


def _floor_division(original: Any) -> Any:
    return lambda op, a, b, kind: (
        a // np.where(b == 0, 1, b) if op is BinaryOp.DIVIDE else original(op, a, b, kind)
    )


def _saturating(original: Any) -> Any:
    def binary(op: BinaryFunction, a: Any, b: Any, kind: ElementType) -> Any:
        if op is not BinaryOp.MULTIPLY or kind.is_float:
            return original(op, a, b, kind)
        return np.clip(a.astype(np.int64) * b, -32768, 32767).astype(a.dtype)

    return binary


E, A, S, H, L = (
    f"polyloom.ir.evaluation.{name}" for name in ("programs", "arithmetic", "boxes", "md_homs", "launches")
)
MUTANTS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "sums in pairs": (H, "one_after_another", lambda original: _pairwise),
    "sums in float64": (H, "one_after_another", lambda original: _wide),
    "loops never backwards": (S, "loops", _always_forwards),
    "every reduction starts at 0": (E, "blank", lambda f: lambda p, s: np.zeros_like(f(p, s))),
    "guards are ignored": (L, "values_of", lambda f: lambda condition, names: np.ones((), np.bool_)),
    "rounds conversions": (A, "convert", lambda f: lambda a, k: f(np.rint(a), k)),
    "integer division rounds down": (A, "binary", _floor_division),
    "integers saturate": (A, "binary", _saturating),
    "exp is missing": (A, "unary", _narrow),
    "boxes overlap": (S, "cut", lambda f: lambda whole, size: [*f(whole, size), whole[-1:]]),
    "the last box is lost": (S, "cut", lambda f: lambda w, size: f(w, size)[: max(1, len(w) // size - 1)]),
    "views ignore signs": (
        S,
        "_at_start",
        lambda f: lambda i, box: max(0, f(i, box) - 1),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    module, attribute, change = MUTANTS[name]
    original = getattr(sys.modules[module], attribute)
    monkeypatch.setattr(sys.modules[module], attribute, change(original))
    try:
        wrong = disagreements()
    except (ValueError, TypeError):
        wrong = 1
    assert wrong > 0
