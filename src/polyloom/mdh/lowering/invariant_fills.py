"""Constant fills hoisted out of repeated runs: borders around what every run writes anew.

    pad[all] = 0;  pad[1 .. n] = x;  y = conv(pad, W)       pad's border is 0 for good after the first run

A local buffer keeps its memory from run to run. A node that fills it with constants need not run again where
the only other writer of the buffer comes before all its readers and writes the same elements in every run:
the others are as the first run left them.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.ir.expressions import Constant
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Order, Role, uses


def hoisted_fills(program: HostProgram) -> frozenset[MdHom]:
    """Return the nodes of a program without parameters that only its first run needs."""
    users: dict[str, list[int]] = {}
    for place, node in enumerate(program.body):
        for name in uses([node]).all:
            users.setdefault(name, []).append(place)
    fills = [node for node in program.body if isinstance(node, MdHom) and _is_fill(node)]
    return frozenset(node for node in fills if _is_invariant(node, program, users[node.outputs[0].buffer]))


def _is_invariant(node: MdHom, program: HostProgram, users: Sequence[int]) -> bool:
    """Whether all runs leave what a fill stores; ``users``: where its buffer is used, in order."""
    name = node.outputs[0].buffer
    filling, *others = (program.body[k] for k in users)
    if program.buffer(name).role is not Role.LOCAL or filling != node or not others:
        return False
    first, *later = others
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
