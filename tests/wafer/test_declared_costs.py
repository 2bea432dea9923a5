"""The scalar work that emitted C declares: loads, stores and branches are counted as they happen."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from layers import random_layer
from outcomes import MODES, REFUSED, outcome
from tests.wafer.simulator.simulated import CS2, INSTRUCTIONS, ONE_PE, role_text

from polyloom.wafer.simulation import run
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric
from samples import one_in


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("seed", one_in(12, range(24)))
def test_no_task_does_more_than_it_declares(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "build_program", partial(build_program, counted=True))
    modes = (MODES[0], MODES[1 + seed % 4])
    assert outcome(random_layer(seed), modes, lambda *_: None) in {"right", *REFUSED}


FORGOTTEN = {
    "loads": "cost(.stores = 1, .branches = 1)",
    "stores": "cost(.loads = 1, .branches = 1)",
    "branches": "cost(.loads = 1, .stores = 1)",
}


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("what", list(FORGOTTEN))
def test_what_is_not_declared_is_found(what: str) -> None:
    """A block loads an element once, however often it names it; work that is forgotten is an error."""
    body = "%s; if (load(M.a[0]) + load(M.a[0]) == 0) store(M.a[1], (half)1);"
    text = """static void begin(void) { BODY } static void main(void) { array(M.a); activate(begin); }"""
    for cost, right in ((FORGOTTEN[what], False), ("cost(.loads = 1, .stores = 1, .branches = 1)", True)):
        role = role_text("half a[2];", text.replace("BODY", body % cost), tasks="LOCAL(begin)")
        binary = build_program({"P.c": role, "layout.c": ONE_PE}, INSTRUCTIONS, counted=True)
        with Fabric(binary, CS2, 1, 1) as simulation:
            simulation.load([0], [0], 0, np.zeros((1, 4), np.uint8), np.ones((1, 2), np.bool_), 2)
            error = simulation.run().error
        assert right == (error is None)
        if error is not None:
            assert error.kind == "cost"
            assert error.message == f"task begin did 1 {what}, its cost() declares 0"
