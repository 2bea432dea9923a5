"""Joined maps: what they compute is what the maps compute one after another; which are joined."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.transform.joining.maps import joined_maps
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import leaves_in
from samples import one_in

N = 24


ROWS = "int n, unsigned a[3 * n + 9], unsigned b[3 * n + 9], unsigned c[3 * n + 9]"
MATRICES = "int n, unsigned a[n][n], unsigned b[n][n]"


def special(body: str, arguments: str = ROWS) -> HostProgram:
    text = f"void f({arguments}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}"
    (program,) = host_programs_of(text)
    return specialise(program, {"n": N})


def maps(program: HostProgram) -> list[MdHom]:
    return [node for node in leaves_in(program.body) if isinstance(node, MdHom)]


def assert_same(program: HostProgram) -> HostProgram:
    """Unsigned numbers make every value exact; the joined program leaves the same ones."""
    made = joined_maps(program)
    verify(made)
    rng = np.random.default_rng(5)
    given = {b.name: rng.integers(0, 1 << 32, b.extents, dtype=np.uint32) for b in program.given}
    for name, wanted in evaluate_host(program, {}, given).items():
        np.testing.assert_array_equal(evaluate_host(made, {}, given)[name], wanted, err_msg=name)
    return made


JOINED = {
    "a swap has no temporary": "for (int i = 0; i < n; i++) { unsigned t = a[i]; a[i] = b[i]; b[i] = t; }",
    "a value passes on": "for (int i = 0; i < n; i++) { a[i] = b[i] * 3; c[i] = a[i] + b[i]; }",
    "overwritten": "for (int i = 0; i < n; i++) { a[i] = b[i] * 3; b[i] = a[i] + 1; a[i] = b[i] * a[i]; }",
    "even and odd": "for (int i = 0; i < n; i++) { a[2 * i] = b[i] + 1; a[2 * i + 1] = b[i] - 1; }",
    "in halves": "for (int i = 0; i < n; i++) { a[i + n] = a[i] + b[i]; b[i + n] = a[i] * b[i]; }",
    "rolled up": "for (int i = 0; i < n; i++) { a[3 * i] += b[3 * i]; a[3 * i + 1] += b[3 * i + 1];"
    " a[3 * i + 2] += b[3 * i + 2]; }",
}
APART = {
    "a neighbour's": ("a[i] = b[i] * 3;", "c[i] = a[i + 1] + b[i];"),
    "a neighbour's before": ("c[i] = a[i + 1] + b[i];", "a[i] = b[i] * 3;"),
    "stored by a neighbour": ("a[i] = b[i];", "a[i + 1] = b[i] * 2;"),
    "other points": ("a[i] = b[i] * 3;", "if (i > 0) c[i] = a[i] + b[i];"),
    "nothing shared": ("a[i] = 3;", "c[i] = b[i];"),
    "through places": ("a[i] = b[i] % 8;", "c[i] = b[a[i]];"),
}


@pytest.mark.parametrize("body", JOINED.values(), ids=JOINED)
def test_joined_into_one(body: str) -> None:
    program = special(body)
    assert len(maps(program)) > 1
    assert len(maps(assert_same(program))) == 1


@pytest.mark.parametrize(("second", "joined"), [("n / 2 + i", True), ("n / 3 + i", False)])
def test_halves_of_any_number_of_elements_have_none_in_common(second: str, joined: bool) -> None:
    body = f"for (int i = 0; i < n / 2; i++) {{ b[i] = a[2 * i]; b[{second}] = a[2 * i + 1]; }}"
    text = f"void f(int n, const unsigned a[n], unsigned b[n]) {{\n#pragma scop\n{body}\n#pragma endscop\n}}"
    (program,) = host_programs_of(text)
    made = joined_maps(program)
    assert (len(maps(made)) == 1) is joined
    rng = np.random.default_rng(5)
    for n in (0, 1, 2, 7, 24):
        given = {b.name: rng.integers(0, 1 << 32, n, dtype=np.uint32) for b in program.given}
        wanted = evaluate_host(program, {"n": n}, given)["b"]
        np.testing.assert_array_equal(evaluate_host(made, {"n": n}, given)["b"], wanted)


@pytest.mark.parametrize("bodies", APART.values(), ids=APART)
def test_what_stays_apart(bodies: tuple[str, str]) -> None:
    program = special("\n".join(f"for (int i = 0; i < n; i++) {body}" for body in bodies))
    assert len(maps(program)) == 2
    assert joined_maps(program) == program


def test_maps_move_over_others_that_do_not_touch_what_they_do() -> None:
    loops = [f"for (int i = 0; i < n; i++) {body}" for body in ("a[i] = b[i];", "c[i + 1] = 5;")]
    free = special("\n".join([*loops, "for (int i = 0; i < n; i++) a[i + n] = b[i] + 1;"]))
    assert [len(hom.outputs) for hom in maps(assert_same(free))] == [2, 1]
    held = special("\n".join([*loops, "for (int i = 0; i < n; i++) a[i + n] = b[i] + c[i];"]))
    assert [len(hom.outputs) for hom in maps(assert_same(held))] == [1, 1, 1]


def test_results_are_stored_as_they_lie() -> None:
    butterfly = """for (int i = 0; i < n; i++) {
        unsigned p = a[2 * i] + a[2 * i + 1], q = b[2 * i] - b[2 * i + 1], r = a[2 * i] * 3;
        a[2 * i + 1] = p * q; b[2 * i + 1] = p + r; a[2 * i] = q - r; b[2 * i] = p * p;
    }"""
    (node,) = maps(assert_same(special(butterfly)))
    assert [(v.buffer, *(i.constant for i in v.affine)) for v in node.outputs] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("for (int j = i + 1; j < n; j++) { unsigned t = a[i][j]; a[i][j] = a[j][i]; a[j][i] = t; }", 1),
        ("for (int j = i + 1; j < n; j++) { a[i][j] += a[j][i]; a[j][i] = b[i][j]; }", 1),
        ("for (int j = i; j < n; j++) { a[i][j] = b[i][j]; a[j][i] = b[i][j] + a[i][j]; }", 2),
    ],
)
def test_triangles_have_no_element_in_common(body: str, count: int) -> None:
    program = special(f"for (int i = 0; i < n; i++) {body}", MATRICES)
    assert len(maps(program)) > 1
    assert len(maps(assert_same(program))) == count


def test_rows_that_a_host_loop_keeps_apart_have_no_element_in_common() -> None:
    rows = """for (int j = 1; j < n; j++) {
        unsigned c = a[0][0], s = a[j][0];
        for (int k = 0; k < n; k++) {
            unsigned x = a[0][k];
            a[0][k] = c * x + s * a[j][k];
            a[j][k] = c * a[j][k] - s * x;
        }
    }"""
    (node,) = (hom for hom in maps(assert_same(special(rows, MATRICES))) if hom.extents)
    assert len(node.outputs) == 2
    from_zero = rows.replace("j = 1", "j = 0")
    assert len([hom for hom in maps(assert_same(special(from_zero, MATRICES))) if hom.extents]) > 1


def test_a_value_of_many_results_is_joined_to_all() -> None:
    value = "b[i + 3] * b[i + 1] - b[i + 2] * b[i + 4] * (b[i + 5] + b[i]) / (b[i + 6] | 1)"
    many = "".join(f"a[9 * i + {k}] = t * b[i + {k}];" for k in range(5))
    once = f"unsigned t = b[i] / (b[i + 1] | 1) * b[i + 2] + {value}; {many}"
    program = special(
        f"for (int i = 0; i < n; i++) {{ {once} }}", "int n, unsigned a[9 * n], unsigned b[n + 9]"
    )
    assert len(maps(program)) > 1
    assert len(maps(assert_same(program))) == 1


def test_a_temporary_disappears() -> None:
    (node,) = maps(joined_maps(special(JOINED["a swap has no temporary"])))
    assert {view.buffer for view in (*node.inputs, *node.outputs)} == {"a", "b"}


def test_results_at_even_distances_are_a_dimension() -> None:
    (node,) = maps(joined_maps(special(JOINED["rolled up"])))
    assert len(node.outputs) == 1
    assert len(node.extents) == 2


def _random(seed: int) -> str:
    rng = Random(seed)

    def element(step: int) -> str:
        return f"{rng.choice('abc')}[{step} * i + {rng.choice([0, 0, 0, 1, 2])}]"

    lines = []
    usual = rng.choice([1, 2, 3])
    for _ in range(rng.randint(2, 7)):
        step = rng.choice([usual, usual, usual, 1])
        value = f"{element(step)} {rng.choice('+-*')} {element(rng.choice([1, step]))}"
        lines.append(f"for (int i = 0; i < n; i++) {element(step)} = {value} + {rng.randint(0, 9)};")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", one_in(6, [(k,) for k in range(60)]))
def test_random_maps_keep_their_values(seed: tuple[int]) -> None:
    assert_same(special(_random(seed[0])))
