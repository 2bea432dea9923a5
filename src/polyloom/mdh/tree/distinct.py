"""Names of a tree's arrays and values, no two in a block or the blocks around it the same."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from polyloom.ir.naming import Names
from polyloom.mdh.tree.nodes import Array, Code, Let, LetInteger, Load, Statement
from polyloom.mdh.tree.rewrite import blocks, renamed_array, substituted, with_blocks
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
    """Rename what was declared, as far as it is known: code, or a block in it, may declare the name again."""
    found: list[Statement] = []
    for k, statement in enumerate(code):
        found.append(_renamed_in(statement, declared, new))
        if isinstance(statement, Array | Let | LetInteger) and statement.name == declared.name:
            return (*found, *code[k + 1 :])
    return tuple(found)


def _renamed_in(statement: Statement, declared: Array | Let | LetInteger, new: str) -> Statement:
    """Rename what was declared before a statement, in it and its blocks; what it declares keeps its name."""
    bare = (with_blocks(statement, lambda block: ()),)
    if isinstance(declared, LetInteger):
        (changed,) = substituted(bare, declared.name, Name(new))
    else:
        (changed,) = renamed_array(bare, declared.name, Load(new))
    if isinstance(statement, Array | Let) and isinstance(changed, Array | Let):
        changed = replace(changed, name=statement.name)
    inner = iter(blocks(statement))
    return with_blocks(changed, lambda _: _renamed(next(inner), declared, new))
