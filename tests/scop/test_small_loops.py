"""The small loops of benchmarks: how each runs, and that its results are those of the C compiler."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import small_loops as small
from forms import run

import polyloom
from polyloom.report.forms_view import form
from polyloom.scop.transform import Transformation
from samples import LATER, one_in

KINDS = Path(__file__).parent / "small_loops.txt"
REFUSED = {"given_step", "strided_by"}
NAMES = [name for name in small.small_loops() if name not in REFUSED]
SIZE = 40


@cache
def transformed(name: str) -> Transformation:
    return small.transformed(small.small_loops()[name])


def line(name: str) -> str:
    found = transformed(name)
    return f"{name}: {small.kind(found)}: {form(found.program)}"


@pytest.mark.slow
@pytest.mark.ci
def test_some_kinds_are_the_known_ones() -> None:
    known = KINDS.read_text().splitlines()
    assert [found for name in NAMES[::9] if (found := line(name)) not in known] == []


@pytest.mark.slow
@pytest.mark.ci
def test_the_kinds_are_the_known_ones(golden: Callable[[Path, str], None]) -> None:
    golden(KINDS, "".join(f"{line(name)}\n" for name in NAMES))


@pytest.mark.parametrize("name", one_in(9, [(name,) for name in NAMES], name=lambda case: case[0]))
def test_results_are_those_of_the_c_compiler(name: tuple[str]) -> None:
    loop, program = small.small_loops()[name[0]], transformed(name[0]).program
    for whole in (False, True):
        given = small.values(loop, SIZE, "double", whole=whole)
        wanted = small.wanted_by_c(loop, given, "double", small.PLAIN)
        shaped = {n: _as_taken(v, program, n) for n, v in given.items()}
        left = {n: np.reshape(v, np.shape(given[n])) for n, v in run(program, shaped).items() if n in given}
        assert small.wrong({**given, **left}, wanted, "double") == []


def _as_taken(value: object, program: polyloom.ir.host.HostProgram, name: str) -> object:
    """Return an array as the matrix that the program takes it for."""
    buffer = program.by_name.get(name)
    if not isinstance(value, np.ndarray) or buffer is None or len(buffer.shape) == value.ndim:
        return value
    return value.reshape(int(value.size**0.5), -1)


@pytest.mark.parametrize("name", [pytest.param(name, marks=LATER) for name in NAMES])
def test_results_on_the_processor_are_those_of_the_c_compiler(name: str) -> None:
    loop = small.small_loops()[name]
    assert small.checked(loop, small.compiled(loop, 1000, "double", 2), 1000, "double") == "right"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_where(name: str) -> None:
    with pytest.raises(polyloom.PolyloomError) as caught:
        transformed(name)
    assert all(d.span is not None for d in caught.value.diagnostics)
