"""Names that are declared again: each block's own."""

from __future__ import annotations

from polyloom.ir.naming import Names
from polyloom.mdh.tree.distinct import distinct
from polyloom.mdh.tree.nodes import LetInteger, counted
from polyloom.mdh.tree.text import code_lines
from polyloom.polyhedra.loops.tree import Name, Number, sum_of


def more(name: str) -> LetInteger:
    return LetInteger(name, sum_of([(1, Name(name)), (1, Number(1))]))


def test_a_block_that_declares_a_name_again_has_its_own() -> None:
    inner = counted("i", Name("r"), (more("r"), counted("j", Name("r"), ())))
    code = (LetInteger("r", Number(1)), more("r"), inner, more("r"), counted("k", Name("r"), ()))
    assert list(code_lines(distinct(Names({"r"}), code))) == [
        "integer r = 1",
        "integer r_1 = r + 1",
        "for i from 0 to r_1:",
        "  integer r_2 = r_1 + 1",
        "  for j from 0 to r_2:",
        "integer r_3 = r_1 + 1",
        "for k from 0 to r_3:",
    ]
