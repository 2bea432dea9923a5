"""Names of a tree's arrays and values, no two in a block or the blocks around it the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from polyloom.ir.naming import Names
from polyloom.mdh.tree.nodes import Array, Code, Let, LetInteger, Load, Statement
from polyloom.mdh.tree.rewrite import renamed_array, substituted, with_blocks
from polyloom.polyhedra.loops.tree import Name


def distinct(names: Names, code: Code, known: frozenset[str] = frozenset()) -> Code:
    """Give another name to what is declared again where the first of that name is still known.

    Keeps true: everything but names; copies of code by earlier passes had the same ones.
    """
    found: list[Statement] = []
    while code:
        statement, code = code[0], code[1:]
        if isinstance(statement, Array | Let | LetInteger):
            name = statement.name
            if name in known:
                new = names.of((object(),), name)
                code = _renamed(code, statement, new)
                statement = replace(statement, name=new)
            known |= {statement.name}
        found.append(with_blocks(statement, partial(distinct, names, known=known)))
    return tuple(found)


def _renamed(code: Code, declared: Array | Let | LetInteger, new: str) -> Code:
    """Rename what was declared, as far as it is known: a block may declare the name again."""
    name = declared.name
    again = (k for k, s in enumerate(code) if isinstance(s, Array | Let | LetInteger) and s.name == name)
    end = next(again, len(code))
    if isinstance(declared, LetInteger):
        return (*substituted(code[:end], name, Name(new)), *code[end:])
    return (*renamed_array(code[:end], name, Load(new)), *code[end:])
