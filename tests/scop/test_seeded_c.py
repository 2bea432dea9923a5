"""C programs, each made of a number (``seeded_c``): they mean what gcc makes of them.

``pytest -k fresh -s`` prints the numbers; ``seeded_c.program(seed).text`` is the program of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import SystemRandom

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.scop.transform import ReductionMode, Transformation, host_program, serial_program
from samples import one_in
from seeded_c import OUTSIDE, SeededProgram, meanings, program


def differences(case: SeededProgram, host: HostProgram, expected: dict[str, np.ndarray]) -> list[str]:
    """Return the arrays and scalars that the host program leaves with other values."""
    verify(host)
    integers = {**case.sizes, **OUTSIDE}
    special = specialise(host, {p.name: integers[p.name] for p in host.parameters})
    verify(special)
    given = {**case.arrays, **{name: np.array(value, "int32") for name, value in OUTSIDE.items()}}
    found = evaluate_host(special, {}, {b.name: given[b.name] for b in special.given})
    left = {**given, **found}
    return [name for name, values in expected.items() if not np.array_equal(left[name], values)]


def wrong_writes(found: Transformation) -> list[str]:
    """Return why a part was run sequentially, where a pass wrote other elements."""
    notes = [note for remark in found.remarks if remark.code == "scop-fallback" for note in remark.notes]
    return [note for note in notes if "elements" in note]


def check(cases: Sequence[SeededProgram], modes: Iterable[ReductionMode], folder: Path) -> None:
    """Every program, sequentially and in every mode, leaves what it leaves in C."""
    wrong = []
    for case, expected in zip(cases, meanings(cases, folder), strict=True):
        (scop,) = read_c(Source(f"{case.name}.c", case.text))
        found = {mode.value: host_program(scop, mode) for mode in modes}
        hosts = {name: transformation.program for name, transformation in found.items()}
        wrong += [f"{name}: {fault}\n{case.text}" for name, t in found.items() for fault in wrong_writes(t)]
        for name, host in {"serial": serial_program(scop), **hosts}.items():
            faults = differences(case, host, expected)
            wrong += [f"{name}: {', '.join(faults)}\n{case.text}"] if faults else []
    assert wrong == []


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("first", one_in(2, range(0, 50, 10)))
def test_small_ones(first: int, tmp_path: Path) -> None:
    cases = [program(seed, most=1) for seed in range(first, first + 10)]
    check(cases, [ReductionMode.DETECT], tmp_path)


@pytest.mark.parametrize("first", one_in(2, range(0, 20, 10)))
@pytest.mark.slow
@pytest.mark.ci
def test_loops_tiled_by_hand(first: int, tmp_path: Path) -> None:
    cases = [program(seed, most=2, tiled=True) for seed in range(first, first + 10)]
    check(cases, [ReductionMode.DETECT], tmp_path)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("first", one_in(2, range(0, 40, 10)))
def test_known_sizes(first: int, tmp_path: Path) -> None:
    cases = [program(seed, most=2, known=True) for seed in range(first, first + 10)]
    check(cases, [ReductionMode.DETECT], tmp_path)


@pytest.mark.parametrize("seed", [451055128, 451055160, 451055023, 451055121])
def test_known_sizes_that_failed_once(seed: int, tmp_path: Path) -> None:
    """A selection of one term; blocks inside a loop, whose iterators the loop's range was told of."""
    check([program(seed, tiled=seed == 451055023, known=True)], [ReductionMode.DETECT], tmp_path)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("part", range(4))
def test_fresh(part: int, tmp_path: Path) -> None:
    first = SystemRandom().randrange(1_000_000_000)
    print(f"programs {first} to {first + 11}")
    cases = [program(first + k, tiled=bool(part % 2), known=part >= 2) for k in range(12)]
    check(cases, ReductionMode, tmp_path)
