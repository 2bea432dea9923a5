"""Names and elements as they are printed."""

from __future__ import annotations

import pytest

from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_scope import Scope, Variable
from polyloom.mdh.print.dialect import OPENCL, C, Dialect
from polyloom.mdh.tree.nodes import Load
from polyloom.polyhedra.loops.tree import Name, Number, Operation


@pytest.mark.parametrize(("dialect", "text"), [(OPENCL, "v.sb"), (C, "v[11]")])
def test_a_lane_behind_one_that_is_written_out_is_a_number(dialect: Dialect, text: str) -> None:
    """``v.s3 + 8`` would be something else."""
    vector = Variable("v", ElementType.FLOAT32, (Number(16),), held=True, lanes=16)
    scope = Scope({"lane": "3"}, {"v": vector}, dialect=dialect.noting())
    assert scope.load(Load("v", (Operation("+", (Name("lane"), Number(8))),))) == text
