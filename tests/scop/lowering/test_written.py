"""A host program writes the elements that its static control part writes; one that does not is not taken."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from forms import KERNELS, read, run

import polyloom.scop.transform as transform
from compiled_c import call
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Nest, uses
from polyloom.scop.lowering.written_elements import WrongWrites, check_written
from polyloom.scop.transform import host_program, with_parameters

NAMES = ("conditional_writes", "pieces_at_points", "product_chain", "scans_of_terms", "sums_of_nothing")


def text(name: str) -> str:
    return (KERNELS / f"{name}.c").read_text()


def writes_alone(node: HostNode, program: HostProgram) -> bool:
    """Whether a node writes an array of the caller that no other node writes."""
    others = [other for other in program.body if other is not node]
    locals_ = {b.name for b in program.buffers if b.role.value == "local"}
    return bool(uses([node]).written - uses(others).written - locals_)


@pytest.mark.parametrize("name", NAMES)
def test_a_node_less_is_seen(name: str) -> None:
    scop = with_parameters(read(text(name)))
    program = host_program(scop).program
    check_written(scop, program)
    for node in program.body:
        if writes_alone(node, program):
            body = tuple(other for other in program.body if other is not node)
            with pytest.raises(WrongWrites, match=r"lost: .*\[.*\]"):
                check_written(scop, replace(program, body=body))


def test_an_element_less_is_seen_and_the_part_runs_sequentially(monkeypatch: pytest.MonkeyPatch) -> None:
    scop = read(text("started_scans"))
    assert "scop-fallback" not in {r.code for r in host_program(scop).remarks}
    before = transform.fused

    def losing(body: tuple[HostNode, ...], passing: frozenset[str]) -> tuple[HostNode, ...]:
        found = before(body, passing)
        first = next(n for n in found if isinstance(n, MdHom) and not n.extents)
        return tuple(n for n in found if n is not first)

    monkeypatch.setattr(transform, "fused", losing)
    (fallback,) = host_program(scop).remarks
    assert fallback.code == "scop-fallback" and "s[0]" in fallback.notes[0]


SUBSCRIPTS = {
    "halves": "i / 2",
    "a remainder": "(i + m) % 3",
    "the larger": "(i > 4 ? i : 4)",
    "the smaller, with a parameter": "(i < m ? i : m)",
    "halves of a sum": "(i + n) / 2",
    "several conditions": "(i < 2 ? 7 : i < m ? i + 10 : 3 * i)",
    "backwards in pairs": "(2 * n - i) / 2 + 1",
    "a product": "i * i",
    "one that data choose": "(c[i] & 7)",
}
BODIES = {
    "in order": "a[{0}] = b[i]; b[i + 5] += 3;",
    "a local": "int r = 1; for (int j = 2; j < m; j++) r += i; a[{0}] = r;",
    "a sum": "a[{0}] += b[i] * c[i];",
    "a scan": "if (i == 0) c[150] = 2; c[150] -= b[i]; a[{0}] = c[150];",
    "a table": "for (int j = 0; j < m; j++) t[{0}][j] = b[j] + i;",
    "a table's columns": "for (int j = 1; j < m; j++) t[j / 2][{0}] = b[j] + i;",
}


def subscripted(subscript: str, body: str) -> str:
    return f"""void kernel(int n, int m, int a[200], int b[200], int c[200], int t[200][200])
{{
#pragma scop
  for (int i = 0; i < n; i++) {{ {body.format(subscript)} }}
#pragma endscop
}}
"""


FAST = {*((s, "in order") for s in list(SUBSCRIPTS)[::2]), *(("halves", b) for b in list(BODIES)[::2])}
PAIRS = [
    pytest.param(s, b, marks=[] if (s, b) in FAST else [pytest.mark.slow, pytest.mark.ci])
    for s, b in product(SUBSCRIPTS, BODIES)
]


@pytest.mark.parametrize(("subscript", "body"), PAIRS)
def test_subscripts_that_are_no_sums_of_iterators_are_no_reason_to_fall_back(
    subscript: str, body: str
) -> None:
    source = subscripted(SUBSCRIPTS[subscript], BODIES[body])
    found = host_program(read(source))
    assert not [note for r in found.remarks for note in r.notes if "elements written" in note]
    numbers = np.random.default_rng(0)
    data = {name: numbers.integers(-9, 10, 200).astype("int32") for name in "abc"}
    data["t"] = numbers.integers(-9, 10, (200, 200)).astype("int32")
    for n, m in ((0, 5), (1, 0), (6, 2), (9, 7)):
        expected = call(source, "kernel", {"n": n, "m": m, **data})
        for name, values in run(found.program, {"n": n, "m": m, **data}).items():
            np.testing.assert_array_equal(values, expected[name], f"{name}, n = {n}, m = {m}")


@pytest.mark.parametrize(
    "subscript", [s for s in SUBSCRIPTS if s not in ("a product", "one that data choose")]
)
def test_a_wrong_subscript_that_is_no_sum_of_iterators_is_seen(subscript: str) -> None:
    scop = with_parameters(read(subscripted(SUBSCRIPTS[subscript], BODIES["in order"])))
    program = host_program(scop).program
    moved = tuple(at_zero(node, "a") for node in program.body)
    assert moved != program.body
    with pytest.raises(WrongWrites, match=r"a\["):
        check_written(scop, replace(program, body=moved))


def at_zero(node: HostNode, array: str) -> HostNode:
    """Return the node with every write to an array at its first element."""
    if isinstance(node, MdHom):
        first = (Index((0,) * len(node.iterators)),)
        views = (replace(v, indices=first) if v.buffer == array else v for v in node.outputs)
        return replace(node, outputs=tuple(views))
    assert isinstance(node, Nest)
    assignments = tuple(
        replace(a, target=replace(a.target, indices=(Index((0,) * len(a.iterators)),)))
        if a.target.buffer == array
        else a
        for a in node.assignments
    )
    return replace(node, assignments=assignments)
