"""Internal bytes in 16 bits: every element keeps its value, and what might not stays a byte."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from polyloom import random_inputs, read_program, simulate_layers, trace_tensors
from polyloom.api.network import simulate_one_wafer
from polyloom.diagnostics import PolyloomError
from polyloom.ir.conversion.bytes_as_shorts import bytes_as_shorts
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
)
from polyloom.ir.host import Buffer, Index, Role, View
from polyloom.ir.program import Program
from polyloom.ir.reductions import Combine
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Number

TORCH = Path(__file__).parents[2] / "data" / "torch"
BYTE, FLOAT = ElementType.UINT8, ElementType.FLOAT32
SIZE = 6
ALONG = (Index((1,), Number(0)),)


def digit(condition: Expression) -> Expression:
    return Select(condition, Constant(1, BYTE), Constant(0, BYTE))


X, T, G = Read(0, FLOAT), Read(0, BYTE), Read(1, FLOAT)
ZERO = Constant(0.0, FLOAT)
AT_MOST_ZERO = digit(Compare(CompareOp.LE, X, ZERO))
IS_TRUE = Compare(CompareOp.NE, T, Constant(0, BYTE))


def statement(
    write: str, reads: str, value: Expression, reduction: Combine = Combine.CONCATENATE
) -> Statement:
    views = tuple(View(name, ALONG) for name in reads)
    return Statement.of(f"{write}0", ("i",), (SIZE,), views, View(write, ALONG), value, reduction)


def masked(
    mask: Expression = AT_MOST_ZERO,
    read: str = "x",
    reduction: Combine = Combine.CONCATENATE,
    outputs: tuple[str, ...] = ("y", "z"),
) -> Program:
    """Return ``t[i] = mask(x[i]); y[i] = t[i] != 0 ? 0 : g[i]; z[i] = t[i] != 0 ? g[i] : 0``.

    ``read``: what the mask is of; ``b``: bytes that are given.
    """
    types = {"x": FLOAT, "b": BYTE, "g": FLOAT, "t": BYTE, "y": FLOAT, "z": FLOAT}
    given = (read, "g")
    tensors = tuple(
        Buffer(name=n, type=types[n], shape=(Number(SIZE),), role=Role.LOCAL) for n in (*given, *"tyz")
    )
    statements = (
        statement("t", read, mask, reduction),
        statement("y", "tg", Select(IS_TRUE, ZERO, G)),
        statement("z", "tg", Select(IS_TRUE, G, ZERO)),
    )
    return Program.of("masked", tensors, given, outputs, statements)


SPECIAL = np.array([-1.5, -0.0, 0.0, np.nan, np.inf, 2.0], np.float32)
GRADIENTS = np.array([1, -2, 3.5, 4, np.nan, -0.0], np.float32)


def check_same(program: Program, arrays: dict[str, np.ndarray]) -> Program:
    changed = bytes_as_shorts(program)
    before, after = trace_tensors(program, arrays), trace_tensors(changed, arrays)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)
    assert all(s.is_in_form for s in changed.statements)
    return changed


def test_truth_values_are_held_in_16_bits() -> None:
    changed = check_same(masked(), {"x": SPECIAL, "g": GRADIENTS})
    assert changed.buffer("t").type is ElementType.INT16
    assert bytes_as_shorts(changed) == changed


@pytest.mark.parametrize(
    "program",
    [
        masked(Binary(BinaryOp.ADD, AT_MOST_ZERO, Constant(255, BYTE))),
        masked(Convert(BYTE, Constant(300, ElementType.INT32))),
        masked(digit(Compare(CompareOp.GT, Read(0, BYTE), Constant(3, BYTE))), read="b"),
        masked(Constant(300, BYTE)),
        masked(reduction=Combine.ADD),
        masked(outputs=("y", "z", "t")),
    ],
    ids=["a sum", "cut off", "a byte that is given", "no byte", "a reduction", "an output"],
)
def test_what_might_change_stays_a_byte(program: Program) -> None:
    assert bytes_as_shorts(program) is program


@pytest.mark.parametrize("name", ["mlp.train", "embedding.train", "prelu.core", "sdpa_mask"])
def test_programs_of_pytorch(name: str) -> None:
    program = read_program(TORCH / f"{name}.pt2")
    changed = check_same(program, random_inputs(program))
    assert any(changed.buffer(t).type is ElementType.INT16 for t in changed.internal)


@pytest.mark.slow
@pytest.mark.ci
def test_truth_values_between_layers_on_the_wafer() -> None:
    program = masked()
    run = simulate_layers(program, {"x": SPECIAL, "g": GRADIENTS}, check=True)
    found = {n: a for layer in run.layers if layer.result for n, a in layer.result.outputs.items()}
    np.testing.assert_array_equal(found["t"], SPECIAL <= 0)
    check_masked(found, SPECIAL)
    samples = np.stack([SPECIAL, -SPECIAL])
    network = simulate_one_wafer(program, {"x": samples, "g": GRADIENTS}, samples=2, pes=16, check=True)
    assert network.check is not None and network.check.passed
    assert [stage.name for stage in network.stages] == ["t0", "y0", "z0"]
    check_masked(network.outputs, samples)


def check_masked(found: Mapping[str, np.ndarray], x: np.ndarray) -> None:
    np.testing.assert_array_equal(found["y"], np.where(x <= 0, np.float32(0), GRADIENTS))
    np.testing.assert_array_equal(found["z"], np.where(x <= 0, GRADIENTS, np.float32(0)))


@pytest.mark.slow
@pytest.mark.ci
def test_bytes_come_in_and_go_out_as_such() -> None:
    large = digit(Compare(CompareOp.GT, Read(0, BYTE), Constant(127, BYTE)))
    program = masked(large, read="b", outputs=("y", "z", "t"))
    b = np.array([[255, 0, 128, 127, 200, 1], [1, 2, 130, 4, 5, 255]], np.uint8)
    network = simulate_one_wafer(program, {"b": b, "g": GRADIENTS}, samples=2, pes=16, check=True)
    assert network.check is not None and network.check.passed
    np.testing.assert_array_equal(network.outputs["t"], (b > 127).astype(np.uint8), strict=True)
    np.testing.assert_array_equal(network.outputs["y"], np.where(b > 127, np.float32(0), GRADIENTS))
    run = simulate_layers(program, {"b": b[0], "g": GRADIENTS}, check=True)
    assert all(layer.result is not None and layer.result.check.passed for layer in run.layers)
    with pytest.raises(PolyloomError, match="has type int16, not uint8"):
        simulate_one_wafer(program, {"b": b.astype(np.int16), "g": GRADIENTS}, samples=2, pes=16)


ANY_ALL = """
lair truth(): float16 x[4][6], float16 g[4] -> float16 y[4], float16 z[4]
{
  uint8 mask[4][6]
  uint8 some[4]
  uint8 every[4]
  all (i, j) in (4, 6)
    mask[i][j] = x[i][j] > 0 ? 1 : 0
  all (i, j) in (4, 6)
    some[i] max= mask[i][j]
  all (i, j) in (4, 6)
    every[i] min= mask[i][j]
  all (i) in (4)
    y[i] = some[i] != 0 ? g[i] : 0
  all (i) in (4)
    z[i] = every[i] != 0 ? g[i] : 0
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_whether_any_and_all_hold_on_the_wafer() -> None:
    x = np.array([[1] * 6, [0] * 6, [0, 0, 0, 0, 0, 1], [1, 1, 0, 1, 1, 1]], np.float16)
    g = np.array([1, 2, 3, 4], np.float16)
    program = read_program(ANY_ALL)
    changed = check_same(program, {"x": x, "g": g})
    assert all(changed.buffer(t).type is ElementType.INT16 for t in ("mask", "some", "every"))
    run = simulate_layers(program, {"x": x, "g": g}, check=True)
    assert run.fault() is None
    found = {n: a for result in run.results for n, a in result.outputs.items()}
    np.testing.assert_array_equal(found["y"], np.where(x.any(axis=1), g, 0))
    np.testing.assert_array_equal(found["z"], np.where(x.all(axis=1), g, 0))


@pytest.mark.parametrize(
    "written", ["some[2 * i]", "some[i + 1]"], ids=["every second element", "from the second on"]
)
def test_where_an_element_has_nothing_that_is_reduced_it_stays_a_byte(written: str) -> None:
    text = ANY_ALL.replace("some[i] max", f"{written} max").replace("uint8 some[4]", "uint8 some[8]")
    program = read_program(text)
    assert bytes_as_shorts(program).buffer("some").type is BYTE
