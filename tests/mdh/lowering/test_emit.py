"""The OpenCL generator: every md_hom under every schedule does what the evaluator does, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from homs import (
    F32,
    KINDS,
    ZOO,
    at_most,
    best_record,
    check,
    convolution,
    device,
    dot,
    gemm,
    hom_of,
    matmul,
    reduce_by,
    row_maximum,
    shifted,
    stencil,
    wild_schedule,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from polyloom.ir.expressions import BinaryOp
from polyloom.ir.integers import fold
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.iterator_names import distinct_iterators
from polyloom.mdh.lowering.lower import emit_md_hom
from polyloom.mdh.schedule.choice import default_schedule, one_kernel_schedule
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule, plain_schedule
from polyloom.polyhedra.loops.tree import Number
from random_tests import tried
from samples import LATER, one_in

FOLDER = Path(__file__).parents[1] / "golden"
PLAIN = plain_schedule(3, 2)
BLOCKED = replace(
    PLAIN,
    group=(0, 32, 0),
    local=(0, 16, 0),
    private=(3, 2, 2),
    vector=1,
    width=8,
    unrolled_order=(2, 0, 1),
    inputs=(Caching(), Caching(Memory.LOCAL, panel=True)),
)
WAITING = replace(PLAIN, local=(0, 0, 5), private=(2, 1, 2), vector=1, width=4)
SHARED = replace(PLAIN, group=(6, 0, 7), items=(2, 1, 2), private=(3, 1, 1), strided=(True, False, False))
ALONG_THE_SUM = replace(PLAIN, vector=2, width=4, private=(2, 3, 2))


@pytest.mark.parametrize("name", one_in(5, ZOO))
def test_the_default_schedule_is_right(name: str) -> None:
    program, parameters = ZOO[name]
    check(program, default_schedule(hom_of(program), program.by_name, device().model), parameters)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", one_in(9, ZOO, start=1))
def test_wild_schedules_are_right(name: str) -> None:
    program, parameters = ZOO[name]
    check(program, wild_schedule(program, Random(1)), parameters)


@pytest.mark.slow
@pytest.mark.ci
def test_vectors_of_halves_at_any_address() -> None:
    given = row_maximum(24, 18, ElementType.FLOAT16, None)
    plain = plain_schedule(2, 1)
    check(given, replace(plain, private=(12, 1), vector=1, width=16), {})
    check(given, replace(plain, private=(5, 1), vector=1, width=16, inputs=(Caching(Memory.LOCAL),)), {})
    given = shifted(7, 40, ElementType.FLOAT16)
    for width in (2, 4, 8, 16):
        check(given, replace(plain, vector=1, width=width), {})


TURNED = Caching(Memory.LOCAL, (1, 2, 3, 0))
TURNINGS: dict[str, Any] = {
    "whole": {"inputs": (Caching(), TURNED)},
    "in panels": {"inputs": (Caching(), replace(TURNED, panel=True))},
    "padded rows": {"inputs": (Caching(), replace(TURNED, padding=3))},
    "both": {"inputs": (Caching(Memory.LOCAL, (0, 2, 1)), TURNED)},
    "a part of the channels": {"inputs": (Caching(), TURNED), "local": (0, 0, 8, 0, 0, 6)},
    "a part of the filter": {"inputs": (Caching(), TURNED), "local": (0, 0, 8, 0, 2, 0)},
}


OTHERS = [pytest.param(kind, marks=LATER) for kind in (ElementType.FLOAT64, ElementType.INT8)]


@pytest.mark.parametrize("kind", [F32, *OTHERS], ids=lambda kind: kind.value)
@pytest.mark.parametrize("turning", TURNINGS)
def test_copies_that_turn_an_array(turning: str, kind: ElementType) -> None:
    plain = replace(plain_schedule(6, 2), vector=2, width=4, private=(1, 2, 1, 1, 1, 1))
    check(convolution(4, 5, 11, 7, 3, 3, kind), replace(plain, **TURNINGS[turning]), {})


@pytest.mark.parametrize(
    ("schedule", "kind"),
    [
        pytest.param(schedule, kind, marks=LATER if (k + 2 * i) % 4 else (), id=f"{name}-{kind.value}")
        for i, (name, schedule) in enumerate((("blocked", BLOCKED), ("vectors", ALONG_THE_SUM)))
        for k, kind in enumerate(KINDS)
    ],
)
def test_every_type(kind: ElementType, schedule: object) -> None:
    check(matmul(7, 19, 11, kind), schedule, {})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [F32, pytest.param(ElementType.INT32, marks=LATER)])
@pytest.mark.parametrize(
    ("op", "neutral"),
    [
        (BinaryOp.MAXIMUM, None),
        (BinaryOp.MINIMUM, None),
        (BinaryOp.MULTIPLY, 1),
        (BinaryOp.FMAX, None),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@pytest.mark.parametrize("schedule", one_in(3, [SHARED, ALONG_THE_SUM, WAITING]))
def test_every_operator(
    schedule: Schedule, kind: ElementType, op: BinaryFunction, neutral: int | None
) -> None:
    check(matmul(7, 19, 5, kind, reduce_by(op, kind, neutral)), schedule, {})


@pytest.mark.parametrize("op", [BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR], ids=lambda op: op.name)
def test_bits_are_combined(op: BinaryFunction) -> None:
    kind = ElementType.UINT16
    neutral = 65535 if op is BinaryOp.BIT_AND else 0
    check(matmul(7, 19, 5, kind, reduce_by(op, kind, neutral)), ALONG_THE_SUM, {})


@pytest.mark.parametrize("size", one_in(2, [1, 3, 7, 16, 33]))
def test_sizes_that_do_not_divide(size: int) -> None:
    check(matmul(size, size, size), BLOCKED, {})
    symbolic = replace(BLOCKED, inputs=(Caching(), Caching()))
    check(matmul("M", "N", "K"), symbolic, {"M": size, "N": size, "K": size})


def test_nothing_to_compute_leaves_everything() -> None:
    check(matmul("M", "N", "K"), replace(WAITING, local=(0, 0, 0)), {"M": 0, "N": 4, "K": 3})


def test_an_empty_sum_is_zero() -> None:
    check(matmul("M", "N", "K"), replace(WAITING, local=(0, 0, 0)), {"M": 3, "N": 4, "K": 0})


@pytest.mark.slow
@pytest.mark.ci
def test_groups_and_items_share_a_reduction_of_a_tuple() -> None:
    plain = plain_schedule(2, 1)
    program = best_record(5, 97)
    check(program, replace(plain, group=(0, 16)), {})
    check(program, replace(plain, items=(1, 8)), {})
    check(program, replace(plain, group=(0, 32), items=(1, 4), private=(2, 3)), {})
    check(program, replace(plain, vector=1, width=8), {})
    check(best_record(5, 97, commutative=False), replace(plain, group=(0, 16), items=(1, 3)), {})


@pytest.mark.slow
@pytest.mark.ci
def test_groups_that_share_a_reduction_let_their_totals_wait_apart() -> None:
    program = matmul(12, 8, 32)
    schedule = replace(PLAIN, group=(0, 0, 16), local=(12, 0, 8), private=(4, 2, 1), vector=1, width=4)
    launch = emit_md_hom(hom_of(program), program, device().model, schedule, one_kernel_schedule)
    counts = {t.name: fold(t.count, {}) for t in launch.temporaries}
    assert counts == {"partial_0": Number(2 * 12 * 8)}
    assert "__local float total_waiting[12][8]" in launch.kernels[0].source
    check(program, schedule, {})
    check(matmul(256, 128, 128), replace(schedule, group=(0, 0, 32), local=(64, 0, 8)), {})


def test_totals_that_wait_are_neighbours_where_vectors_hold_them() -> None:
    program = matmul(12, 8, 32)
    schedule = replace(PLAIN, local=(0, 0, 8), private=(1, 2, 1), vector=0, width=4)
    launch = emit_md_hom(hom_of(program), program, device().model, schedule, one_kernel_schedule)
    assert "__local float total_waiting[8][12]" in launch.kernels[0].source
    check(program, schedule, {})


@pytest.mark.slow
@pytest.mark.ci
def test_a_reduction_to_one_number_is_shared() -> None:
    plain = plain_schedule(1, 2)
    check(dot(100003), replace(plain, group=(4096,), vector=0, width=16, private=(4,)), {})
    check(dot("N"), replace(plain, group=(64,), items=(16,)), {"N": 1000})


@settings(max_examples=8, deadline=None, derandomize=True)
@given(name=st.sampled_from(sorted(ZOO)), seed=st.integers(0, 10**6))
@pytest.mark.slow
@pytest.mark.ci
def test_random_schedules(name: str, seed: int) -> None:
    program, parameters = ZOO[name]
    check(program, wild_schedule(program, Random(seed)), parameters, seed)


@pytest.mark.slow
@tried(400)
@given(name=st.sampled_from(sorted(ZOO)), seed=st.integers(0, 10**9))
def test_many_random_schedules(name: str, seed: int) -> None:
    program, parameters = ZOO[name]
    check(program, wild_schedule(program, Random(seed)), parameters, seed)


@pytest.mark.parametrize("name", ["matmul", "stencil"])
def test_kernels_read_well(name: str, golden: Callable[[Path, str], None]) -> None:
    if name == "matmul":
        program, schedule = (
            matmul(64, 64, 64),
            replace(BLOCKED, private=(2, 2, 1), width=16, local=(0, 32, 0)),
        )
        schedule = replace(schedule, group=(0, 32, 0), inputs=(Caching(), Caching(Memory.LOCAL)))
    else:
        program = stencil(30, 60, 3, 3)
        schedule = replace(
            plain_schedule(4, 2), private=(2, 1, 3, 3), vector=1, width=8, follow=0, group=(8, 0, 0, 0)
        )
    launch = emit_md_hom(hom_of(program), program, device().model, schedule, one_kernel_schedule)
    golden(FOLDER / f"{name}.cl", launch.kernels[0].source)
    check(program, schedule, {})


def test_iterators_that_are_called_as_buffers_get_names_of_their_own() -> None:
    """The new name of one is not taken for that of another, in the guard neither."""
    program = gemm(13, 18, 21, guard=at_most("k", "i"))
    hom = replace(hom_of(program), iterators=("i", "j", "i_1"), guard=at_most("i_1", "i"))
    buffers = {**program.by_name, "i": program.buffers[0]}
    found = distinct_iterators(hom, buffers)
    assert found.iterators == ("i_2", "j", "i_1") and found.guard == at_most("i_1", "i_2")
