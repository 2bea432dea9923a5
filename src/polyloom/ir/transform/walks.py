"""How the points of a program go through its arrays: along rows, or from row to row."""

from __future__ import annotations

from collections.abc import Iterable

from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Nest, Role, View
from polyloom.polyhedra.loops.tree import Loop, leaves_in, nodes_in


def goes_along_rows(view: View) -> bool:
    """Return whether an iterator moves along the last subscript alone."""
    if not all(isinstance(index, Index) for index in view.indices) or not view.indices:
        return False
    *outer, last = (index.coefficients for index in view.affine)
    return any(c and not any(o[k] for o in outer) for k, c in enumerate(last))


def loops_cross_rows(program: HostProgram) -> bool:
    """Return whether the md_homs in host loops store from row to row alone: no two neighbours in memory.

    What they store to arrays of the program's own does not count.
    """
    given = {b.name for b in program.buffers if b.role is not Role.LOCAL}
    stored = [view for view in _stored_in_loops(program.body) if view.buffer in given and _moves(view)]
    return bool(stored) and not any(map(goes_along_rows, stored))


def walks_along_rows(program: HostProgram) -> bool:
    """Return whether the innermost loop of each assignment stays where it is, or goes to neighbours."""
    leaves = list(leaves_in(program.body))
    if not all(isinstance(leaf, Nest) for leaf in leaves):
        return False
    nests = (leaf for leaf in leaves if isinstance(leaf, Nest))
    views = (view for nest in nests for a in nest.assignments for view in (a.target, *a.reads))
    return all(map(_ends_along_rows, views))


def _stored_in_loops(nodes: tuple[HostNode, ...]) -> Iterable[View]:
    loops = (node for node in nodes_in(nodes) if isinstance(node, Loop))
    leaves = (leaf for loop in loops for leaf in leaves_in(loop.body))
    return (view for leaf in leaves if isinstance(leaf, MdHom) for view in leaf.outputs)


def _moves(view: View) -> bool:
    return any(not isinstance(index, Index) or any(index.coefficients) for index in view.indices)


def _ends_along_rows(view: View) -> bool:
    if not all(isinstance(index, Index) for index in view.indices):
        return False
    steps = [index.coefficients[-1] for index in view.affine if index.coefficients]
    return not any(steps[:-1]) and abs(steps[-1] if steps else 0) <= 1
