"""Pointers that are set before each use, as pointers that are declared there.

    float *row;                                   for (y = 0; y < h; y++) {
    for (y = 0; y < h; y++) {             ->        float *row = d + y * w;
      row = d + y * w;                              for (x = 0; x < w; x++) row[x] = 0;
      for (x = 0; x < w; x++) row[x] = 0;         }
    }

So each is one place for as long as it is used. That is the same where all uses in the part stand behind an
assignment in the same block, which nothing between them changes, and nobody reads the pointer after the part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

from pycparser import c_ast

from polyloom.frontends.c.syntax.nodes import nodes_in
from polyloom.frontends.c.syntax.regions import Region
from polyloom.frontends.c.syntax.stepped_pointers import is_pointer

Block = list[c_ast.Node]


def with_row_pointers(region: Region, *, unread: Callable[[str], bool]) -> Region:
    """Return a part with declarations in place of assignments to such pointers.

    ``unread``: whether nobody reads a variable after the part.
    """
    names = dict.fromkeys(s.lvalue.name for block in _blocks(region.body) for s in block if _sets(s))
    counts = Counter(n.name for n in nodes_in(region.function) if isinstance(n, c_ast.Decl))
    inside = [n for node in region.body for n in nodes_in(node) if is_pointer(n)]
    outer = [n for n in (*_arguments(region), *_declared(region.before)) if is_pointer(n)]
    found = [d for d in (*inside, *outer) if d.name in names and counts[d.name] == 1]
    body = list(region.body)
    for pointer in found:
        if pointer in inside or not region.marked or unread(pointer.name):
            body = _declared_where_set(body, pointer, frozenset(counts)) or body
    return region if body == list(region.body) else replace(region, body=tuple(body))


def _arguments(region: Region) -> Sequence[c_ast.Node]:
    listed = region.function.decl.type.args
    return listed.params if listed is not None else ()


def _declared(nodes: Sequence[c_ast.Node]) -> Iterator[c_ast.Node]:
    for node in nodes:
        yield from node.decls if isinstance(node, c_ast.DeclList) else [node]


def _sets(node: c_ast.Node) -> bool:
    """Whether a statement is ``p = e``, where e does not read p."""
    match node:
        case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=name), rvalue=value):
            return not _is_named(value, name)
        case _:
            return False


def _blocks(nodes: Sequence[c_ast.Node]) -> Iterator[Sequence[c_ast.Node]]:
    """Yield the blocks of statements, the given one first."""
    yield nodes
    for node in nodes:
        for inner in nodes_in(node):
            if isinstance(inner, c_ast.Compound):
                yield inner.block_items or ()


def _uses(node: c_ast.Node, name: str) -> Iterator[c_ast.ID]:
    """Yield where a variable is named; members of structures may have the same name."""
    if isinstance(node, c_ast.ID) and node.name == name:
        yield node
    match node:
        case c_ast.StructRef(name=base):
            yield from _uses(base, name)
        case c_ast.NamedInitializer(expr=value):
            yield from _uses(value, name)
        case _:
            for _, child in node.children():
                yield from _uses(child, name)


def _is_named(node: c_ast.Node, name: str) -> bool:
    return next(_uses(node, name), None) is not None


def _declared_where_set(body: Block, pointer: c_ast.Decl, taken: frozenset[str]) -> Block | None:
    """Return statements with declarations of a pointer; None where it is used otherwise, too."""
    new = deepcopy(body)
    number, left = 0, sum(1 for node in new for _ in _uses(node, pointer.name))
    for block in [new, *(n.block_items for node in new for n in nodes_in(node) if _is_block(n))]:
        places = [k for k, s in enumerate(block) if _sets(s) and s.lvalue.name == pointer.name]
        for at, end in pairwise([*places, len(block)]):
            segment = block[at + 1 : end]
            if not all(_only_reads(node, pointer.name) for node in segment):
                return None
            name = _free(pointer.name, number, taken)
            uses = [use for node in segment for use in _uses(node, pointer.name)]
            block[at] = _declaration(pointer, name, block[at])
            number, left = number + 1, left - len(uses) - 1
            for use in uses:
                use.name = name
    return None if left or not number else new


def _is_block(node: c_ast.Node) -> bool:
    return isinstance(node, c_ast.Compound) and bool(node.block_items)


def _only_reads(node: c_ast.Node, name: str) -> bool:
    """Whether a statement neither sets a pointer, takes its address, nor is where a jump leads to."""
    match node:
        case c_ast.Assignment(op="=", lvalue=c_ast.ID(name=found)) if found == name:
            return False
        case c_ast.UnaryOp(op="&" | "sizeof", expr=c_ast.ID(name=found)) if found == name:
            return False
        case c_ast.Label() | c_ast.Case() | c_ast.Default() if _is_named(node, name):
            return False
        case _:
            return all(_only_reads(child, name) for _, child in node.children())


def _free(name: str, number: int, taken: frozenset[str]) -> str:
    """Return the name of a pointer from one of its assignments on; the first keeps its own."""
    found = f"{name}_{number}" if number else name
    while number and found in taken:
        found += "_"
    return found


def _declaration(pointer: c_ast.Decl, name: str, at: c_ast.Assignment) -> c_ast.Decl:
    kind = deepcopy(pointer.type)
    inner = kind
    while not isinstance(inner, c_ast.TypeDecl):
        inner = inner.type
    inner.declname = name
    return c_ast.Decl(name, list(pointer.quals or []), [], [], [], kind, at.rvalue, None, at.coord)
