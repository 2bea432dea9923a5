"""Probes of what judges: references, comparisons, bounds, verification between passes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import c_probes
import numpy as np
import pytest
import test_passes
import test_references
import test_written_elements

from polyloom.diagnostics import PolyloomError
from polyloom.ir.verification.comparison import compared
from polyloom.ir.verification.passes import verified
from polyloom.oracle.c_reference import CReference


def references(name: str, which: str = "both") -> None:
    """Both references leave what gcc's function leaves; inputs stay as they are."""
    with tempfile.TemporaryDirectory(dir=os.environ["MUTANTS_FOLDER"]) as folder:
        found = test_references.loaded(c_probes.functions()[name], Path(folder)).reference
    assert isinstance(found, CReference)
    ways = {"compiled": found, "interpreted": found.interpreted}
    for n in (7, 2):
        wanted = c_probes.meant(name, n)
        for way in ways if which == "both" else [which]:
            given = c_probes.data(name, n)
            result = ways[way]({"n": n}, given)
            assert result.reading_checked is (way == "compiled")
            for array, before in c_probes.data(name, n).items():
                assert np.array_equal(given[array], before)
                assert np.array_equal(result.arrays.get(array, before), wanted[array]), (way, n, array)


def check_fails(name: str) -> None:
    """``--check`` passes for the right compiler, and fails for a broken one."""
    import test_check_sees_mutants  # looks for devices

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        test_check_sees_mutants.test_the_check_fails(name, Path(folder), patch)


def outside() -> None:
    """An access outside of an array is refused by the reference."""
    text = "void f(int n, int x[n], int y[n]) { for (int i = 0; i < n; i++) y[i] = x[x[i]]; }"
    with tempfile.TemporaryDirectory() as folder, pytest.raises(PolyloomError) as caught:
        test_references.run(text, Path(folder), {"n": 3}, x=np.array([0, 1, 3], "int32"))
    assert caught.value.diagnostics[0].code == "access-outside"


def outside_before() -> None:
    """So is one before its start by the interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        text = "void f(int n, int x[n], int y[n]) { for (int i = 0; i < n; i++) y[i] = x[x[i]]; }"
        found = test_references.loaded(text, Path(folder)).reference
    assert isinstance(found, CReference)
    given = {"x": np.array([0, 1, -1], "int32"), "y": np.zeros(3, "int32")}
    with pytest.raises(PolyloomError) as caught:
        found.interpreted({"n": 3}, given)
    assert caught.value.diagnostics[0].code == "access-outside"


def comparisons() -> None:
    """Each element by its own bound; NaN meets NaN only; an infinity the same one."""
    wanted = {"y": np.array([1.0, 100.0, np.nan, np.inf])}
    bounds = {"y": np.array([1e-3, 1e-3, 1e-3, 1e-3])}

    def passes(*values: float) -> bool:
        return compared({"y": np.array(values)}, wanted, bounds).passed

    assert passes(1.0005, 100, np.nan, np.inf)
    assert not passes(1.002, 100, np.nan, np.inf)
    assert not passes(1, 100, 3, np.inf)
    assert not passes(np.nan, 100, np.nan, np.inf)
    assert not passes(1, 100, np.nan, -np.inf)
    assert not passes(1, 100, np.nan, 7)
    assert not compared({"y": np.array([1, 2, 4])}, {"y": np.array([1, 2, 3])}, {}).passed


def passes_are_verified() -> None:
    """A broken program is named after its pass, and where writes are lost too."""
    with verified():
        for fault in test_passes.BROKEN:
            test_passes.test_the_pass_is_named(fault)
    with pytest.MonkeyPatch.context() as patch:
        test_passes.test_only_the_end_is_looked_at_otherwise(patch)


def writes_are_verified() -> None:
    """A pass that writes other elements is noticed, whichever."""
    for other in test_written_elements.OTHERS:
        test_written_elements.test_other_elements("a map", other)
    test_written_elements.test_the_message_names_an_element()
    test_written_elements.test_conditions_on_data_count_as_writes_and_computed_indices_as_any()
