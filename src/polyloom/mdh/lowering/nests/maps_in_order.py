"""Maps in place that one thread runs in an order in which they need no copy of what they overwrite.

    a_before := a                                          for i from 0 to n - 1:
    a = md_hom(a_before[i + 1] + b[i], (++)) (...)   ->      a[i] = a[i + 1] + b[i]

Every element that a point reads, another point overwrites later, or none does. Such loops have vectors of
the C compiler, since vectors go forwards. Several threads take the copy, but of maps too small for them; the
program asks where that is not known before. A loop unrolled by hand, of which some results need a copy, is
first a map along its rows (``reroll_maps``):

    a_old = md_hom(a[3 i + 3], (++)) (i)
    a, a, a = md_hom(..., a_old[3 i] * a[3 i + 2], (++)) (i)    ->    for j to 3 n: a[j] = a[j + 1] * a[j]

Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
    UnaryOp,
    walk,
)
from polyloom.ir.host import Buffer, Copy, HostNode, HostProgram, Index, MdHom, Nest, Order, Role, View, uses
from polyloom.ir.inequalities import conjunction, conjuncts
from polyloom.ir.transform.flatten_dimensions import lie_in_rows, with_fewer_dimensions
from polyloom.ir.transform.reroll_maps import rerolled
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED
from polyloom.mdh.tree.ranges import Bounds, not_negative, plus
from polyloom.polyhedra.loops.tree import (
    Branch,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Part,
    Tree,
    leaves_in,
    linear_terms,
    loop_over,
    names_in,
    product_of,
    sum_of,
)

GAIN = 0.7
"""Of one thread's time in order, what several with copies have to be below: they start, and meet twice."""

_QUICK = (BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.DIVIDE)


def maps_in_order(program: HostProgram, device: DeviceModel) -> HostProgram:
    """Return the program without copies before maps in place that may run in order.

    Every element gets the value that it had. ``--fp strict`` keeps its copies: gcc makes no vectors there.
    """
    if program.strict:
        return program
    touched = Counter(name for node in leaves_in(program.body) for name in uses([node]).all)
    local = {b.name for b in program.buffers if b.role is Role.LOCAL and touched[b.name] == 2}
    buffers = {b.name: b for b in program.buffers}
    known = tuple(bound for part in conjuncts(program.context) for bound in not_negative(part) or ())
    order = _InOrder(copies=frozenset(local), buffers=buffers, device=device, known=known)
    return replace(program, body=order.nodes(program.body))


@dataclass(frozen=True, kw_only=True)
class _InOrder:
    """``copies``: local buffers that one node fills and one reads. ``known``: integers of at least 0."""

    copies: frozenset[str]
    buffers: Mapping[str, Buffer]
    device: DeviceModel
    known: Bounds

    def nodes(self, nodes: Sequence[HostNode]) -> tuple[HostNode, ...]:
        found: list[HostNode] = []
        for node in nodes:
            found.append(self._node(node))
            before = _copies_before(found[:-1], node, self.copies) if isinstance(node, MdHom) else ()
            if not isinstance(node, MdHom) or not before:
                continue
            others = found[: -1 - len(before)]
            asked, bare = _without_outer_guard(node)
            known = (*self.known, *(bound for part in asked for bound in not_negative(part) or ()))
            nest = _in_order(bare, before, self.buffers, known)
            if nest is None:
                continue
            chosen = (nest,) if isinstance(nest, MdHom) else self._chosen(bare, nest, before)
            condition = conjunction(asked)
            found = [*others, *(chosen if condition is None else (Branch(condition, chosen, ()),))]
        return tuple(found)

    def _chosen(self, node: MdHom, nest: Nest, copies: Sequence[_Copying]) -> tuple[HostNode, ...]:
        """Return the loops in order where one thread is to run them, else the map with its copies.

        A copy is stored and loaded once more, by all threads; of two, each has more to do than one in order.
        """
        points = product_of((*node.extents, Number(len(node.terms))))
        moved = len(node.inputs) + len(node.outputs)
        if moved + 2 * len(copies) >= GAIN * moved * self.device.compute_units:
            return (nest,)
        if isinstance(points, Number):
            return (nest,) if points.value < LEAST_SHARED else (*reversed(copies), node)
        few = Operation("<", (points, Number(LEAST_SHARED)))
        ordered = replace(nest, name=f"{node.name}_in_order")
        return (Branch(few, (ordered,), (*reversed(copies), node)),)

    def _node(self, node: HostNode) -> HostNode:
        match node:
            case Loop(parallel=False, body=body):
                return replace(node, body=self.nodes(body))
            case Branch(body=body, otherwise=otherwise):
                return replace(node, body=self.nodes(body), otherwise=self.nodes(otherwise))
            case _:
                return node


_Copying = Copy | MdHom
"""What fills a local buffer: with all of another one, or point by point with one element of it each."""


def _copies_before(found: Sequence[HostNode], node: MdHom, local: frozenset[str]) -> tuple[_Copying, ...]:
    """Return what right before a map copies what it overwrites."""
    written, copies = {v.buffer for v in node.outputs}, list[_Copying]()
    for before in reversed(found):
        if not isinstance(before, Copy | MdHom) or not _copies(before, node, local):
            break
        copies.append(before)
    sources = {c.source if isinstance(c, Copy) else c.inputs[0].buffer for c in copies}
    return tuple(copies) if copies and sources <= written else ()


def _copies(before: _Copying, node: MdHom, local: frozenset[str]) -> bool:
    if isinstance(before, Copy):
        return before.target in local
    is_one = len(before.outputs) == len(before.inputs) == 1 and isinstance(before.terms[0], Read)
    is_map = all(o.order is Order.CONCATENATE for o in before.combine) and before.finish == (None,)
    is_whole = before.guard is None and before.written is None and before.extents == node.extents
    return is_one and is_map and is_whole and before.outputs[0].buffer in local


def _without_copies(view: View, copies: Sequence[_Copying]) -> View | None:
    """Return what a view read of a copy before it was copied; None where that is no view."""
    for copy in copies:
        if isinstance(copy, Copy) and copy.target == view.buffer:
            return replace(view, buffer=copy.source)
        if isinstance(copy, MdHom) and copy.outputs[0].buffer == view.buffer:
            return copy.inputs[0] if copy.outputs[0].indices == view.indices else None
    return view


def _without_outer_guard(node: MdHom) -> tuple[list[IntExpression], MdHom]:
    """Return conditions of a map that none of its points decides, and the map where they hold."""
    if any(o.order is not Order.CONCATENATE for o in node.combine):
        return [], node
    parts = {name: list(conjuncts(getattr(node, name))) for name in ("guard", "written")}
    inside = {n: [c for c in found if names_in(c) & set(node.iterators)] for n, found in parts.items()}
    outside = [c for n, found in parts.items() for c in found if c not in inside[n]]
    guard, written = conjunction(inside["guard"]), conjunction(inside["written"])
    return list(dict.fromkeys(outside)), replace(node, guard=guard, written=written)


def _in_order(
    node: MdHom, copies: Sequence[_Copying], buffers: Mapping[str, Buffer], known: Bounds
) -> Nest | MdHom | None:
    """Return a map in place as loops in an order that overwrites nothing too early, if there is one.

    Itself without its copies where no point overwrites what another one reads.
    """
    filled = {c.target if isinstance(c, Copy) else c.outputs[0].buffer for c in copies}
    inputs = [_without_copies(view, copies) for view in node.inputs]
    direct = tuple(view for view in inputs if view is not None)
    if len(direct) < len(inputs) or not filled <= {v.buffer for v in node.inputs}:
        return None
    moved = _along_rows(replace(node, inputs=direct), buffers)
    if not _is_plain(moved):
        return None
    pairs = [(out, view) for out in moved.outputs for view in moved.inputs if view.buffer == out.buffer]
    steps = [_points_between(out, view, moved.extents, known) for out, view in pairs]
    if any(step is None for step in steps):
        return None
    if not any(step and any(step) for step in steps) and not node.written:
        return moved
    later = [step for step in steps if step and any(step)]
    backwards = all(step < (0,) * len(step) for step in later)
    if not backwards and not all(step > (0,) * len(step) for step in later):
        return None
    nest = plain_nest(moved)
    body: Tree = nest.body
    for name, extent in reversed(list(zip(nest.iterators, nest.extents, strict=True))):
        body = (_loop_down(name, extent, body) if backwards else loop_over(name, extent, body),)
    return replace(nest, iterators=(), extents=(), body=body)


def _along_rows(node: MdHom, buffers: Mapping[str, Buffer]) -> MdHom:
    """Return a map whose results are computed alike as one along the rows that they lie in, or itself."""
    if all(map(_is_along_rows, (*node.inputs, *node.outputs))) or any(o.combiner for o in node.combine):
        return node
    made = rerolled(node)
    if made is node or not lie_in_rows(made, len(made.extents) - 1, buffers):
        return node
    flat, shapes = with_fewer_dimensions(made, buffers)
    return flat if all(shapes[name] == buffers[name] for name in shapes) else node


def _loop_down(name: str, extent: IntExpression, body: Tree) -> Loop[Part]:
    condition = Operation(">=", (Name(name), Number(0)))
    return Loop(iterator=name, start=plus(extent, -1), condition=condition, step=Number(-1), body=body)


def _is_plain(node: MdHom) -> bool:
    """Whether a node is a map along rows, of what all compilers have vectors for."""
    if any(o.order is not Order.CONCATENATE for o in node.combine) or node.guard or node.written:
        return False
    if any(f is not None for f in node.finish) or not all(_is_quick(t) for t in node.terms):
        return False
    return all(_is_along_rows(view) for view in (*node.inputs, *node.outputs))


def _is_quick(term: Expression) -> bool:
    return all(
        isinstance(part, Read | Constant | Iterator | ParameterValue | Convert | Select | Compare)
        or (isinstance(part, Binary) and part.op in _QUICK)
        or (isinstance(part, Unary) and part.op is UnaryOp.NEGATE)
        for part in walk(term)
    )


def _is_along_rows(view: View) -> bool:
    """Whether the innermost iterator moves a view by one element, or not at all."""
    indices = [index for index in view.indices if isinstance(index, Index)]
    if len(indices) < len(view.indices):
        return False
    steps = [index.coefficients[-1] for index in indices]
    return not any(steps[:-1]) and (not steps or steps[-1] in (0, 1))


def _points_between(
    out: View, view: View, extents: Sequence[IntExpression], known: Bounds
) -> tuple[int, ...] | None:
    """Return how many points later what a view reads at a point is overwritten; zeros: never, or by itself.

    None where that is not the same everywhere. A distance of which only the sign is known is taken for one
    point: it may be none, so it is of use where all others go the same way.
    """
    writes, reads = out.affine, view.affine
    found = [0] * len(writes[0].coefficients) if writes else []
    seen: set[int] = set()
    never = has_open = False
    for w, r in zip(writes, reads, strict=True):
        apart, moved = plus(r.offset, w.offset, -1), [k for k, c in enumerate(w.coefficients) if c]
        if w.coefficients != r.coefficients or len(moved) > 1:
            return None
        if not isinstance(apart, Number):
            sign = _sign(apart, known)
            if not moved or moved[0] in seen or not sign:
                return None
            has_open, found[moved[0]] = True, sign if w.coefficients[moved[0]] > 0 else -sign
            seen.add(moved[0])
            continue
        if not moved:
            never = never or apart.value != 0
            continue
        steps, rest = divmod(apart.value, w.coefficients[moved[0]])
        never = never or rest != 0
        if moved[0] in seen and found[moved[0]] != steps:
            if has_open:
                return None
            never = True
        extent = extents[moved[0]]
        never = never or (isinstance(extent, Number) and abs(steps) >= extent.value)
        found[moved[0]] = steps
        seen.add(moved[0])
    if never:
        return (0,) * len(found)
    is_one_way = min(found, default=0) >= 0 or max(found, default=0) <= 0
    return tuple(found) if len(seen) == len(found) and (is_one_way or not has_open) else None


def _sign(number: IntExpression, known: Bounds) -> int:
    """Return 1 where an integer is known not to be negative, -1 where not to be positive, else 0."""
    factors = {abs(factor) for factor, _ in linear_terms([(1, number)])[0]}
    for sign, bound, factor in product((1, -1), known, factors):
        more = sum_of([(sign, number), (-factor, bound)])
        if isinstance(more, Number) and more.value >= 0:
            return sign
    return 0
