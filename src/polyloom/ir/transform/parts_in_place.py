"""Parts of a buffer stored where they belong, in programs that write each element once: concatenations.

    p[all] = 0;  p[c] = f(x)[c]               y[c] = f(x)[c]
    q[all] = 0;  q[64 + c] = g(x)[c]    ->    y[64 + c] = g(x)[c]
    y = p + q

A sum of buffers of which at most one is not 0 anywhere holds what was stored in one of them. A buffer that is
copied as a whole into neighbouring elements of another one is part of that one from the beginning: a list of
tensors that grows (DenseNet) is never copied. -0 stays -0 where a sum gave 0. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Read
from polyloom.ir.host import Buffer, HostNode, HostProgram, Index, MdHom, Order, Role, Uses, View, uses
from polyloom.polyhedra.loops.tree import Number, sum_of

Box = tuple[tuple[int, int], ...]
"""Per axis of a buffer the first element, and the one behind the last."""

_SUMS = (BinaryOp.ADD, BinaryOp.OR)


def with_parts_in_place(program: HostProgram) -> HostProgram:
    """Return a program that stores and reads the same values, parts of a buffer in the buffer itself."""
    draft = _Draft(program)
    for drop in (_drop_sum, _drop_copy):
        for place in range(len(program.body)):
            node = draft.nodes[place]
            if isinstance(node, MdHom):
                drop(draft, place, node)
    body = tuple(node for node in draft.nodes if node is not None)
    return replace(program, body=body, buffers=tuple(draft.buffers.values()))


@dataclass(frozen=True)
class _User:
    """A node that uses a buffer, and its place in the program."""

    place: int
    node: HostNode
    uses: Uses


class _Draft:
    """A program whose nodes are replaced or taken away one at a time, with the users of each buffer."""

    def __init__(self, program: HostProgram) -> None:
        self.buffers = dict(program.by_name)
        self.nodes: list[HostNode | None] = [None] * len(program.body)
        self._users: dict[str, dict[int, _User]] = {name: {} for name in self.buffers}
        for place, node in enumerate(program.body):
            self.put(place, node)

    def put(self, place: int, node: HostNode | None) -> None:
        """Replace a node; None takes it away."""
        old = self.nodes[place]
        for name in uses(() if old is None else (old,)).all:
            del self._users[name][place]
        self.nodes[place] = node
        if node is not None:
            user = _User(place, node, uses((node,)))
            for name in user.uses.all:
                self._users[name][place] = user

    def users(self, *names: str) -> list[_User]:
        """Return who uses one of these buffers, in the program's order."""
        found = {place: user for name in names for place, user in self._users[name].items()}
        return [found[place] for place in sorted(found)]


def _drop_sum(draft: _Draft, place: int, total: MdHom) -> None:
    """Take away a sum of parts, if it is one."""
    names = _summands(total.terms[0])
    if len(total.outputs) != 1 or len(names) < 2 or not _is_map(total):
        return
    target = draft.buffers[total.outputs[0].buffer]
    views = [total.inputs[k] for k in names]
    writers = [user for user in draft.users(target.name) if target.name in user.uses.written]
    if any(view.indices != total.outputs[0].indices for view in views) or len(writers) != 1:
        return
    pairs = [pair for view in views if (pair := _filled_part(draft, view.buffer, target)) is not None]
    boxes = [box for _, part in pairs if (box := _box(part[1])) is not None]
    if len(boxes) < len(views) or _box(total) != _whole(target) or not _are_apart(boxes):
        return
    covers = sum(map(_size, boxes)) == _size(_whole(target))
    first = min(at for (at, _), _ in pairs)
    for (at, fill), (part_at, part) in pairs:
        draft.put(at, None if covers or at != first else _onto(fill, target.name))
        draft.put(part_at, _onto(part, target.name))
    draft.put(place, None)
    for view in views:
        del draft.buffers[view.buffer]


def _drop_copy(draft: _Draft, place: int, copy: MdHom) -> None:
    """Take away a copy of a whole buffer into neighbouring elements, if it is one."""
    if len(copy.inputs) != 1 or len(copy.outputs) != 1 or not _is_map(copy) or copy.terms[0] != _copied(copy):
        return
    source, target = (draft.buffers[v.buffer] for v in (copy.inputs[0], copy.outputs[0]))
    box, units = _box(copy), copy.inputs[0].indices
    shapes = [_shape(source), _shape(target)]
    same_rank = len(source.shape) == len(target.shape)
    is_local = source.role is Role.LOCAL and source.type is target.type and source.name != target.name
    if box is None or not is_local or not same_rank or _extents(copy) != shapes[0]:
        return
    rank = len(source.shape)
    if units != tuple(Index.unit(k, rank) for k in range(rank)) or not _lies_together(box, shapes[1]):
        return
    if not _may_be_one(draft, place, source.name, target.name, box):
        return
    offsets = [low for low, _ in box]
    others = [user for user in draft.users(source.name) if user.place != place]
    moved = [_within(user.node, source.name, target.name, offsets) for user in others]
    if any(node is None for node in moved):
        return
    for user, node in zip(others, moved, strict=True):
        draft.put(user.place, node)
    draft.put(place, None)
    del draft.buffers[source.name]


def _may_be_one(draft: _Draft, place: int, source: str, target: str, box: Box) -> bool:
    """Whether a source keeps its elements where the copy at a place is, and only the copy stores there."""
    for user in draft.users(source, target):
        of = user.uses
        if source in of.written and (user.place > place or not isinstance(user.node, MdHom)):
            return False
        if user.place == place or target not in of.all:
            continue
        if source in of.all or (target in of.read and user.place < place):
            return False
        if target in of.written:
            node = user.node
            other = _box(node) if isinstance(node, MdHom) and len(node.outputs) == 1 else None
            if other is None or not _are_apart([box, other]):
                return False
    return True


def _within(node: HostNode, source: str, target: str, offsets: Sequence[int]) -> HostNode | None:
    """Return a node with elements of one buffer as those of another; None where it is none that is known."""
    if not isinstance(node, MdHom):
        return None

    def moved(view: View) -> View | None:
        if view.buffer != source:
            return view
        indices = [i for i in view.indices if isinstance(i, Index)]
        if len(indices) < len(view.indices):
            return None
        pairs = zip(indices, offsets, strict=True)
        places = (replace(i, offset=sum_of([(1, i.offset), (1, Number(at))])) for i, at in pairs)
        return View(target, tuple(places), view.span)

    inputs, outputs = [[moved(v) for v in views] for views in (node.inputs, node.outputs)]
    if None in inputs or None in outputs:
        return None
    return replace(
        node,
        inputs=tuple(v for v in inputs if v is not None),
        outputs=tuple(v for v in outputs if v is not None),
    )


def _summands(term: Expression) -> list[int]:
    """Return which inputs a term is the sum of, each once; none where it is something else."""
    match term:
        case Read(position=k):
            return [k]
        case Binary(op=op, left=left, right=right) if op in _SUMS:
            found = [_summands(left), _summands(right)]
            return [*found[0], *found[1]] if all(found) and not set(found[0]) & set(found[1]) else []
        case _:
            return []


_Placed = tuple[int, MdHom]
"""A node with its place in the program."""


def _filled_part(draft: _Draft, name: str, target: Buffer) -> tuple[_Placed, _Placed] | None:
    """Return who fills a buffer with 0, and who writes a part of it then; None where it is not that."""
    buffer = draft.buffers[name]
    if (buffer.role, buffer.type, buffer.shape) != (Role.LOCAL, target.type, target.shape):
        return None
    users = draft.users(name)
    nodes = [user.node for user in users if isinstance(user.node, MdHom)]
    if len(users) != 3 or len(nodes) != 3:
        return None
    fill, part, _ = nodes
    if not _is_zero(fill) or _box(fill) != _whole(buffer) or {name, target.name} & users[1].uses.read:
        return None
    alone = [view.buffer for view in part.outputs] == [name]
    return ((users[0].place, fill), (users[1].place, part)) if alone else None


def _is_zero(node: MdHom) -> bool:
    match node.terms:
        case (Constant(value=value),):
            return _is_map(node) and value == 0 and len(node.outputs) == 1
        case _:
            return False


def _is_map(node: MdHom) -> bool:
    """Whether each point of a rectangle is stored, as it is."""
    parts = (node.guard, node.written, *node.initial, *node.finish)
    keeps = all(operator.order is Order.CONCATENATE for operator in node.combine)
    return keeps and all(part is None for part in parts)


def _onto(node: MdHom, target: str) -> MdHom:
    return replace(node, outputs=(replace(node.outputs[0], buffer=target),))


def _copied(copy: MdHom) -> Expression:
    return Read(0, copy.terms[0].type)


def _shape(buffer: Buffer) -> list[int] | None:
    found = [n.value for n in buffer.shape if isinstance(n, Number)]
    return found if len(found) == len(buffer.shape) else None


def _extents(node: MdHom) -> list[int] | None:
    found = [n.value for n in node.extents if isinstance(n, Number)]
    return found if len(found) == len(node.extents) else None


def _whole(buffer: Buffer) -> Box | None:
    shape = _shape(buffer)
    return None if shape is None else tuple((0, n) for n in shape)


def _box(node: MdHom) -> Box | None:
    """Return the box of elements that an md_hom writes, each of them; None where they are no known box."""
    extents, found, used = _extents(node), list[tuple[int, int]](), set[int]()
    if extents is None or node.written is not None:
        return None
    reduces = any(operator.order is Order.POINTWISE for operator in node.combine)
    if node.guard is not None and not reduces:
        return None
    for index in node.outputs[0].indices:
        if not isinstance(index, Index) or not isinstance(index.offset, Number):
            return None
        along = {d: c for d, c in enumerate(index.coefficients) if c}
        if any(c != 1 for c in along.values()) or len(along) > 1 or used & set(along):
            return None
        used |= set(along)
        low = index.offset.value
        found.append((low, low + (extents[next(iter(along))] if along else 1)))
    kept = {d for d, o in enumerate(node.combine) if o.order is not Order.POINTWISE and extents[d] != 1}
    return tuple(found) if kept <= used else None


def _are_apart(boxes: Sequence[Box]) -> bool:
    """Whether no two boxes have an element in common."""
    return all(
        any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))
        for k, one in enumerate(boxes)
        for other in boxes[:k]
    )


def _size(box: Box | None) -> int:
    return prod(high - low for low, high in box or ())


def _lies_together(box: Box, shape: Sequence[int] | None) -> bool:
    """Whether a box is one row of memory: axes in front of the one that it has a part of have one point."""
    if shape is None:
        return False
    partial = [k for k, (low, high) in enumerate(box) if (low, high) != (0, shape[k])]
    return len(partial) <= 1 and all(shape[k] == 1 for k in range(partial[0] if partial else 0))
