"""The rules of host programs, each broken once; and a host program as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from polyloom.ir import InvalidProgram
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Iterator,
    ParameterValue,
    Read,
)
from polyloom.ir.host import (
    Assignment,
    Buffer,
    CombineOperator,
    Combiner,
    Copy,
    HostProgram,
    Index,
    MdHom,
    Nest,
    Order,
    Parameter,
    Role,
    View,
)
from polyloom.ir.text.host_programs import print_host
from polyloom.ir.types import ElementType
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import Branch, Instance, Loop, Name, Number, Operation

I32, F32 = ElementType.INT32, ElementType.FLOAT32
N, T = Name("n"), Name("t")
ROW, COLUMN = Index((1, 0)), Index((0, 1))
ADD = Combiner(name="+", results=(Binary(BinaryOp.ADD, Read(0, I32), Read(1, I32)),), neutral=(0,))
KEEP, SUM = CombineOperator(Order.CONCATENATE), CombineOperator(Order.POINTWISE, ADD)
HOM = MdHom(
    name="S1",
    iterators=("i", "j"),
    extents=(N, Operation("+", (T, Number(1)))),
    inputs=(View("A", (ROW, COLUMN)), View("y", (ROW,))),
    outputs=(View("y", (ROW,)),),
    terms=(Binary(BinaryOp.MULTIPLY, Read(0, I32), ParameterValue("n", I32)),),
    combine=(KEEP, SUM),
    initial=(Read(1, I32),),
    finish=(Binary(BinaryOp.MULTIPLY, Read(2, I32), Constant(3, I32)),),
    guard=Operation("<=", (Name("j"), Name("i"))),
    written=Operation("<", (Name("i"), T)),
)
ASSIGNMENT = Assignment(
    name="S2",
    iterators=("a",),
    target=View("s", ()),
    reads=(View("s", ()), View("y", (Index((1,)),))),
    value=Binary(BinaryOp.ADD, Read(0, I32), Read(1, I32)),
    condition=Compare(CompareOp.GT, Read(1, I32), Constant(0, I32)),
)
NEST = Nest(
    name="W",
    iterators=("p",),
    extents=(N,),
    body=(
        Loop(
            iterator="c0",
            start=Number(0),
            condition=Operation("<", (Name("c0"), Name("p"))),
            step=Number(1),
            body=(Instance("S2", (Name("c0"),)),),
        ),
    ),
    assignments=(ASSIGNMENT,),
    private=(Buffer(name="s", type=I32, shape=(), role=Role.LOCAL),),
)


def program(*body: Any) -> HostProgram:
    buffers = (
        Buffer(name="A", type=I32, shape=(N, N), role=Role.INPUT),
        Buffer(name="y", type=I32, shape=(N,), role=Role.UPDATED),
        Buffer(name="z", type=I32, shape=(N,), role=Role.LOCAL),
    )
    loop = Loop(iterator="t", start=Number(0), condition=Operation("<", (T, N)), step=Number(1), body=body)
    return HostProgram(
        name="p",
        parameters=(Parameter("n", I32),),
        buffers=buffers,
        body=(loop,),
        context=Operation(">", (N, Number(0))),
    )


GOOD = program(HOM, Branch(Operation("==", (T, Number(0))), (Copy("y", "z"),), (NEST,)))

TEXT = """\
program p(int32 n)
  where n > 0
  input   int32 A[n][n]
  updated int32 y[n]
  local   int32 z[n]

for t = 0; t < n; t += 1
  S1 : out_view(y)(i)(y[i]) . md_hom(f, (++, +)) . in_view(A, y)(i, j)(A[i][j], y[i])
    over    i < n, j < t + 1
    f       A[i][j] * int32(n)
    from    y[i]
    then    y[i] * 3
    where   j <= i
    written i < t
  if t == 0
    copy y to z
  else
    W : md_hom(f, (++))
      over    p < n
      private int32 s
      f
        for c0 = 0; c0 < p; c0 += 1
          S2(c0)
      with
        S2(a): s = s + y[a] if y[a] > 0
"""


def test_good_programs_have_a_text() -> None:
    verify(GOOD)
    assert print_host(GOOD) == TEXT


def hom(**changes: Any) -> HostProgram:
    return program(replace(HOM, **changes))


def nest(**changes: Any) -> HostProgram:
    return program(replace(NEST, **changes))


BROKEN = {
    "two buffers `A`": replace(GOOD, buffers=(*GOOD.buffers, GOOD.buffers[0])),
    "the shape of `A` speaks of `n`": replace(GOOD, parameters=()),
    "`A` has a first value": replace(GOOD, buffers=(replace(GOOD.buffers[0], start=1), *GOOD.buffers[1:])),
    "`A` has type bool": replace(
        GOOD, buffers=(replace(GOOD.buffers[0], type=ElementType.BOOL), *GOOD.buffers[1:])
    ),
    "which is no integer operator": hom(guard=Operation("xor", (N, N))),
    "two things are called `t`": hom(iterators=("i", "t")),
    "one of which there is not": program(Copy("y", "w")),
    "differ in type or shape": program(Copy("A", "z")),
    "the input `A` is written": hom(outputs=(View("A", (ROW, ROW)),)),
    "1 iterators, 2 extents": hom(iterators=("i",)),
    "1 outputs with 0 terms": hom(terms=()),
    "an extent speaks of `k`": hom(extents=(N, Name("k"))),
    "a condition speaks of `k`": hom(guard=Operation("<", (Name("k"), N))),
    "there is no buffer `w`": hom(outputs=(View("w", (ROW,)),)),
    "1 indices for `A` of rank 2": hom(inputs=(View("A", (ROW,)), HOM.inputs[1])),
    "1 coefficients for 2 iterators": hom(outputs=(View("y", (Index((1,)),)),)),
    "an index of `y` is float32": hom(outputs=(View("y", (Constant(1.0, F32),)),)),
    "no read number 9": hom(terms=(Read(9, I32),)),
    "another type than its buffer": hom(terms=(Read(0, F32),)),
    "no dimension 2": hom(terms=(Iterator(2, I32),)),
    "a function speaks of `k`": hom(terms=(ParameterValue("k", I32),)),
    "operands of types": hom(terms=(Binary(BinaryOp.ADD, Read(0, I32), Constant(1, F32)),)),
    "starts from float32": hom(initial=(Constant(0, F32),)),
    "is stored as int32": hom(finish=(Constant(0, F32),)),
    "`pw` without a combiner": hom(combine=(KEEP, CombineOperator(Order.POINTWISE))),
    "`\\+\\+` with a combiner": hom(combine=(CombineOperator(Order.CONCATENATE, ADD), SUM)),
    "combines 1 values, not 2": hom(combine=(KEEP, SUM), outputs=HOM.outputs * 2, terms=HOM.terms * 2,
                                    initial=(None, None), finish=(None, None)),
    "`\\+` gives float32": hom(combine=(KEEP, CombineOperator(Order.POINTWISE, replace(
        ADD, results=(Constant(1, F32),))))),
    "a start without a reduction": hom(combine=(KEEP, KEEP)),
    "uses a dimension that is reduced": hom(outputs=(View("y", (COLUMN,)),)),
    "1 iterators for 2 extents": nest(extents=(N, N)),
    "the body speaks of `q`": nest(body=(Instance("S2", (Name("q"),)),)),
    "no assignment `S2` of 2 iterators": nest(body=(Instance("S2", (N, N)),)),
    "no assignment `S9`": nest(body=(Instance("S9", ()),)),
    "float32 is stored as int32": nest(assignments=(replace(ASSIGNMENT, value=Constant(1, F32)),)),
    "no truth value": nest(assignments=(replace(ASSIGNMENT, condition=Constant(1, I32)),)),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_rules_are_named(fault: str) -> None:
    with pytest.raises(InvalidProgram, match=fault):
        verify(BROKEN[fault])


def shifted(name: str) -> Assignment:
    """Return the assignment with a read whose place is moved by an iterator of a loop of the nest."""
    reads = (ASSIGNMENT.reads[0], View("y", (Index((1,), Name(name)),)))
    return replace(ASSIGNMENT, reads=reads)


def test_assignments_speak_of_the_loops_around_all_of_their_instances() -> None:
    """Launches that are joined become loops of a nest, whose iterators stay in the views."""
    verify(nest(assignments=(shifted("c0"),)))
    outside = (*NEST.body, Instance("S2", (Number(0),)))
    for broken in (nest(assignments=(shifted("c1"),)), nest(assignments=(shifted("c0"),), body=outside)):
        with pytest.raises(InvalidProgram, match="an index of `y` speaks of"):
            verify(broken)
