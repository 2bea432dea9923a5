"""Statements say what they were made from, and are md_homs that mean it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from naive import naive
from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Combine, Program, error_bound, evaluate
from polyloom.ir.evaluation.md_homs import run_md_hom
from polyloom.ir.expressions import Read
from polyloom.ir.host import MdHom, Order, View
from polyloom.ir.reductions import neutral
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from random_tests import tried
from strategies import data, programs


@tried(150)
@given(programs(guarded=True))
def test_a_statement_says_what_it_was_made_from(program: Program) -> None:
    for s in program.statements:
        values = (s.reads, s.write, s.expression, s.reduction, s.conditions)
        again = Statement.of(s.name, s.iterators, s.domain, *values)
        assert again == s and hash(again) == hash(s)
        assert (again.reads, again.write, again.expression, again.reduction, again.conditions) == values
        assert s.is_in_form


@tried(80)
@given(programs(guarded=True, largest=1))
def test_a_statement_is_the_md_hom_that_runs(program: Program) -> None:
    """From the neutral element everywhere: nothing else is told to who runs md_homs."""
    (s,) = program.statements
    assert isinstance(s, MdHom)
    inputs = data(program, 3, integers=True)
    target = program.buffer(s.write.buffer)
    start = np.full(target.extents, neutral(s.reduction, target.type), target.type.dtype)
    arrays = {**inputs, target.name: start}
    with np.errstate(all="ignore"):
        run_md_hom(s, arrays, {})
    assert np.array_equal(arrays[target.name], naive(program, inputs)[target.name], equal_nan=True)


FORMS = {
    "y[i] = x[i]": (("++",), Combine.CONCATENATE, 1, None),
    "y[2 * i] += x[i]": (("++",), Combine.ADD, 2, None),
    "y[2 * i] max= x[i]": (("++",), Combine.MAXIMUM, 2, None),
    "y[0] *= x[i]": (("*",), Combine.MULTIPLY, 2, Read(1, ElementType.FLOAT32)),
    "y[i + j] += x[i]": (("++", "+"), Combine.ADD, 2, Read(1, ElementType.FLOAT32)),
}


def lowered(body: str) -> Program:
    length = 9 if body.split()[1] != "=" else 5
    domain = "(i, j) in (5, 2)" if "j" in body else "(i) in (5)"
    text = f"lair n(): float32 x[5] -> float32 y[{length}] {{ all {domain} {body} }}"
    return lower(parse(Source("s", text)))


@pytest.mark.parametrize("body", FORMS)
def test_forms(body: str) -> None:
    (s,) = lowered(body).statements
    assert (tuple(map(str, s.combine)), s.reduction, len(s.inputs), s.initial[0]) == FORMS[body]
    assert len(s.reads) == 1


def test_reading_what_it_writes_is_no_reduction_by_itself() -> None:
    (s,) = lowered("y[i] = x[i] - 2").statements
    own = s.changed(reads=(s.write,))
    assert (own.reduction, own.reads) == (Combine.CONCATENATE, (s.write,))


def test_what_of_does_not_make_is_not_in_form() -> None:
    (s,) = lowered("y[0] += x[i]").statements
    assert s.is_in_form
    kept = replace(s.combine[0], order=Order.PREFIX)
    assert not replace(s, combine=(kept,)).is_in_form
    assert not replace(s, initial=(None,)).is_in_form
    assert not replace(s, outputs=(View("y", (s.inputs[0].indices[0],)),)).is_in_form


def test_padding_rounds_nothing() -> None:
    program = lowered("y[i + 2] += x[i]")
    inputs = {"x": np.array([1, 0, -3.7, 1e30, 2], np.float32)}
    assert np.array_equal(evaluate(program, inputs)["y"][2:7], inputs["x"])
    assert not error_bound(program, inputs)["y"].any()
    tiny = error_bound(program, {"x": np.full(5, 1e-40, np.float32)})["y"]
    assert tiny[2] > 0 and tiny[0] == 0


def test_an_operand_that_is_neutral_in_part_rounds() -> None:
    text = "lair n(): float32 x[2], float32 z[2] -> float32 y[2] { all (i) in (2) y[i] = x[i] + z[i] }"
    program = lower(parse(Source("s", text)))
    x, ones = np.array([1, 0.3], np.float32), np.ones(2, np.float32)
    exact = error_bound(program, {"x": x, "z": 0 * ones})["y"]
    rounded = error_bound(program, {"x": x, "z": np.array([0, 0.7], np.float32)})["y"]
    assert not exact.any() and rounded[1] > 0
    doubtful = error_bound(program, {"x": x, "z": 0 * ones}, {"z": np.ones(2)})["y"]
    assert (doubtful > 1).all()
