"""Functions made of instructions in the code of layers: simulated, against what the sequences give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from forgotten import forget_instructions

from polyloom.api.simulation import simulate
from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, evaluate
from polyloom.ir.expressions import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instructions import instruction
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.vector_functions import elementary, sequences
from polyloom.wafer.vector_functions.elementary import vector_function

NDArray = npt.NDArray[Any]

FUNCTIONS = {
    "exp(x[i])": UnaryOp.EXP,
    "sigmoid(x[i])": UnaryOp.SIGMOID,
    "tanh(x[i])": UnaryOp.TANH,
    "rsqrt(x[i])": UnaryOp.RSQRT,
    "sqrt(x[i])": UnaryOp.SQRT,
    "x[i] / d[i]": BinaryOp.DIVIDE,
}
COUNT = 200
TYPES = ("float16", "float32")


def placed(body: str, kind: str) -> tuple[Program, Mapping]:
    text = f"lair S(): T x[{COUNT}], T d[{COUNT}] -> T y[{COUNT}]\n{{ all (i) in ({COUNT}) y[i] = {body} }}"
    program = lower(parse(Source("S.lair", text.replace("T ", f"{kind} "))), None, {})
    return program, read_mapping(
        Source("S.map", "size: { PE[1, 1] }\ncompute_map: { S[i] -> PE[0, 0] }"), program
    )


def values(kind: str) -> dict[str, NDArray]:
    """Numbers of all sizes, special ones among them."""
    drawn = np.random.default_rng(3)
    x = np.concatenate([drawn.uniform(-9, 9, COUNT - 6), [0, 1, -1, np.inf, -np.inf, np.nan]])
    return {"x": x.astype(kind), "d": drawn.permutation(x).astype(kind)}


def bits_of(result: NDArray) -> list[int]:
    """The bits, any NaN being as good as another."""
    unsigned = np.where(np.isnan(result), np.asarray(np.nan, result.dtype), result)
    return list(unsigned.view(np.uint16 if result.dtype == np.float16 else np.uint32))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("body", FUNCTIONS)
def test_the_code_gives_the_bits_of_the_sequence(body: str, kind: str) -> None:
    program, mapping = placed(body, kind)
    inputs = values(kind)
    function = vector_function(FUNCTIONS[body], ElementType(kind))
    assert function is not None
    expected = sequences.evaluate(function, *(inputs[v] for v in ("x", "d")[: len(function.arguments)]))
    found = simulate(program, mapping, inputs).outputs["y"]
    assert bits_of(found) == bits_of(expected)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("body", FUNCTIONS)
def test_the_switch_gives_the_bits_of_the_evaluator_and_costs_cycles(body: str, kind: str) -> None:
    program, mapping = placed(body, kind)
    inputs = values(kind)
    scalar = simulate(program, mapping, inputs, simd_without=["vector-functions"])
    with np.errstate(all="ignore"):
        expected = evaluate(program, inputs)["y"]
    assert bits_of(scalar.outputs["y"]) == bits_of(expected)
    assert simulate(program, mapping, inputs).cycles < scalar.cycles


CHECKED = [
    *FUNCTIONS,
    "exp(x[i] - d[i]) / 3 + 1 / (2 + exp(d[i]))",
    "1 / x[i]",
    "d[i] / 7",
    "select(x[i] > 0, tanh(d[i]), sigmoid(x[i]) * d[i])",
]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("body", CHECKED)
def test_checks_know_the_error(body: str, kind: str) -> None:
    program, mapping = placed(body, kind)
    verdict = simulate(program, mapping, check=True).check
    assert verdict is not None and verdict.passed, verdict


def test_a_wrong_coefficient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is off by 5 %."""
    monkeypatch.setattr(elementary, "_EXP", (1.0, 1.0002, 0.5302, 0.1651))
    forget_instructions()
    try:
        program, mapping = placed("exp(x[i])", "float16")
        verdict = simulate(program, mapping, check=True).check
    finally:
        forget_instructions()
    assert verdict is not None and not verdict.passed


def test_every_operand_has_the_type_that_its_instruction_takes() -> None:
    for op in FUNCTIONS.values():
        for kind in (ElementType.FLOAT16, ElementType.FLOAT32):
            function = vector_function(op, kind)
            assert function is not None
            for operation in function.operations:
                entry = instruction(operation.instruction)
                types = [
                    ElementType.INT16 if isinstance(o, sequences.Value) and o.word is not None else o.type
                    for o in operation.operands
                ]
                assert types == list(entry.sources)
