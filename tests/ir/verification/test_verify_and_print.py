"""The IR's rules, each broken once; and a program as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Combine, ElementType, Index, InvalidProgram, Program, View, print_program, verify
from polyloom.ir.expressions import Binary, BinaryOp, Compare, CompareOp, Constant, Iterator, Read, Select
from polyloom.polyhedra.loops.tree import Name, Number, Operation

HERE = Path(__file__).parents[1]
GOOD = HERE.parent / "frontends" / "lair" / "good"
TEXT = "lair n(): float16 x[4] -> float16 y[4] { all (i) in (4) h[i] = 2*x[i] all (i) in (4) y[i] = h[i] }"
PROGRAM = lower(parse(Source("n.lair", TEXT)))
FIRST, SECOND = PROGRAM.statements
F16, F32 = ElementType.FLOAT16, ElementType.FLOAT32


def with_first(**changes: Any) -> Program:
    return replace(PROGRAM, body=(FIRST.changed(**changes), SECOND))


def of_other_form(**changes: Any) -> Program:
    return replace(PROGRAM, body=(replace(FIRST, **changes), SECOND))


def with_expression(expression: Any) -> Program:
    return with_first(expression=expression)


TRUTH = Compare(CompareOp.LT, Read(0, F16), Constant(1, F16))
BROKEN: dict[str, Program] = {
    "two buffers": replace(PROGRAM, buffers=(*PROGRAM.buffers, PROGRAM.buffers[0])),
    "different nodes": replace(PROGRAM, body=(FIRST, replace(SECOND, name=FIRST.name))),
    "twice an input or output": replace(PROGRAM, outputs=("y", "x")),
    "no buffer": replace(PROGRAM, buffers=PROGRAM.buffers[:2]),
    "unknown tensor": replace(PROGRAM, outputs=("y", "z")),
    "extent below 1": replace(
        PROGRAM, buffers=(replace(PROGRAM.buffers[0], shape=(Number(0),)), *PROGRAM.buffers[1:])
    ),
    "before it is defined": replace(PROGRAM, body=(SECOND, FIRST)),
    "defined twice": replace(PROGRAM, body=(FIRST, SECOND, replace(SECOND, name="third"))),
    "never written": replace(PROGRAM, body=(FIRST,)),
    "roles or first values": replace(PROGRAM, buffers=tuple(replace(b, start=7) for b in PROGRAM.buffers)),
    "2 iterators, 1 extents": with_first(iterators=("i", "j")),
    "extent of the domain": with_first(domain=(0,)),
    "indices for": with_first(write=View("h", (Index.of((1,)), Index.of((1,))))),
    "coefficients for": with_first(write=View("h", (Index.of((1, 0)),))),
    "out of bounds": with_first(write=View("h", (Index.of((1,), 1),))),
    "form of a statement": of_other_form(finish=(Constant(1, F16),)),
    "n_h: has not the form": of_other_form(guard=Operation("<", (Number(0), Number(1)))),
    "condition speaks of `k`": of_other_form(guard=Operation("<", (Name("k"), Number(1)))),
    "is stored as": with_expression(Constant(1, F32)),
    "no read number": with_expression(Read(7, F16)),
    "another type": with_expression(Binary(BinaryOp.ADD, Read(0, F32), Read(0, F32))),
    "no dimension": with_expression(Iterator(3, F16)),
    "operands of types": with_expression(Binary(BinaryOp.ADD, Read(0, F16), Constant(1, F32))),
    "no comparison": with_expression(Select(Read(0, F16), Read(0, F16), Read(0, F16))),
    "used as a value": with_expression(Binary(BinaryOp.ADD, TRUTH, TRUTH)),
}


def test_what_lowers_is_valid() -> None:
    verify(PROGRAM)


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_rules_are_named(fault: str) -> None:
    with pytest.raises(InvalidProgram, match=fault):
        verify(BROKEN[fault])


@pytest.mark.parametrize("name", ["fc", "everything"])
def test_printed_program(name: str, golden: Callable[[Path, str], None]) -> None:
    program = lower(parse(Source(name, (GOOD / f"{name}.lair").read_text())))
    golden(HERE / f"{name}.txt", print_program(program))


def test_guards_and_rank_zero_are_printed() -> None:
    guarded = with_first(conditions=(Index.of((-2,), 3),), reduction=Combine.MAXIMUM)
    assert "  where 3 - 2*i >= 0\n  h[i] max= 2 * x[i]\n" in print_program(guarded)
