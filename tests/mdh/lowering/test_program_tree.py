"""Whole host programs as kernel trees: what they say, and what they leave in the arrays."""

from __future__ import annotations

from homs import buffer, gemm, hom_of, matmul, number

from polyloom.ir.expressions import Constant
from polyloom.ir.host import Copy, HostLoop, HostProgram, Role
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.tree.nodes import Code, Compute, Store
from polyloom.mdh.tree.text import code_lines, function_text
from polyloom.polyhedra.loops.tree import Instance, Name, Number, Operation

F32 = ElementType.FLOAT32


def repeated() -> HostProgram:
    """``C = max(beta * C + A B, 0)`` three times, each time kept in a local array."""
    once = gemm(4, 5, 6)
    loop = HostLoop(
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
