"""Scans and histograms in chunks: three kernels each, exactly what the evaluator gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from homs import KEEP, at, binary, buffer, check, device, hom_of, made_up, program, read, sums

from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import BinaryOp, Constant, Convert, Iterator
from polyloom.ir.host import CombineOperator, Combiner, HostProgram, MdHom, Order, Role, View
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.chunked_scans import with_own_bins
from polyloom.mdh.lowering.lower import emit_md_hom
from polyloom.mdh.native.device import choose
from polyloom.mdh.schedule.choice import one_kernel_schedule
from polyloom.polyhedra.loops.tree import Name, Number, Operation

INT = ElementType.INT32


def prefix(op: BinaryFunction, kind: ElementType, neutral: float | None) -> CombineOperator:
    combiner = Combiner(name=op.name, results=(binary(op, read(0, kind), read(1, kind)),), neutral=(neutral,))
    return CombineOperator(Order.PREFIX, combiner)


def scan(
    n: int,
    kind: ElementType = INT,
    op: BinaryFunction = BinaryOp.ADD,
    neutral: float | None = 0,
    started: bool = False,
    **more: Any,
) -> HostProgram:
    """``y[i] = x[0] op .. op x[i] + i % 3``, from ``s`` and doubled where it is ``started``."""
    step = Convert(kind, binary(BinaryOp.REMAINDER, Iterator(0, INT), Constant(3, INT)))
    term = binary(BinaryOp.ADD, read(0, kind), step)
    given: dict[str, Any] = {"initial": (None,), "finish": (None,), **more}
    if started:
        doubled = binary(BinaryOp.MULTIPLY, read(2, kind), Constant(2, kind))
        given |= {"initial": (read(1, kind),), "finish": (doubled,)}
    inputs = (View("x", (at(1),)), View("s", ()))
    output = View("y", (at(1),))
    combine = (prefix(op, kind, neutral),)
    hom = MdHom(
        name="scan",
        iterators=("i",),
        extents=(Number(n),),
        inputs=inputs,
        outputs=(output,),
        terms=(term,),
        combine=combine,
        **given,
    )
    shapes = buffer("x", kind, (n,)), buffer("s", kind, ()), buffer("y", kind, (n,), Role.UPDATED)
    return program(hom, *shapes)


def histogram(n: int, bins: int, kind: ElementType = INT) -> HostProgram:
    """``h[place[i]] += 1``."""
    element = View("h", (read(0, INT),))
    inputs, combine, extents = (View("place", (at(1),)), element), (sums(kind),), (Number(n),)
    hom = MdHom(
        name="histogram",
        iterators=("i",),
        extents=extents,
        inputs=inputs,
        outputs=(element,),
        terms=(Constant(1, kind),),
        combine=combine,
        initial=(read(1, kind),),
        finish=(None,),
    )
    return program(hom, buffer("place", INT, (n,)), buffer("h", kind, (bins,), Role.UPDATED))


def kernels(given: HostProgram) -> int:
    return len(emit_md_hom(hom_of(given), given, device().model, None, one_kernel_schedule).kernels)


@pytest.mark.parametrize("n", [16384, 16411, 20001])
@pytest.mark.parametrize("started", [False, True])
def test_a_scan_runs_in_chunks(n: int, started: bool) -> None:
    given = scan(n, started=started)
    assert kernels(given) == 3
    check(given, None, {})


def test_a_scan_of_another_operator() -> None:
    given = scan(16400, ElementType.INT64, BinaryOp.MAXIMUM, -(2**63), started=True)
    assert kernels(given) == 3
    check(given, None, {})


def test_points_that_do_not_count_and_results_that_are_not_stored() -> None:
    odd = Operation("==", (Operation("%", (Name("i"), Number(2))), Number(1)))
    late = Operation(">", (Name("i"), Number(5000)))
    given = scan(16400, guard=odd, written=late)
    assert kernels(given) == 3
    check(given, None, {})


def test_scans_of_several_rows() -> None:
    kind, operator = INT, prefix(BinaryOp.ADD, INT, 0)
    x, y = View("x", (at(0, 1), at(1, 0))), View("y", (at(1, 0), at(0, 1)))
    hom = MdHom(
        name="rows",
        iterators=("i", "r"),
        extents=(Number(8000), Number(3)),
        inputs=(x,),
        outputs=(y,),
        terms=(read(0, kind),),
        combine=(operator, KEEP),
        initial=(None,),
        finish=(None,),
    )
    given = program(hom, buffer("x", kind, (3, 8000)), buffer("y", kind, (8000, 3), Role.OUTPUT))
    assert kernels(given) == 3
    check(given, None, {})


@pytest.mark.parametrize("kind", [INT, ElementType.FLOAT32, ElementType.UINT8], ids=lambda kind: kind.value)
def test_a_histogram_has_bins_for_each_chunk(kind: ElementType) -> None:
    given = histogram(20011, 7, kind)
    assert kernels(given) == 3
    check(given, None, {})


@pytest.mark.parametrize("n", [0, 5, 4097, 70001])
def test_chunks_of_an_open_size_take_turns(n: int) -> None:
    known = histogram(n, 7)
    place, bins = known.buffers
    hom = replace(hom_of(known), extents=(Name("n"),))
    given = program(hom, replace(place, shape=(Name("n"),)), bins)
    model = choose("native", threads=4)
    found = with_own_bins(given, model, of_many=True)
    assert len(found.body) == 3 and with_own_bins(given, model) is given
    arrays = made_up(known, {}, 0)
    wanted = evaluate_host(given, {"n": n}, arrays)["h"]
    np.testing.assert_array_equal(evaluate_host(found, {"n": n}, arrays)["h"], wanted)


def test_equal_histograms_stay_equal() -> None:
    (hom,) = histogram(20011, 7).body
    given = replace(histogram(20011, 7), body=(hom, hom))
    found = with_own_bins(given, choose("native", threads=4))
    assert len(found.body) == 6 and found.body[:3] == found.body[3:]


def test_short_or_unfit_ones_are_plain() -> None:
    assert kernels(scan(100)) == 1
    assert kernels(scan(16400, INT, BinaryOp.MAXIMUM, None)) == 1
    assert kernels(histogram(500, 7)) == 1
    assert kernels(histogram(20011, 100000)) == 1
    check(scan(100), None, {})
