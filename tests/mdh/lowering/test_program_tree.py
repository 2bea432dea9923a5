"""Whole host programs as kernel trees: what they say, and what they leave in the arrays."""

from __future__ import annotations

from pathlib import Path

import loop_programs as loops
import numpy as np
import pytest
from homs import buffer, gemm, hom_of, matmul, number
from hypothesis import given
from hypothesis import strategies as st
from trees import (
    C_FILES,
    HOMS,
    ZOO,
    assert_computes,
    c_programs,
    inputs,
    layer,
    sizes,
)

import random_c
from c_host_programs import host_programs_of
from md_homs import Case, md_homs
from polyloom.ir.expressions import Binary, Constant, Read
from polyloom.ir.host import Buffer, CombineOperator, Combiner, Copy, HostProgram, MdHom, Order, Role, View
from polyloom.ir.scalar_functions.function import BINARY
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.tree.evaluate import backwards, shuffled
from polyloom.mdh.tree.nodes import Code, Compute, If, Store
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tree.text import code_lines, function_text
from polyloom.mdh.tree.verify import verify
from polyloom.polyhedra.loops.tree import Instance, Loop, Name, Number, Operation
from random_tests import tried
from samples import LATER, one_in

F32 = ElementType.FLOAT32


def repeated() -> HostProgram:
    """``C = max(beta * C + A B, 0)`` three times, each time kept in a local array."""
    once = gemm(4, 5, 6)
    loop = Loop(
        iterator="t",
        start=number(0),
        condition=Operation("<", (Name("t"), number(3))),
        step=number(1),
        body=(hom_of(once), Copy("C", "kept")),
    )
    kept = buffer("kept", F32, (4, 5), Role.LOCAL)
    return HostProgram(name="repeated", parameters=(), buffers=(*once.buffers, kept), body=(loop,))


def test_text_of_a_program() -> None:
    function = program_tree(repeated())
    assert (
        function_text(function)
        == """\
repeated(float32 A[4, 6], float32 B[6, 5], float32 beta, float32 C[4, 5], float32 kept[4, 5]):
  for t from 0 to 3:
    parallel for i from 0 to 4:
      parallel for j from 0 to 5:
        float32 result in registers
        float32 finished0 in registers
        result = C[i, j] * beta
        for k from 0 to 6:
          result = result + A[i, k] * B[k, j]    # gemm(t, i, j, k)
        finished0 = max(result, 0)
        C[i, j] = finished0
    parallel for c0 from 0 to 4:
      parallel for c1 from 0 to 5:
        kept[c0, c1] = C[c0, c1]
"""
    )
    assert [p.name for p in function.parameters if p.constant] == ["A", "B", "beta"]
    assert [p.name for p in function.parameters if p.scratch] == ["kept"]


def test_scheduled_md_homs_stand_in_their_places() -> None:
    """Their instances are those of the program: two places of one md_hom are told apart."""
    program = matmul(2, 2, 2)
    done = Store(
        "C", (Number(0), Number(0)), Compute(Constant(0.0, F32)), Instance("matmul", (Number(0),) * 3)
    )

    def lower(hom: object) -> Code:
        return (done,)

    twice = HostProgram(
        name="twice", parameters=(), buffers=program.buffers, body=(*program.body, *program.body)
    )
    assert list(code_lines(program_tree(twice, lower).body)) == [
        "C[0, 0] = 0.0    # matmul(0, 0, 0)",
        "C[0, 0] = 0.0    # matmul_1(0, 0, 0)",
    ]


QUICK = [path for path in C_FILES if path.stem not in ("heat", "life", "blur", "shortest_paths")]
"""C programs that are not many steps of something."""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("path", "known"),
    [
        pytest.param(path, known, marks=LATER if (k + known) % 4 else (), id=f"{path.stem}-{known}")
        for k, path in enumerate(QUICK)
        for known in (False, True)
    ],
)
def test_c_programs(path: Path, known: bool) -> None:
    for program in c_programs(path):
        parameters = sizes(program, (5, 3, 4))
        assert_computes(program, parameters, inputs(program, parameters), known=known, order=backwards)


@pytest.mark.parametrize("name", one_in(4, loops.SIZES))
def test_polybench(name: str) -> None:
    (program,) = c_programs(loops.source(name), "REAL double=REAL float")
    parameters = sizes(program, (3, 5, 4))
    assert_computes(program, parameters, inputs(program, parameters), order=shuffled(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", loops.SIZES)
def test_polybench_in_mini(name: str) -> None:
    (program,) = c_programs(loops.source(name))
    values = loops.values(name, loops.SIZES[name]["mini"], np.float64)
    arrays = {b.name: np.asarray(values[b.name]) for b in program.given}
    assert_computes(program, {p.name: int(values[p.name]) for p in program.parameters}, arrays)


@pytest.mark.parametrize("name", one_in(5, ZOO))
def test_layers(name: str) -> None:
    program = layer(ZOO[name])
    assert_computes(program, {}, inputs(program, {}), order=backwards)


@pytest.mark.parametrize("name", HOMS)
def test_md_homs(name: str) -> None:
    assert_computes(HOMS[name], {}, inputs(HOMS[name], {}), order=shuffled(0))


@tried(300)
@given(md_homs(extras=True), st.integers(0, 2**16))
def test_random_md_homs(case: Case, seed: int) -> None:
    assert_computes(case.program, {}, case.data(seed), order=shuffled(seed))


@pytest.mark.slow
@pytest.mark.ci
@tried(40)
@given(random_c.c_programs(), st.integers(0, 2**16))
def test_random_c_programs(text: random_c.CProgram, seed: int) -> None:
    (program,) = host_programs_of(text.text)
    data = text.data(seed)
    parameters = {p.name: (2 + seed) % 6 + 1 for p in program.parameters}
    given = {b.name: data[b.name] for b in program.given}
    assert_computes(program, parameters, given, order=backwards)


def assert_verified(program: HostProgram) -> None:
    """Nothing is wrong with a tree, and only what data choose is not known."""
    found = verify(program_tree(program), asked(program))
    assert found.wrong == ()
    assert all("data chooses it" in text for text in found.unknown), found.unknown


@pytest.mark.parametrize("path", one_in(3, C_FILES, name=lambda p: p.stem))
def test_c_programs_are_verified(path: Path) -> None:
    for program in c_programs(path):
        assert_verified(specialise(program, sizes(program, (5, 3, 4))))


@pytest.mark.parametrize("name", one_in(4, loops.SIZES, start=1))
def test_polybench_is_verified(name: str) -> None:
    (program,) = c_programs(loops.source(name), "REAL double=REAL float")
    assert_verified(specialise(program, sizes(program, (3, 5, 4))))


@pytest.mark.parametrize("name", one_in(5, ZOO, start=1))
def test_layers_are_verified(name: str) -> None:
    assert_verified(layer(ZOO[name]))


def test_what_is_not_there_is_not_finished() -> None:
    """An operator without a neutral element, of no points: its result is nothing that may be read."""
    kind = ElementType.INT32
    least = BINARY["min"]
    smaller = Combiner(name="min", results=(Binary(least, Read(0, kind), Read(1, kind)),), neutral=(None,))
    hom = MdHom(
        name="h",
        iterators=("i",),
        extents=(Number(1),),
        inputs=(View("x", ()),),
        outputs=(View("y", ()),),
        terms=(Read(0, kind),),
        combine=(CombineOperator(Order.POINTWISE, smaller),),
        initial=(None,),
        finish=(Read(1, kind) - 1,),
        guard=Operation("<", (Number(0), Number(0))),
    )
    roles = (("x", Role.INPUT), ("y", Role.UPDATED))
    buffers = tuple(Buffer(name=name, type=kind, shape=(), role=role) for name, role in roles)
    assert_verified(HostProgram(name="p", parameters=(), buffers=buffers, body=(hom,)))


@tried(300)
@given(md_homs(extras=True))
def test_random_md_homs_are_verified(case: Case) -> None:
    assert_verified(case.program)


UNDER_CONDITIONS = """void kernel(int n, int k, int x[n], int y[n], int z[n]) {
    for (int i = 0; i < n; i++) {
        int v = x[i], u = 0;
        for (int t = 0; t < k; t++) {
            int w = v * 3 %% 17 + u;
            if (%s > 5) u = w - t;
            if (%s > 5) v = w + v / 3;
        }
        y[i] = v; z[i] = u;
    }
}"""


@pytest.mark.parametrize(("asked_of", "branches"), [("w", 1), ("u", 2)])
def test_neighbours_under_one_condition_are_one_branch(asked_of: str, branches: int) -> None:
    """But not those of which the first changes what the second asks for."""
    (program,) = host_programs_of(UNDER_CONDITIONS % (asked_of, asked_of))
    function = program_tree(program)
    assert sum(isinstance(s, If) for s in walk(function.body)) == branches
    parameters = {"n": 9, "k": 7}
    assert_computes(program, parameters, inputs(program, parameters))
