"""Launches that one run makes for all later ones: constants around what every run writes anew.

    pad[all] = 0;  pad[1 .. n] = x;  y = conv(pad, W)       pad's border is 0 for good after the first run

A local buffer keeps its memory from run to run. A node that fills it with constants need not run again where
the only other writer of the buffer comes before all its readers and writes the same elements in every run:
the others are as the first run left them.
"""

from __future__ import annotations

from polyloom.ir.expressions import Constant
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Order, Role, uses


def lasting_fills(program: HostProgram) -> frozenset[int]:
    """Return the ``id`` of each node of a program without parameters that only its first run needs."""
    return frozenset(id(node) for node in program.body if isinstance(node, MdHom) and _lasts(node, program))


def _lasts(node: MdHom, program: HostProgram) -> bool:
    if not _is_fill(node) or program.buffer(node.outputs[0].buffer).role is not Role.LOCAL:
        return False
    name, place = node.outputs[0].buffer, next(k for k, n in enumerate(program.body) if n is node)
    users = [k for k, n in enumerate(program.body) if n is not node and name in uses([n]).all]
    if not users or users[0] < place:
        return False
    first, *later = (program.body[k] for k in users)
    return _writes_always(first, name) and name not in uses(later).written


def _is_fill(node: MdHom) -> bool:
    """Whether an md_hom writes nothing but constants."""
    values = [e for e in (*node.terms, *node.initial, *node.finish) if e is not None]
    maps = all(operator.order is Order.CONCATENATE for operator in node.combine)
    return maps and len(node.outputs) == 1 and all(isinstance(e, Constant) for e in values)


def _writes_always(node: HostNode, name: str) -> bool:
    """Whether a node writes the same elements of a buffer in every run, whatever the data, and reads none."""
    if not isinstance(node, MdHom) or name in uses([node]).read:
        return False
    indices = [index for view in node.outputs for index in view.indices]
    return all(isinstance(index, Index) for index in indices)
