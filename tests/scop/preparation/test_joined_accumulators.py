"""Accumulators that make up one total: which become one, which stay apart, and C's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from forms import read, transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.scop.transform import ReductionMode, prepared

EACH = "for (int i = 0; i < n; i++)"
TWO = "s += x[i]; t += w[i] * x[i];"
ROWS = "for (int k = 0; k < n; k++)"

JOINED = {
    "unrolled": "T s = 0, t = 0; for (int i = 1; i < n; i += 2) { s += x[i]; t += x[i - 1]; } y[0] = s + t;",
    "in other loops": f"T s = 0, t = 0; {EACH} s += x[i]; {EACH} t -= w[i]; y[0] = 3 + (t + s) * 2;",
    "read twice": f"T s = 0, t = 0; {EACH} {{ {TWO} }} y[0] = s + t; y[1] = t + 2 + s;",
    "not from 0": f"T s = 2, t = 5; {EACH} {{ {TWO} }} y[0] = s + t;",
    "from data": f"T s = x[0], t = w[0]; {EACH} {{ {TWO} }} y[0] = s + t;",
    "products": f"T s = 1, t = 1; {EACH} {{ if (i < 5) s *= 1 + w[i]; t *= x[i]; }} y[0] = s * t;",
    "largest": f"T s = 0, t = 3; {EACH} {{ if (x[i] > s) s = x[i]; t = w[i] > t ? w[i] : t; }}"
    " y[0] = s > t ? s : t;",
    "of four": f"T s = 9, t = 9, u = 9, v = 9; {EACH} {{ s = x[i] < s ? x[i] : s; t = w[i] < t ? w[i] : t;"
    " u = x[i + 1] < u ? x[i + 1] : u; v = w[i + 1] < v ? w[i + 1] : v; }"
    " T m = s; if (t < m) m = t; if (u < m) m = u; if (v < m) m = v; y[0] = m;",
    "under conditions": f"T s = 0, t = 0; {EACH} if (w[i] > 3) s += x[i]; else t += w[i]; y[0] = s + t;",
    "in each row": f"{ROWS} {{ T s = 0, t = 1; {EACH} {{ s += x[i]; t += w[k]; }} y[k] = s + t; }}",
    "added": f"T s = 0, t = 0, u = 0; {EACH} {{ {TWO} u += w[i]; }} s += t; s += u; y[0] = s;",
    "added at once": f"T s = 0, t = 4, u = 0; {EACH} {{ {TWO} u += w[i]; }} s = s + t + u; y[0] = y[1] = s;",
    "added in each row": f"T s = 0; {ROWS} {{ T t = 0; {EACH} t += x[i] * w[k]; s += t + 1; }} y[0] = s;",
}
APART = {
    "one is read": f"T s = 0, t = 0; {EACH} {{ {TWO} }} y[0] = s + t; y[1] = t;",
    "weighed": f"T s = 0, t = 0; {EACH} {{ {TWO} }} y[0] = s + 2 * t;",
    "a difference": f"T s = 0, t = 0; {EACH} {{ {TWO} }} y[0] = s - t;",
    "another operator": f"T s = 0, t = 1; {EACH} {{ s += x[i]; if (i < 5) t *= 2; }} y[0] = s + t;",
    "read by another total": f"T s = 0, t = 1; {EACH} {{ s += x[i]; if (i < 5) t *= 2; }} y[0] = s * t;",
    "set outside": f"T s = 0; {ROWS} {{ T t = 0; {EACH} {{ {TWO} }} y[k] = s + t; }}",
    "set in another loop": f"T s, t; {ROWS} s = 0; {ROWS} {{ t = 0; {EACH} {{ {TWO} }} y[k] = s + t; }}",
    "set in some rows": f"T t; {ROWS} {{ T s = 0; if (k % 2 == 0) t = 0; {EACH} {{ {TWO} }} y[k] = s + t; }}",
    "updated between": f"T s, t; {ROWS} {{ s = 0; if (k > 0) {EACH} t += 1; t = 0; {EACH} {{ {TWO} }}"
    " y[k] = s + t; }",
    "added in some rows": "T s = 0;"
    f" {ROWS} {{ T t = 0; {EACH} t += x[i]; if (k % 2 == 0) s += t; }} y[0] = s;",
    "added and read": f"T s = 0, t = 0; {EACH} {{ {TWO} }} s += t; y[0] = s; y[1] = t;",
    "read before": f"T s = 1; {ROWS} {{ T t = 0; {EACH} t += x[i] * w[k]; y[k] = s; s += t; }} y[n] = s;",
    "updated behind": f"T s = 0, t = 0; {EACH} {{ {TWO} }} s += t; {EACH} t += x[i]; y[0] = s;",
    "updated in other rows": f"T s = 0, t; {ROWS} {{ if (k % 2 == 0) t = 0; {EACH} t += x[i] + w[k];"
    " if (k % 2 == 0) s += t; } y[0] = s;",
    "a place": f"T s = 0, t = 0; {EACH} {{ s += 1; t += 1; }} y[0] = x[(int)(s + t) / 2] + (s + t);",
}


def text(body: str, kind: str) -> str:
    arrays = "const T x[n + 1], const T w[n + 1], T y[n + 2]".replace("T ", f"{kind} ")
    return f"void kernel(int n, {arrays}) {{ {body.replace('T ', f'{kind} ')} }}"


def accumulators(source: str, *, strict: bool = False) -> set[str]:
    scop = prepared(read(source), ReductionMode.DETECT, strict=strict)
    return {s.target.array for s in scop.statements} & set("stuv")


@pytest.mark.parametrize("name", JOINED)
def test_what_is_read_as_one_total_is_one_accumulator(name: str) -> None:
    assert len(accumulators(text(JOINED[name], "double"))) == 1


@pytest.mark.parametrize("name", APART)
def test_others_stay_apart(name: str) -> None:
    assert accumulators(text(APART[name], "double")) == {"s", "t"}


def test_strict_sums_of_floats_keep_their_order() -> None:
    assert accumulators(text(JOINED["unrolled"], "double"), strict=True) == {"s", "t"}
    assert len(accumulators(text(JOINED["unrolled"], "unsigned"), strict=True)) == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "double") for name in (*JOINED, *APART)),
        ("from data", "unsigned"),
        ("a difference", "unsigned"),
    ],
)
def test_the_numbers_are_those_of_c(name: str, kind: str) -> None:
    source = text((JOINED | APART)[name], kind)
    program = transformed(source)
    for n in (0, 1, 13):
        rng = np.random.default_rng(n)
        dtype = np.float64 if kind == "double" else np.uint32
        arrays = {a: rng.integers(0, 9, n + (2 if a == "y" else 1)).astype(dtype) for a in "xwy"}
        expected = call(source, "kernel", {"n": n, **arrays})
        given = {b.name: arrays[b.name] for b in program.given}
        for array, values in evaluate_host(program, {"n": n}, given).items():
            np.testing.assert_array_equal(values, expected[array])


def test_a_start_that_is_no_number_hides_terms_of_its_own_alone() -> None:
    source = text(
        f"T s = -9, t = x[0]; {EACH} {{ s = w[i] > s ? w[i] : s; t = x[i] > t ? x[i] : t; }}"
        " y[0] = t > s ? t : s;",
        "double",
    )
    x, w = np.array([np.nan, 9, 9.0]), np.array([1, 2, 3.0])
    given = {"x": x, "w": w, "y": np.zeros(4)}
    expected = call(source, "kernel", {"n": 2, **given})
    program = transformed(source)
    found = evaluate_host(program, {"n": 2}, {b.name: given[b.name] for b in program.given})
    assert found["y"][0] == expected["y"][0] == 2
