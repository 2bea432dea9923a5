"""One kernel of each kind: its form, and that it means what the C compiler makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from forms import KERNELS, made_up, run, transformed

from compiled_c import compiled
from polyloom.report.forms_view import form
from polyloom.scop.transform import ReductionMode
from samples import one_in

NAMES = sorted(path.stem for path in KERNELS.glob("*.c"))
SIZES = ((1, 1, 1), (2, 3, 4), (5, 4, 3), (7, 7, 7))


def source(name: str) -> str:
    return (KERNELS / f"{name}.c").read_text()


def arguments(text: str) -> list[str]:
    """Return the names of the function's parameters, in order."""
    (inside,) = re.findall(r"kernel\((.*?)\)\s*\{", text, re.DOTALL)
    return [re.search(r"(\w+)\s*(\[|$)", part.strip())[1] for part in re.split(r",(?![^\[]*\])", inside)]  # type: ignore[index]


QUICK = NAMES[::2]
"""Every other kernel; the whole is for later."""


@pytest.mark.slow
@pytest.mark.ci
def test_some_forms_are_the_known_ones() -> None:
    known = (KERNELS / "forms.txt").read_text().splitlines()
    assert [f for name in QUICK if (f := f"{name}: {form(transformed(source(name)))}") not in known] == []


@pytest.mark.slow
@pytest.mark.ci
def test_the_forms_are_the_known_ones(golden: Callable[[Path, str], None]) -> None:
    golden(KERNELS / "forms.txt", "".join(f"{name}: {form(transformed(source(name)))}\n" for name in NAMES))


@pytest.mark.parametrize("name", one_in(2, NAMES))
def test_it_computes_what_c_computes(name: str, tmp_path: Path) -> None:
    text = source(name)
    function = compiled(text, "kernel", tmp_path)
    names = arguments(text)
    programs = [transformed(text, mode) for mode in (ReductionMode.DETECT, ReductionMode.IGNORE)]
    integers = [p.name for p in programs[0].parameters]
    for seed, sizes in enumerate(SIZES):
        values = made_up(programs[0], dict(zip(integers, (*sizes, 2), strict=False)), seed)
        expected = function({name: values[name] for name in names})
        for program in programs:
            for array, found in run(program, values).items():
                message = f"{name} {sizes} {array}"
                np.testing.assert_allclose(found, expected[array], rtol=1e-9, err_msg=message)


def test_nothing_enumerates_points() -> None:
    """Sizes so large that counting points would not end."""
    text = source("product_chain").replace("int k, ", "").replace("[k]", "[1000000000]")
    assert form(transformed(text.replace("p < k", "p < 1000000000"))) == "(++, ++, +); (++, ++, +)"
