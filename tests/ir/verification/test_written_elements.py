"""Which elements nodes write, and that what joins them may not change it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from polyloom.ir.expressions import BinaryOp, Read
from polyloom.ir.host import Assignment, CombineOperator, Copy, HostNode, Index, MdHom, Nest, Order, View
from polyloom.ir.types import ElementType
from polyloom.ir.verification.programs import InvalidProgram
from polyloom.ir.verification.written_elements import verify_writes, writes
from polyloom.polyhedra.loops.meaning import visit_the_same
from polyloom.polyhedra.loops.tree import Branch, Instance, Loop, Name, Number, Operation
from polyloom.scop.dependence.combiners import combiner

VALUE = Read(0, ElementType.INT32)
N = Name("n")
LAST = Operation("-", (N, Number(1)))
HALF = Operation("-", (N, Name("i")))
KEEP = CombineOperator(Order.CONCATENATE)
SUM = CombineOperator(Order.POINTWISE, combiner(BinaryOp.ADD, ElementType.INT32))
SCAN = replace(SUM, order=Order.PREFIX)


def view(*indices: Index) -> View:
    return View("s", indices)


def the_map(offset: int = 0, *, extent: object = N, step: int = 1, written: object = None) -> MdHom:
    """``s[step * i + offset] = x[i]`` for i below ``extent``."""
    inputs = (View("x", (Index((1,)),)),)
    target = view(Index((step,), Number(offset)))
    return MdHom(
        name="map",
        iterators=("i",),
        extents=(extent,),
        inputs=inputs,
        outputs=(target,),
        terms=(VALUE,),
        combine=(KEEP,),
        initial=(None,),
        finish=(None,),
        guard=written,
        written=written,  # type: ignore[arg-type]
    )


def combining(operator: CombineOperator) -> MdHom:
    """``s[i] += x[i][j]`` for i and j below n, or the sums up to each j in ``s[j]``."""
    target = view(Index((1, 0) if operator is SUM else (0, 1)))
    inputs = (View("x", (Index((1, 0)), Index((0, 1)))),)
    orders = (KEEP, operator)
    return MdHom(
        name="sum",
        iterators=("i", "j"),
        extents=(N, N),
        inputs=inputs,
        outputs=(target,),
        terms=(VALUE,),
        combine=orders,
        initial=(None,),
        finish=(None,),
    )


def nest(start: int, condition: Operation, step: int) -> Nest:
    """``for (k = start; condition; k += step) s[k] = x[k]`` as a node."""
    here = (Index((1,)),)
    assignment = Assignment(
        name="A", iterators=("i",), target=View("s", here), reads=(View("x", here),), value=VALUE
    )
    body = (
        Loop(
            iterator="k",
            start=Number(start),
            condition=condition,
            step=Number(step),
            body=(Instance("A", (Name("k"),)),),
        ),
    )
    return Nest(name="nest", iterators=(), extents=(), body=body, assignments=(assignment,))


def below(name: str, bound: object = N) -> Operation:
    return Operation("<", (Name(name), bound))  # type: ignore[arg-type]


def at(index: Index, extent: object = N) -> MdHom:
    return replace(the_map(extent=extent), outputs=(view(index),))


ONE_BY_ONE = Loop(
    iterator="t",
    start=Number(0),
    condition=below("t"),
    step=Number(1),
    body=(at(Index((1,), Name("t")), Number(1)),),
)
SAME = {
    "a map": (the_map(),),
    "a sum": (combining(SUM),),
    "a scan": (combining(SCAN),),
    "a nest": (nest(0, below("k"), 1),),
    "in two parts": (the_map(extent=Number(1), written=below("i")), the_map(1, extent=LAST)),
    "even and odd": (the_map(written=below("i", HALF), step=2), nest(1, below("k"), 2)),
    "a host loop": (ONE_BY_ONE,),
    "a branch": (Branch(below("n", Number(5)), (the_map(),), (combining(SUM),)),),
    "downwards": (at(Index((-1,), LAST)),),
}
OTHERS = {
    "one more": (the_map(extent=Operation("+", (N, Number(1)))),),
    "shifted": (the_map(1),),
    "not the first": (nest(1, below("k"), 1),),
    "even ones": (the_map(written=below("i", HALF), step=2),),
    "a copy too": (the_map(), Copy("x", "s")),
    "for small n": (Branch(below("n", Number(5)), (the_map(),)),),
}
"""All write ``s[0..n - 1]``, and none of these does."""


@pytest.mark.parametrize(("a", "b"), list(combinations(SAME, 2)))
def test_the_same_elements(a: str, b: str) -> None:
    verify_writes(SAME[a], SAME[b])


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["a map", "a nest", "in two parts"])
def test_other_elements(name: str, other: str) -> None:
    for pair in ((SAME[name], OTHERS[other]), (OTHERS[other], SAME[name])):
        with pytest.raises(InvalidProgram, match="other elements are written"):
            verify_writes(*pair)


def test_the_message_names_an_element() -> None:
    with pytest.raises(InvalidProgram, match=r"map: other elements .* lost: .*n = 1.* s\[0\]"):
        verify_writes((the_map(),), (the_map(1, extent=LAST),))


def test_buffers_that_only_pass_values_do_not_count() -> None:
    passed: tuple[HostNode, ...] = (replace(the_map(), outputs=(View("t", (Index((1,)),)),)), the_map())
    verify_writes(passed, (the_map(),), {"t"})
    with pytest.raises(InvalidProgram):
        verify_writes(passed, (the_map(),))


def test_conditions_on_data_count_as_writes_and_computed_indices_as_any() -> None:
    computed = replace(the_map(), outputs=(View("s", (VALUE,)),))
    verify_writes((computed,), (replace(computed, inputs=(View("y", (Index((1,)),)),)),))
    assert writes((computed,), {"s"}) == (
        Loop(
            iterator="i",
            start=Number(0),
            condition=below("i"),
            step=Number(1),
            body=(Instance("s", (Number(0),)),),
        ),
    )


def test_what_isl_cannot_express_is_left() -> None:
    product = Branch(Operation("<", (Operation("*", (N, N)), Number(9))), (Instance("s", ()),), ())
    assert visit_the_same((product,), (), ["n"]) is None
