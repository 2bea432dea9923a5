"""A scalar function is added in one place: a toy row goes through the compiler as any other does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import Unsupported
from polyloom.frontends.lair.lowering.names import is_reserved
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.arithmetic import value
from polyloom.ir.expressions import Constant, Read, Unary, walk
from polyloom.ir.rounding.library_functions import library_functions
from polyloom.ir.rounding.rules import approximate
from polyloom.ir.scalar_functions import error_rules
from polyloom.ir.scalar_functions.approximate import Approximate
from polyloom.ir.scalar_functions.function import (
    UNARY,
    Notation,
    OnWafer,
    UnaryForm,
    UnaryFunction,
    add_function,
)
from polyloom.ir.scalar_functions.known_values import at_zero
from polyloom.ir.scalar_functions.rounding import library
from polyloom.ir.scalar_functions.sizes import at_most_one
from polyloom.ir.scalar_functions.spelling import Defined, Formula
from polyloom.ir.text.programs import print_program
from polyloom.ir.types import ElementType
from polyloom.mdh.print.dialect import OPENCL
from polyloom.mdh.print.helpers import helper_functions
from polyloom.mdh.print.values import Leaves, expression_c
from polyloom.wafer.dataflow.sparsity import value_at_zero
from polyloom.wafer.machine.scalar_c import function_names, scalar_code, scalar_operations
from polyloom.wafer.mapping.supported import check_expressible

F16, F32 = ElementType.FLOAT16, ElementType.FLOAT32
SOFTSIGN = UnaryFunction(
    name="softsign",
    notation=Notation.CALL,
    in_lair=True,
    c_names=("softsign",),
    floats=UnaryForm(
        numpy=lambda a: a / (1 + np.abs(a)),
        error=error_rules.steepest(1.0),
        opencl=Formula("softsign", "a / ({one} + {fabs}(a))"),
    ),
    integers=None,
    truths=None,
    rounding=library(2.0),
    known=at_zero(0),
    size=at_most_one,
    of_positive=False,
    instructions=10.0,
    wafer=OnWafer(
        spelling=Defined("softsign", ("a",), "a / (1.0 + __builtin_fabs((double)a))", None), operations=9
    ),
)
LAIR = "lair f(): float32 x[6] -> float32 y[6] { all (i) in (6) y[i] = softsign(x[i]) * 2 }"
C = """
double softsign(double);
void f(double x[6], double y[6])
{
#pragma scop
  for (int i = 0; i < 6; i++)
    y[i] = softsign(x[i]) * 2;
#pragma endscop
}
"""
X = np.array([-3, -1, 0, 0.5, 2, 7])


@pytest.fixture(autouse=True)
def softsign() -> Iterator[None]:
    add_function(SOFTSIGN)
    yield
    del UNARY[SOFTSIGN.name]


def test_lair_has_it_and_the_evaluator_computes_it() -> None:
    program = polyloom.read_program(LAIR)
    found = polyloom.evaluate(program, {"x": X.astype(np.float32)})["y"]
    assert np.allclose(found, X / (1 + np.abs(X)) * 2)
    assert is_reserved("softsign")
    assert "softsign(x[i])" in print_program(program)


def test_lair_refuses_it_where_it_has_no_form() -> None:
    with pytest.raises(polyloom.PolyloomError, match=r"softsign.*takes a float"):
        polyloom.read_program(LAIR.replace("float32", "int32"))


def test_kernels_compute_it() -> None:
    program = polyloom.compile(polyloom.read_program(LAIR))
    found = polyloom.run(program, {"x": X.astype(np.float32)}, check=True)
    assert found.check is not None and found.check.passed
    assert np.allclose(found.outputs["y"], X / (1 + np.abs(X)) * 2)


def test_kernels_call_its_helper() -> None:
    dialect = OPENCL.noting()
    text = expression_c(Unary(SOFTSIGN, Read(0, F16)), Leaves(["x"]), 4, dialect)
    assert text == "round_half4(softsign_float4(x))"
    definition = "float4 softsign_float4(float4 a) { return a / ((float4)(1) + fabs(a)); }"
    assert definition in helper_functions(dialect.noted, OPENCL)


def test_processing_elements_call_it() -> None:
    expression = Unary(SOFTSIGN, Read(0, F32))
    assert scalar_code(expression, {0: "x"}) == "softsign_s(x)"
    assert scalar_operations(expression) == (9, 0)
    assert "softsign_h" in function_names()


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_the_simulator_computes_it(kind: str) -> None:
    program = polyloom.read_program(LAIR.replace("float32", kind))
    mapping = polyloom.read_mapping("size: { PE[1, 1] }\ncompute_map: { f[i] -> PE[0, 0] }", program)
    result = polyloom.simulate(program, mapping, check=True)
    assert result.check is not None and result.check.passed


def test_c_has_it(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(C)
    program = polyloom.read_program(tmp_path / "f.c")
    assert any(
        isinstance(part, Unary) and part.op is SOFTSIGN
        for statement in program.statements
        for part in walk(statement.expression)
    )


def test_zeros_bounds_and_rounding_come_from_the_row() -> None:
    expression = Unary(SOFTSIGN, Read(0, F32))
    assert value_at_zero(expression, 0) == 0
    assert value_at_zero(Unary(SOFTSIGN, Constant(1, F32)), 0) is None
    found = approximate(expression, [Approximate(X.astype(np.float32), np.full(6, 0.25))], lambda k: X)
    assert found.error is not None and np.all(found.error >= 0.25) and np.all(found.error < 0.26)
    assert library_functions(host_program(polyloom.read_program(LAIR))) == ("softsign",)
    assert np.array_equal(value(expression, [X], lambda k: X), X / (1 + np.abs(X)))


def test_a_function_that_the_wafer_lacks_is_refused_by_name() -> None:
    UNARY["softsign"] = dataclasses.replace(SOFTSIGN, wafer=None)
    with pytest.raises(Unsupported, match="softsign"):
        check_expressible(polyloom.read_program(LAIR))
