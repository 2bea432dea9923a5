"""Constant fills hoisted out of repeated runs: borders around what every run writes anew.

    pad[all] = 0;  pad[1 .. n] = x;  y = conv(pad, W)       pad's border is 0 for good after the first run

A local buffer keeps its memory from run to run. A node that fills it with constants need not run again where
the only other writer of the buffer comes before all its readers and writes the same elements in every run:
the others are as the first run left them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from polyloom.ir.expressions import Constant
from polyloom.ir.host import Buffer, HostNode, HostProgram, Index, MdHom, Order, Role, View, uses


def hoisted_fills(program: HostProgram) -> frozenset[MdHom]:
    """Return the nodes of a program without parameters that only its first run needs."""
    users: dict[str, list[int]] = {}
    for place, node in enumerate(program.body):
        for name in uses([node]).all:
            users.setdefault(name, []).append(place)
    fills = [node for node in program.body if isinstance(node, MdHom) and _is_fill(node)]
    return frozenset(node for node in fills if _is_invariant(node, program, users[node.outputs[0].buffer]))


def alike(body: Sequence[HostNode], fills: Collection[MdHom], program: HostProgram) -> list[list[Buffer]]:
    """Return the buffers that ``fills`` store to and ``body`` writes anew, in groups that may share memory.

    Buffers of a group have the same elements left as they were filled, by the same constant.
    """
    filled = {fill.outputs[0].buffer: fill for fill in fills}
    groups: dict[object, list[Buffer]] = {}
    for node in body:
        for view in node.outputs if isinstance(node, MdHom) else ():
            if isinstance(node, MdHom) and view.buffer in filled:
                buffer = program.buffer(view.buffer)
                same = buffer.shape, buffer.type, filled[view.buffer].terms, _elements(node, view)
                groups.setdefault(same, []).append(buffer)
    return list(groups.values())


def _elements(node: MdHom, view: View) -> object:
    """Return what two stores have in common only where they store to the same elements."""
    if node.guard is not None or node.written is not None:
        return node
    axes = [(i.offset, [d for d, c in enumerate(i.coefficients) if c], i) for i in view.affine]
    order = list(dict.fromkeys(d for _, dimensions, _ in axes for d in dimensions))
    steps = [tuple((order.index(d), i.coefficients[d]) for d in along) for _, along, i in axes]
    return tuple(node.extents[d] for d in order), tuple(steps), tuple(offset for offset, _, _ in axes)


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
