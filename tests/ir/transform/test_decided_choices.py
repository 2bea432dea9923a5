"""Comparisons that types decide: over all values, and in programs."""

from __future__ import annotations

import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.expressions import Compare, CompareOp, Constant, Convert, Read, Select, walk
from polyloom.ir.host import MdHom
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import ValueRanges
from polyloom.polyhedra.loops.tree import nodes_in
from polyloom.scop.transform import host_program

_TRUTH = {
    CompareOp.LT: lambda a, b: a < b,
    CompareOp.LE: lambda a, b: a <= b,
    CompareOp.GT: lambda a, b: a > b,
    CompareOp.GE: lambda a, b: a >= b,
    CompareOp.EQ: lambda a, b: a == b,
    CompareOp.NE: lambda a, b: a != b,
}


@pytest.mark.parametrize("op", _TRUTH)
@pytest.mark.parametrize("turned", [False, True])
def test_what_holds_for_all_bytes_is_known(op: CompareOp, turned: bool) -> None:
    byte, kind = Convert(ElementType.INT32, Read(0, ElementType.UINT8)), ElementType.INT32
    for number in (-2, -1, 0, 1, 7, 254, 255, 256, 257):
        constant = Constant(number, kind)
        found = ValueRanges(()).holds(Compare(op, constant, byte) if turned else Compare(op, byte, constant))
        pairs = ((number, value) if turned else (value, number) for value in range(256))
        truths = {_TRUTH[op](a, b) for a, b in pairs}
        assert found is (truths.pop() if len(truths) == 1 else None), number


def test_choices_that_types_decide_are_gone() -> None:
    text = "void f(int n, const unsigned *a, const unsigned char *b, float *c) {\n#pragma scop\n"
    text += "for (int i = 0; i < n; i++) c[i] = (a[i] - 2u < 0u ? 1 : 2) + (b[i] > 255 ? 1 : 3)"
    text += " + (b[i] > 254 ? 1 : 4) + (c[i] >= 0 ? 1 : 5);\n#pragma endscop\n}"
    found = host_program(next(iter(read_c(Source("f.c", text))))).program
    (hom,) = (node for node in nodes_in(found.body) if isinstance(node, MdHom))
    choices = [part.otherwise for term in hom.terms for part in walk(term) if isinstance(part, Select)]
    assert [part.value for part in choices if isinstance(part, Constant)] == [4, 5]
    assert "a" not in {view.buffer for view in hom.inputs}
