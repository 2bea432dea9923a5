"""Reductions and scans by plainer terms: which ones, and that the results are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from compiled_c import compiled
from polyloom.ir.expressions import Binary, BinaryOp, Expression, UnaryOp, walk
from polyloom.ir.host import HostProgram, MdHom, Order
from polyloom.ir.transform.plainer_reductions import plainer_reductions
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import leaves_in

HEAD = "void f(int n, double a[n], double b[n], float c[n], double out[1], int at[1])"
ALL = "for (int i = 0; i < n; i++)"
SIZES = {
    "largest": (
        f"double x = 0; {ALL} {{ double y = a[i] < 0 ? -a[i] : a[i]; x = y > x ? y : x; }} out[0] = x;"
    ),
    "smallest, otherwise": (
        f"double x = 9; {ALL} {{ double y = a[i] - b[i] >= 0 ? a[i] - b[i] : -(a[i] - b[i]);"
        " x = y < x ? y : x; } out[0] = x;"
    ),
}
EQUAL_TERMS = {
    "a counter": f"double s = 0; {ALL} {{ s += 2; a[i] = s * b[i]; }}",
    "from a number on": f"float s = 3; {ALL} {{ s += 0.25f; c[i] = s; }}",
}
PLACES = {
    "last": f"int k = -1; {ALL} if (a[i] > 0.5) k = i; at[0] = k;",
    "first": "int k = -5; for (int i = n - 1; i >= 0; i--) if (a[i] > b[i]) k = i; at[0] = k;",
    "none": f"int k = 7; {ALL} if (a[i] > 100) k = i; at[0] = k;",
}
EXTREMES = {
    "first largest": (
        f"double x = a[0]; int k = 7; {ALL} if (a[i] > x) {{ x = a[i]; k = i; }} out[0] = x; at[0] = k;"
    ),
    "first smallest, counted down": (
        f"double x = 0; int k = -1; {ALL} if (a[i] < x) {{ x = a[i]; k = 3 - i; }} out[0] = x; at[0] = k;"
    ),
    "in a matrix": (
        "double x = a[0]; int k = 0, l = 0; for (int i = 0; i < n / 10; i++) for (int j = 0; j < 10; j++)"
        " if (a[10 * i + j] > x) { x = a[10 * i + j]; k = i; l = j; } out[0] = x; at[0] = 10 * k + l;"
    ),
    "last largest": (
        f"double x = a[0]; int k = 7; {ALL} if (a[i] >= x) {{ x = a[i]; k = i; }} out[0] = x; at[0] = k;"
    ),
    "last smallest in a matrix": (
        "double x = 0; int k = -1, l = 0; for (int i = 0; i < n / 10; i++) for (int j = 0; j < 10; j++)"
        " if (x >= a[10 * i + j]) { x = a[10 * i + j]; k = i; l = j; } out[0] = x; at[0] = 10 * k + l;"
    ),
    "with what lies at the last": (
        f"double x = a[0], y = 5; int k = 0; {ALL} if (a[i] >= x) {{ x = a[i]; k = i; y = b[i]; }}"
        " out[0] = y; at[0] = k;"
    ),
    "with what lies there": (
        f"double x = a[0], y = 5; int k = 0; {ALL} if (a[i] > x) {{ x = a[i]; k = i; y = b[i]; }}"
        " out[0] = y; at[0] = k;"
    ),
}
RECIPROCALS = {
    "product": f"double x = 1; {ALL} x *= 1 + a[i] / n; out[0] = x;",
    "sum of floats": f"float x = 0; {ALL} x += (a[i] > 0.5 ? c[i] / 3 : -c[i] / 7.0f) * c[i]; out[0] = x;",
    "running mean": f"double x = 0; {ALL} {{ x += (a[i] - 1) / n; b[i] = x; }}",
}
AS_BEFORE = {
    "not a size": (
        f"double x = 0; {ALL} {{ double y = a[i] < 0 ? -b[i] : a[i]; x = y > x ? y : x; }} out[0] = x;"
    ),
    "a sum of sizes": f"double x = 0; {ALL} x += a[i] < 0 ? -a[i] : a[i]; out[0] = x;",
    "a map of quotients": f"{ALL} b[i] = a[i] / 3;",
    "the largest quotient": f"double x = 0; {ALL} x = a[i] / 3 > x ? a[i] / 3 : x; out[0] = x;",
    "a quotient that is compared": f"double x = 0; {ALL} if (a[i] / 3 > 0.1) x += a[i]; out[0] = x;",
    "a divisor without a reciprocal": f"double x = 0; {ALL} x += a[i] / 1e308 + b[i] / 1e-309; out[0] = x;",
    "a place twice as far": (
        f"double x = a[0]; int k = 0; {ALL} if (a[i] > x) {{ x = a[i]; k = i / 2; }} out[0] = x; at[0] = k;"
    ),
    "an unknown divisor": f"double x = 0; {ALL} x += a[i] / b[i]; out[0] = x;",
    "other terms": f"double s = 0; {ALL} {{ s += b[i]; a[i] = s; }}",
}
FORMS = SIZES | EQUAL_TERMS | PLACES | EXTREMES | RECIPROCALS | AS_BEFORE


def given(n: int) -> dict[str, Any]:
    """Return arrays for a size, with zeros of both signs."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal(n)
    a[::5], a[2::7] = 0.0, -0.0
    out = {"out": np.zeros(1), "at": np.zeros(1, np.int32)}
    return {"a": a, "b": rng.standard_normal(n), "c": a.astype(np.float32), **out}


def plain(body: str, strict: bool = False, *, sizes: bool = True) -> HostProgram:
    """Return a program for 1000 elements, or for any number of them."""
    fp = "strict" if strict else "reassociate"
    loaded = polyloom.load(f"{HEAD}\n{{\n{body}\n}}\n", device="native", fp=fp, threads=1)
    return specialise(loaded.compiled.program, {"n": 1000} if sizes else {})


def homs(program: HostProgram) -> list[MdHom]:
    return [node for node in leaves_in(program.body) if isinstance(node, MdHom)]


def parts(program: HostProgram) -> list[Expression]:
    return [part for hom in homs(program) for term in hom.terms for part in walk(term)]


def is_plainer(form: str, program: HostProgram) -> bool:
    """Return whether a program has the form that is wanted of it."""
    if form in SIZES:
        return any(getattr(part, "op", None) is UnaryOp.ABS for part in parts(program))
    if form in EXTREMES:
        return all(o.combiner.commutative for hom in homs(program) for o in hom.combine if o.combiner)
    if form in RECIPROCALS:
        return all(getattr(part, "op", None) is not BinaryOp.DIVIDE for part in parts(program))
    if form in EQUAL_TERMS:
        return all(o.order is Order.CONCATENATE for hom in homs(program) for o in hom.combine)
    totals = [o.combiner.results[0] for hom in homs(program) for o in hom.combine if o.combiner]
    return all(isinstance(total, Binary) and total.type is ElementType.INT32 for total in totals)


@pytest.mark.parametrize("form", FORMS)
def test_plainer(form: str) -> None:
    before = plain(FORMS[form])
    after = plainer_reductions(before)
    if form in AS_BEFORE:
        assert after == before
    else:
        assert not is_plainer(form, before) and is_plainer(form, after)


@pytest.mark.parametrize("form", [form for form in EXTREMES if "matrix" not in form])
def test_places_of_extremes_in_any_order_of_any_number(form: str) -> None:
    after = plainer_reductions(plain(EXTREMES[form], sizes=False))
    assert any(o.combiner for hom in homs(after) for o in hom.combine)
    assert is_plainer(form, after)


@pytest.mark.parametrize("form", FORMS)
def test_strict_programs_stay(form: str) -> None:
    before = plain(FORMS[form], strict=True)
    assert plainer_reductions(before) == before


@pytest.mark.parametrize("form", FORMS)
def test_beside_c(tmp_path: Path, form: str) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"{HEAD}\n{{\n{FORMS[form]}\n}}\n")
    made = polyloom.compile(path, device="native", threads=1, check=True)
    for n in (1, 9, 1000):
        made(n=n, **given(n))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("form", EXTREMES)
@pytest.mark.parametrize("threads", [1, 2])
def test_of_equal_values_the_first_one_counts(form: str, threads: int, tmp_path: Path) -> None:
    """Infinities, and a start that no term is larger than, have places of their own; NaN has none."""
    text = f"{HEAD}\n{{\n{EXTREMES[form]}\n}}\n"
    path = tmp_path / "f.c"
    path.write_text(text)
    made, in_c = polyloom.load(str(path), device="native", threads=threads), compiled(text, "f", tmp_path)
    few = [-np.inf, -2.0, 0.0, 1.0, 3.0, np.inf, np.nan]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([1, 10, 1000, 20000]))
        values = rng.choice(few, rng.integers(1, 4))
        arrays = given(n) | {"a": rng.choice(values, n)}
        expected = in_c({"n": n, **arrays})
        made(n=n, **arrays)
        for name in ("out", "at"):
            np.testing.assert_array_equal(arrays[name], expected[name], f"{seed} {n} {name}")
