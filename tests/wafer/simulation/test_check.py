"""The verdict of ``--check``: exact for made-up inputs, within the bound for given ones, with states."""

from __future__ import annotations

import numpy as np
import pytest

from polyloom import read_mapping, read_program
from polyloom.ir import evaluate
from polyloom.ir.rounding.any_order import digits_of
from polyloom.ir.verification.comparison import Reals, Verdict
from polyloom.wafer.simulation.check import check_outputs, made_up_reals

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


NORM = """lair norm<T=float32>(): T x[6] -> T z, T y[6]
{{
  all (i) in (6) z += {term}
  all (i) in (6) y[i] = x[i] - z
}}"""


@pytest.mark.parametrize(
    ("term", "ordered"),
    [
        ("x[i]", False),
        ("x[i] * x[i] * 0.25 - 3", False),
        ("floor(x[i] / 4)", False),
        ("x[i] * 0.1", True),
        ("x[i] / 3", True),
        ("exp(x[i])", True),
    ],
)
def test_bits_may_differ_where_the_order_of_a_sum_decides_them(term: str, ordered: bool) -> None:
    """One unit in the last place is an error but where terms are no small multiples of a power of two."""
    program = read_program(NORM.format(term=term))
    mapping = read_mapping(
        "size: { PE[1, 1] }\ncompute_map: { norm_z[i] -> PE[0, 0]; norm_y[i] -> PE[0, 0] }", program
    )
    inputs = {"x": np.array([1, 2, -1, 2, 1, 1], np.float32)}
    wanted = evaluate(program, inputs)
    for name in wanted:
        outputs = {k: np.nextafter(v, np.float32(100)) if k == name else v for k, v in wanted.items()}
        assert check_outputs(program, mapping, inputs, outputs, 1, exactly=True).passed == ordered, name


def test_a_state_hangs_on_the_order_of_the_sum_that_it_was_made_from() -> None:
    text = """lair f(): float32 h[2], float32 x[2] -> float32 y, float32 h1[2] {
      all (i) in (2) y += h[i]
      all (i) in (2) s += x[i] * 0.1
      all (i) in (2) h1[i] = s
    }"""
    program = read_program(text)
    arrays = {name: np.ones(2, np.float32) for name in ("h", "x", "y", "s", "h1")}
    first = digits_of(program, arrays)
    assert not first["y"].ordered
    assert first["h1"].ordered
    assert digits_of(program, arrays, {"h": first["h1"]})["y"].ordered


@pytest.mark.parametrize("invocations", [2, 5])
def test_what_a_state_may_be_off_is_carried_over(invocations: int) -> None:
    """Each invocation may round once more: after n of them a right machine is off by up to n ulps."""
    assert verdict(1 + invocations * ULP, invocations)[0]
    assert not verdict(1 + (invocations + 1) * ULP, invocations)[0]


def test_a_number_that_is_none_is_wrong() -> None:
    assert verdict(np.nan, 1) == (False, np.inf)


DOT = read_program(
    "lair dot(): float16 a[64], float16 b[64] -> float16 s { all (i) in (64) s += a[i] * b[i] }"
)
DOT_MAP = read_mapping(
    """size: { PE[1, 1] }
    compute_map: { dot[i] -> PE[0, 0] }
    iport_map: { a[i] -> [PE[0, -1] -> index[i]] }""",
    DOT,
)


def test_made_up_reals_leave_room_in_halves_and_say_their_scale() -> None:
    made = made_up_reals(DOT, DOT_MAP, 1, 1.0)
    assert made is not None
    assert np.isfinite(evaluate(DOT, made.arrays)["s"])
    sizes = np.abs(made.arrays["a"].astype(float))
    assert sizes.max() / sizes.min() > 5
    again = made_up_reals(DOT, DOT_MAP, 1, 1.0)
    assert again is not None and np.array_equal(made.arrays["a"], again.arrays["a"])


def test_reals_in_another_order_pass_and_zeros_fail() -> None:
    made = made_up_reals(DOT, DOT_MAP, 1, 1.0)
    assert made is not None
    products = made.arrays["a"] * made.arrays["b"]
    pairwise = products.reshape(8, 8).sum(axis=1, dtype=np.float16).sum(dtype=np.float16)
    judged = [
        check_outputs(DOT, DOT_MAP, made.arrays, {"s": np.asarray(v)}, 1, exactly=False)
        for v in (pairwise, np.float16(0) if abs(pairwise) > 100 else np.float16(1000))
    ]
    assert [c.passed for c in judged] == [True, False]


def test_a_failure_with_reals_fails_the_check() -> None:
    passed = Verdict()
    failed = Verdict(max_error=9.0, mismatches=("y[0] is 1, not 2; 1 of 1 are wrong",))
    both = passed.with_reals(Reals(failed, 3, 1))
    assert not both.passed and both.mismatches == failed.mismatches
    assert both.json()["reals"]["passed"] is False
