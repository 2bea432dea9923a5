"""The verdict of ``--check``: exact for made-up inputs, within the bound for given ones, with states."""

from __future__ import annotations

import numpy as np
import pytest

from polyloom import read_mapping, read_program
from polyloom.wafer.check import check_outputs

SCALE = read_program(
    "lair scale(): float16 W[1], float16 x[1] -> float16 W1[1] { all (i) in (1) W1[i] = W[i] * x[i] }"
)
MAP = read_mapping(
    """size: { PE[1, 1] }
    compute_map: { scale[i] -> PE[0, 0] }
    iport_map: { x[i] -> [PE[0, -1] -> index[0]] }
    state: W = W1""",
    SCALE,
)
ULP = float(np.finfo(np.float16).eps)


def verdict(result: float, invocations: int, *, exactly: bool = False) -> tuple[bool, float]:
    """Judge what a simulation of W = 1, x = 1 gives for W1 after some invocations."""
    shape = (1,) if invocations == 1 else (invocations, 1)
    inputs = {"W": np.ones(1, np.float16), "x": np.ones(shape, np.float16)}
    outputs = {"W1": np.array([result], np.float16)}
    found = check_outputs(SCALE, MAP, inputs, outputs, invocations, exactly=exactly)
    return found.passed, found.max_error


def test_the_unit_is_the_rounding_of_one_term() -> None:
    assert verdict(1, 1) == (True, 0.0)
    assert verdict(1 + ULP, 1) == (True, 1.0)
    assert verdict(1 + 2 * ULP, 1) == (False, 2.0)


def test_made_up_inputs_agree_exactly() -> None:
    assert verdict(1, 1, exactly=True)[0]
    assert not verdict(1 + ULP, 1, exactly=True)[0]


@pytest.mark.parametrize("invocations", [2, 5])
def test_what_a_state_may_be_off_is_carried_over(invocations: int) -> None:
    """Each invocation may round once more: after n of them a right machine is off by up to n ulps."""
    assert verdict(1 + invocations * ULP, invocations)[0]
    assert not verdict(1 + (invocations + 1) * ULP, invocations)[0]


def test_a_number_that_is_none_is_wrong() -> None:
    assert verdict(np.nan, 1) == (False, np.inf)
