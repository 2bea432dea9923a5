"""Probes of ``mdh/``: kernels under schedules, their costs, what is allowed, what a check lets pass."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import c_probes
import homs
import numpy as np
import pytest
from homs import ZOO, at_most, buffers_of, gemm, hom_of, matmul, turned

import polyloom
from polyloom.ir.verification.references import Expected
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.schedule.choice import default_schedule, one_kernel_schedule
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule
from polyloom.mdh.schedule.search_space import space_of
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import nodes_in


def default(name: str) -> None:
    """The model's schedule gives what the evaluator gives."""
    given, parameters = ZOO[name]
    homs.check(given, default_schedule(hom_of(given), given.by_name, homs.device().model), parameters)


def wild(name: str, seed: int) -> None:
    """So does one that no model would choose."""
    given, parameters = ZOO[name]
    homs.check(given, homs.wild_schedule(given, Random(seed)), parameters)


def copying(name: str = "matmul") -> None:
    """So do work-items that share copies."""
    given, parameters = ZOO[name]
    homs.check(given, homs.copying_schedule(given), parameters)


def shared(name: str, items: int = 4) -> None:
    """So do work-items that share the last reduction."""
    given, parameters = ZOO[name]
    homs.check(given, sharing(given, items), parameters)


def sharing(given: Any, items: int) -> Schedule:
    hom = hom_of(given)
    plain = plain_schedule(len(hom.extents), len(hom.inputs))
    return replace(plain, items=(*plain.items[:-1], items))


def compiled(name: str) -> None:
    """A C program on the device leaves what gcc's leaves."""
    folder = Path(os.environ["MUTANTS_FOLDER"])
    path = folder / f"{name}.c"
    path.write_text(c_probes.functions()[name])
    program = polyloom.compile(path, device="cpu")
    for n in c_probes.SIZES:
        arrays = c_probes.data(name, n)
        program(n=n, **arrays)
        for array, wanted in c_probes.meant(name, n).items():
            assert np.array_equal(arrays[array], wanted, equal_nan=True), (name, n, array)


def clean(what: str, *arguments: Any) -> None:
    """Oclgrind complains of nothing while another probe runs."""
    log = Path(os.environ["OCLGRIND_LOG"])
    before = log.stat().st_size if log.exists() else 0
    {"default": default, "wild": wild, "copying": copying, "shared": shared}[what](*arguments)
    complaints = log.read_text(errors="replace")[before:] if log.exists() else ""
    assert not complaints, complaints[:500]


# Schedules


GPU_UNITS = 100


def gpu() -> DeviceModel:
    model = homs.device().model
    return replace(
        model,
        kind=DeviceKind.GPU,
        lanes=32,
        compute_units=GPU_UNITS,
        vector_bytes=16,
        clock_mhz=1500,
        max_group_size=1024,
        local_memory=48 << 10,
    )


def more_groups_are_faster() -> None:
    """On a GPU whose units are idle otherwise."""
    given = matmul(1024, 1024, 64)
    space = space_of(hom_of(given), given, gpu())
    plain = replace(plain_schedule(3, 2), items=(8, 8, 1))
    few, many = replace(plain, group=(512, 512, 0)), replace(plain, group=(32, 32, 0))
    assert space.predicted(many) * 4 < space.predicted(few)


def neighbours_are_faster() -> None:
    """On a GPU: work-items that read neighbouring elements before those that read columns."""
    given = matmul(1024, 1024, 64)
    space = space_of(hom_of(given), given, gpu())
    along = replace(plain_schedule(3, 2), items=(1, 64, 1), group=(8, 64, 0), strided=(False, True, False))
    across = replace(along, items=(64, 1, 1), group=(64, 8, 0), strided=(True, False, False))
    assert space.predicted(along) < space.predicted(across)


def spills_are_slower() -> None:
    """A register tile that does not fit is dearer for each of its results."""
    given = matmul(1024, 1024, 1024)
    model = replace(homs.device().model, vector_bytes=32)
    space = space_of(hom_of(given), given, model)
    plain = replace(plain_schedule(3, 2), vector=1, width=8, unrolled_order=(2, 0, 1))
    fits, spills = replace(plain, private=(4, 2, 1)), replace(plain, private=(16, 4, 1))
    assert space.predicted(fits) < space.predicted(spills)


def memory_takes_time() -> None:
    """The same schedule takes longer where caches hold a thousandth."""
    given = matmul(1024, 1024, 1024)
    model = homs.device().model
    small = replace(model, caches=tuple(size // 1024 for size in model.caches))
    plain = plain_schedule(3, 2)
    large, little = (space_of(hom_of(given), given, m).predicted(plain) for m in (model, small))
    assert large < little


def more_items_are_faster() -> None:
    """On a GPU: groups of many work-items hide what each of them waits for."""
    given = matmul(1024, 1024, 64)
    space = space_of(hom_of(given), given, gpu())
    few = replace(plain_schedule(3, 2), items=(4, 8, 1), group=(128, 64, 0))
    assert space.predicted(replace(few, items=(16, 16, 1))) * 2 < space.predicted(few)


def reasons(given: Any, schedule: Schedule) -> str:
    return "; ".join(problems(TileFacts(hom_of(given), schedule), buffers_of(given), homs.device().model))


def legal() -> None:
    """What may not be has its reason; what would be wrong is not allowed."""
    plain = plain_schedule(3, 4)
    triangle = gemm(13, 18, 21, guard=at_most("k", "i"))
    assert "guard" in reasons(triangle, replace(plain, vector=2, width=4))
    assert "guard" not in reasons(triangle, replace(plain, vector=1, width=4))
    assert "lie apart" in reasons(
        gemm(13, 18, 21), replace(plain, vector=1, width=4, strided=(False, True, False))
    )
    assert "no multiple" in reasons(gemm(13, 18, 21), replace(plain, group=(5, 0, 0), private=(2, 1, 1)))
    record, two = homs.best_record(9, 41, commutative=False), plain_schedule(2, 1)
    assert "does not commute" in reasons(record, replace(two, vector=1, width=4))
    assert "does not commute" in reasons(record, replace(two, items=(1, 4), local=(0, 8)))
    assert not reasons(record, replace(two, items=(1, 4)))
    nothing = homs.row_maximum(7, 45, homs.ElementType.INT32, None)
    guarded = replace(nothing, body=(replace(hom_of(nothing), guard=at_most("k", "i")),))
    assert "no neutral element" in reasons(guarded, replace(plain_schedule(2, 1), group=(0, 9)))


def turned_copy() -> None:
    """A copy of an array that is read backwards and by a stride."""
    given = turned(11, 18)
    schedule = homs.copying_schedule(given)
    assert not reasons(given, schedule)
    homs.check(given, schedule, {})


# Checks


def verdict_of(body: str, change: Any, **inputs: Any) -> bool:
    import test_verdict

    return test_verdict.verdict(test_verdict.program(body), inputs, change).passed


def judged() -> None:
    """``run --check`` lets rounding pass, and neither wrong signs nor NaN nor one element that is off."""
    import test_verdict

    given = test_verdict.with_one_large()
    n = np.arange(test_verdict.N)
    assert verdict_of(test_verdict.QUOTIENTS, lambda y: np.nextafter(y, 0), **given)
    assert not verdict_of(test_verdict.QUOTIENTS, lambda y: np.where(n > 0, -y, y), **given)
    assert not verdict_of(test_verdict.QUOTIENTS, lambda y: np.where(n == 17, np.nan, y), **given)
    assert not verdict_of(
        test_verdict.QUOTIENTS, lambda y: np.where(n == 999, y * np.float32(1 + 1e-5), y), **given
    )
    assert not verdict_of(test_verdict.DOT, lambda y: 0 * y, a=test_verdict.reals(1), b=test_verdict.reals(2))
    test_verdict.test_twice_the_bound_where_a_reference_takes_other_ways()


def exact() -> None:
    """Of small integers nothing may differ, where no operation rounds."""
    import test_verdict

    from polyloom.ir.verification.host_results import check_run

    made = test_verdict.program("for (int i = 0; i < n; i++) y[i] = a[i] * 3 + b[i];")
    a = np.arange(8, dtype=np.float32)
    given, right = {"a": a, "b": a}, a * 4
    off = np.where(a == 3, np.nextafter(right, 99), right)
    for found, passes in ((right, True), (off, False)):
        expected = Expected({"y": right}, "this test", True)
        assert check_run(made, {"n": 8}, given, expected, {"y": found}, made_up=True).passed is passes


def checked(name: str) -> None:
    """A candidate whose results are wrong is rejected."""
    import tempfile

    import test_checking

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if name == "large":
            test_checking.test_a_large_one_is_sampled_and_then_compared_with_the_first_right_one(
                Path(folder), patch
            )
        elif name == "own bound":
            test_checking.test_a_small_element_beside_a_large_one_has_its_own_bound(
                Path(folder), patch, large=False
            )
        else:
            test_checking.test_a_small_md_hom_is_compared_whole(Path(folder))


def histogram() -> None:
    """In chunks, with bins for each of them."""
    import test_chunks

    given = test_chunks.histogram(16411, 7)
    assert test_chunks.kernels(given) == 3
    arrays = homs.made_up(given, {}, 0)
    arrays["place"] = np.abs(arrays["place"]) % 7
    found = homs.run_on_device(given, None, {}, arrays)
    np.testing.assert_array_equal(found["h"], arrays["h"] + np.bincount(arrays["place"], minlength=7))


def keys() -> None:
    """What was tuned for one device, md_hom or size is not taken for another."""
    import test_signature

    from polyloom.mdh.schedule.signature import key_of
    from polyloom.polyhedra.loops.tree import Number

    hom, buffers = test_signature.matmul(Number(8), 9, 10)
    other = test_signature.matmul(Number(9), 9, 10)
    assert len({key_of(hom, buffers, "a"), key_of(hom, buffers, "b"), key_of(hom, buffers, "a", "-O0")}) == 3
    assert key_of(hom, buffers, "a") != key_of(*other, "a")


def extents() -> None:
    """An extent ``2 * n`` of an array of odd length gives no ``n``."""
    import test_arguments

    from polyloom.ir.host import Role
    from polyloom.mdh.runtime.arguments import Signature
    from polyloom.polyhedra.loops.tree import Number, Operation

    twice = Operation("*", (Number(2), test_arguments.N))
    signature = Signature(test_arguments.program(("x", (twice,), Role.INPUT)), ())
    assert test_arguments.codes(signature, x=test_arguments.array(7), m=1) == ["parameter-missing"]


def loops_are_fused_where_that_gains() -> None:
    """A host loop of tiny launches becomes one node; one of large launches stays."""
    from polyloom.ir.host import Loop
    from polyloom.ir.transform.specialise import specialise
    from polyloom.mdh.lowering.loop_fusion import with_fused_loops

    (program,) = c_probes.hosts("in_turn", "detect")
    for n, loops in ((10, 0), (10_000_000, 1)):
        fused = with_fused_loops(specialise(program, {"n": n}), homs.device().model)
        assert sum(isinstance(node, Loop) for node in nodes_in(fused.body)) == loops


def launched_again() -> None:
    """A kernel inside a host loop gets the iterator's value each time: ``y[k] = 7``."""
    from polyloom.ir.expressions import Constant
    from polyloom.ir.host import Index, Loop, MdHom, Role, View
    from polyloom.polyhedra.loops.tree import Name, Number, Operation

    kind, place = homs.ElementType.INT32, View("y", (Index((0,), Name("k")),))
    seven = (Constant(7, kind),)
    node = MdHom(
        name="set",
        iterators=("i",),
        extents=(Number(1),),
        inputs=(),
        outputs=(place,),
        terms=seven,
        combine=(homs.KEEP,),
        initial=(None,),
        finish=(None,),
    )
    loop = Loop(
        iterator="k",
        start=Number(0),
        condition=Operation("<", (Name("k"), Number(5))),
        step=Number(1),
        body=(node,),
    )
    program = replace(homs.program(node, homs.buffer("y", kind, (5,), Role.OUTPUT)), body=(loop,))
    prepared = homs.prepare(
        program,
        {},
        homs.device(),
        lambda n, p, d: homs.emit_md_hom(n, p, d, None, one_kernel_schedule),
        fuse=False,
    )
    assert (homs.run_program(prepared, program, {"y": np.zeros(5, "int32")})["y"] == 7).all()
