"""Parts of a buffer stored where they belong, in programs that write each element once: concatenations.

    p[all] = 0;  p[c] = f(x)[c]               y[c] = f(x)[c]
    q[all] = 0;  q[64 + c] = g(x)[c]    ->    y[64 + c] = g(x)[c]
    y = p + q

A sum of buffers of which at most one is not 0 anywhere holds what was stored in one of them. A buffer that is
copied as a whole into neighbouring elements of another one is part of that one from the beginning: a list of
tensors that grows (DenseNet) is never copied. -0 stays -0 where a sum gave 0. Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Read
from polyloom.ir.host import Buffer, HostNode, HostProgram, Index, MdHom, Order, Role, View, uses
from polyloom.polyhedra.loops.tree import Number, sum_of

Box = tuple[tuple[int, int], ...]
"""Per axis of a buffer the first element, and the one behind the last."""

_SUMS = (BinaryOp.ADD, BinaryOp.OR)


def with_parts_in_place(program: HostProgram) -> HostProgram:
    """Return a program that stores and reads the same values, parts of a buffer in the buffer itself."""
    for node in program.body:
        if isinstance(node, MdHom):
            program = _without_sum(program, node)
    place = 0
    while place < len(program.body):
        node = program.body[place]
        found = _without_copy(program, node) if isinstance(node, MdHom) else program
        place += found is program  # else the next node is there now
        program = found
    return program


def _without_sum(program: HostProgram, total: MdHom) -> HostProgram:
    """Return the program without a sum of parts, if it is one."""
    names = _summands(total.terms[0])
    if len(total.outputs) != 1 or len(names) < 2 or not _is_map(total):
        return program
    target = program.buffer(total.outputs[0].buffer)
    views = [total.inputs[k] for k in names]
    if any(view.indices != total.outputs[0].indices for view in views) or _written(program)[target.name] != 1:
        return program
    pairs = [_filled_part(program, view.buffer, target) for view in views]
    boxes = [_box(node) for pair in pairs if pair is not None for node in pair[1:]]
    known = [box for box in boxes if box is not None]
    if len(known) < len(views) or _box(total) != _whole(target) or not _are_apart(known):
        return program
    fills, parts = zip(*(pair for pair in pairs if pair is not None), strict=True)
    covers = sum(map(_size, known)) == _size(_whole(target))
    start = () if covers else (_onto(fills[0], target.name),)
    moved = {id(part): (_onto(part, target.name),) for part in parts} | {id(total): ()}
    moved |= {id(fill): start if fill is fills[0] else () for fill in fills}
    gone = {view.buffer for view in views}
    body = tuple(other for node in program.body for other in moved.get(id(node), (node,)))
    return replace(program, body=body, buffers=tuple(b for b in program.buffers if b.name not in gone))


def _without_copy(program: HostProgram, copy: MdHom) -> HostProgram:
    """Return the program without a copy of a whole buffer into neighbouring elements, if it is one."""
    if len(copy.inputs) != 1 or len(copy.outputs) != 1 or not _is_map(copy) or copy.terms[0] != _copied(copy):
        return program
    source, target = (program.buffer(v.buffer) for v in (copy.inputs[0], copy.outputs[0]))
    box, units = _box(copy), copy.inputs[0].indices
    shapes = [_shape(source), _shape(target)]
    same_rank = len(source.shape) == len(target.shape)
    is_local = source.role is Role.LOCAL and source.type is target.type and source.name != target.name
    if box is None or not is_local or not same_rank or _extents(copy) != shapes[0]:
        return program
    rank = len(source.shape)
    if units != tuple(Index.unit(k, rank) for k in range(rank)) or not _lies_together(box, shapes[1]):
        return program
    if not _may_be_one(program, copy, source.name, target.name, box):
        return program
    offsets = [low for low, _ in box]
    body = [_within(node, source.name, target.name, offsets) for node in program.body if node is not copy]
    if any(node is None for node in body):
        return program
    buffers = tuple(b for b in program.buffers if b is not source)
    return replace(program, body=tuple(node for node in body if node is not None), buffers=buffers)


def _may_be_one(program: HostProgram, copy: MdHom, source: str, target: str, box: Box) -> bool:
    """Whether a source keeps its elements where the copy is, and only the copy stores there."""
    place = next(k for k, node in enumerate(program.body) if node is copy)
    for k, node in enumerate(program.body):
        of = uses((node,))
        if source in of.written and (k > place or not isinstance(node, MdHom)):
            return False
        if node is copy or target not in of.all:
            continue
        if source in of.all or (target in of.read and k < place):
            return False
        if target in of.written:
            other = _box(node) if isinstance(node, MdHom) and len(node.outputs) == 1 else None
            if other is None or not _are_apart([box, other]):
                return False
    return True


def _within(node: HostNode, source: str, target: str, offsets: Sequence[int]) -> HostNode | None:
    """Return a node with elements of one buffer as those of another; None where it is none that is known."""
    if source not in uses((node,)).all:
        return node
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


def _filled_part(program: HostProgram, name: str, target: Buffer) -> tuple[MdHom, MdHom] | None:
    """Return who fills a buffer with 0, and who writes a part of it then; None where it is not that."""
    buffer = program.buffer(name)
    if (buffer.role, buffer.type, buffer.shape) != (Role.LOCAL, target.type, target.shape):
        return None
    users = [node for node in program.body if name in uses((node,)).all]
    if len(users) != 3 or not all(isinstance(node, MdHom) for node in users):
        return None
    fill, part, _ = (node for node in users if isinstance(node, MdHom))
    if not _is_zero(fill) or _box(fill) != _whole(buffer) or {name, target.name} & uses((part,)).read:
        return None
    alone = [view.buffer for view in part.outputs] == [name]
    return (fill, part) if alone else None


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


def _written(program: HostProgram) -> Counter[str]:
    return Counter(name for node in program.body for name in uses((node,)).written)


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
