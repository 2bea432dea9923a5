"""Reductions over small windows as maps: which become so, and that every element keeps its bits."""

from __future__ import annotations

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import walk
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.transform.fuse_maps import combined_dimensions
from polyloom.ir.transform.records.unrolled_records import unrolled_records
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import leaves_in

ARGUMENTS = """int h, int w, const float k[9], const float s[h + 9][w + 9], float d[h][w], const int g[h],
    unsigned char b[h + 9][w + 9], unsigned char e[h][w], const float z[h][8], const float y[8][w]"""
SIZES = {"h": 7, "w": 11}


def program(body: str) -> HostProgram:
    text = f"void f({ARGUMENTS}) {{\n#pragma scop\nfor (int i = 0; i < h; i++) for (int j = 0; j < w; j++) {{"
    (found,) = host_programs_of(f"{text} {body} }}\n#pragma endscop\n}}")
    return found


def over(extents: str, step: str, start: str = "0") -> str:
    n, m = extents.split()
    loops = f"for (int p = 0; p < {n}; p++) for (int q = 0; q < {m}; q++)"
    return f"float t = {start}; {loops} {step} d[i][j] = t * 2;"


WINDOWS = {
    "a filter": over("3 3", "t += k[3 * p + q] * s[i + p][j + q];"),
    "a large one": over("5 5", "t += k[p + q] * s[i + p][j + q];"),
    "in steps": over("2 2", "t += s[i + 2 * p][j + q];"),
    "what the point is counts": over("3 2", "t += (p + 2 * q) * s[i + p][j + q];"),
    "from what is there": over("3 3", "t += k[p] * s[i + p][j + q];", "d[i][j]"),
    "the largest": over("3 3", "if (s[i + p][j + q] > t) t = s[i + p][j + q];", "s[i][j]"),
    "the largest of many": over("5 5", "if (s[i + p][j + q] > t) t = s[i + p][j + q];", "s[i][j]"),
    "a product": over("3 1", "t *= s[i + p][j];", "1"),
    "along rows": "d[i][j] = 0; for (int p = 0; p < 5; p++) d[i][j] += k[p] * s[i][j + p];",
    "bytes": "int t = 0; for (int p = 0; p < 3; p++) for (int q = 0; q < 3; q++) t += b[i + p][j + q];"
    " e[i][j] = t / 9;",
}
OTHERS = {
    "a product of matrices": "d[i][j] = 0; for (int p = 0; p < 8; p++) d[i][j] += z[i][p] * y[p][j];",
    "too large": over("6 6", "t += s[i + p][j + q];"),
    "of open size": over("h 3", "t += s[i + p][j + q];"),
    "where data says": over("3 3", "t += s[g[i]][p] * k[q];"),
}


def reductions(found: HostProgram) -> list[MdHom]:
    return [n for n in leaves_in(found.body) if isinstance(n, MdHom) and combined_dimensions(n)]


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_become_maps_with_the_same_bits(name: str) -> None:
    found = program(WINDOWS[name])
    made = unrolled_records(found)
    assert reductions(found) and not reductions(made)
    verify(made)
    known, wanted = specialise(made, SIZES), specialise(found, SIZES)
    rng = np.random.default_rng(5)
    given = {}
    for buffer in wanted.given:
        numbers = 100 * rng.standard_normal(buffer.extents)
        given[buffer.name] = (abs(numbers) if buffer.type.dtype.kind == "u" else numbers).astype(
            buffer.type.dtype
        )
    results = evaluate_host(known, {}, given)
    for buffer, expected in evaluate_host(wanted, {}, given).items():
        np.testing.assert_array_equal(results[buffer], expected, err_msg=buffer)


@pytest.mark.parametrize("name", OTHERS)
def test_other_reductions_stay(name: str) -> None:
    found = program(OTHERS[name])
    assert reductions(unrolled_records(found)) == reductions(found) != []


def test_windows_of_known_sizes_stay() -> None:
    found = specialise(program(WINDOWS["a filter"]), SIZES)
    assert reductions(unrolled_records(found))


def test_an_operator_that_reads_a_total_twice_is_in_steps() -> None:
    """Its text would double with each point of the window."""
    (node,) = (n for n in leaves_in(unrolled_records(program(WINDOWS["the largest of many"])).body))
    assert isinstance(node, MdHom)
    assert sum(1 for term in node.terms for _ in walk(term)) < 500
