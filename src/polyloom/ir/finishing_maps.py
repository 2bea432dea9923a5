"""Maps as the end of the md_homs before them: a result is finished where it is, and stored once.

r = conv(x, W); s = r * scale + shift; y = max(s, 0)    becomes    y = max(conv(x, W) * scale + shift, 0)

A map joins the md_hom whose result it alone reads, element by element, when that result is of no use to the
caller, and unless the two together would need loops over more dimensions than the md_hom alone
(``fewer_dimensions``). Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.expressions import Constant, Expression, Read, walk
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.fewer_dimensions import with_fewer_dimensions
from polyloom.ir.host import (
    Buffer,
    HostBranch,
    HostLoop,
    HostNode,
    HostProgram,
    Index,
    MdHom,
    Order,
    Role,
    View,
    buffers_read,
    buffers_written,
    walk_host,
)
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops_tree import Number

ZERO = Number(0)

MOST_PARTS = 256
"""How long the end of an md_hom may get: a map that reads a result twice has what made it twice."""


def with_finishing_maps(program: HostProgram) -> HostProgram:
    """Return the program with maps joined to what they finish; buffers that are of no more use are gone."""
    nodes = [node for node in walk_host(program.body) if not isinstance(node, HostLoop | HostBranch)]
    reads = Counter(name for node in nodes for name in set(buffers_read(node)))
    writes = Counter(name for node in nodes for name in set(buffers_written(node)))
    passing = {
        b.name: b for b in program.buffers if b.role is Role.LOCAL and reads[b.name] == writes[b.name] == 1
    }
    body = _Joiner({b.name: b for b in program.buffers}, passing).nodes(program.body)
    used = {name for node in body for name in (*buffers_read(node), *buffers_written(node))}
    buffers = tuple(b for b in program.buffers if b.name in used or b.name not in passing)
    return replace(program, body=body, buffers=buffers)


@dataclass(frozen=True)
class _Joiner:
    """``passing``: buffers that one node writes and one reads, and nobody else sees."""

    buffers: Mapping[str, Buffer]
    passing: Mapping[str, Buffer]

    def nodes(self, nodes: Sequence[HostNode]) -> tuple[HostNode, ...]:
        """Return the nodes of one body, each map with what it finishes at its own place."""
        done: list[HostNode] = []
        for node in nodes:
            match node:
                case HostLoop(body=body):
                    done.append(replace(node, body=self.nodes(body)))
                case HostBranch(body=body, otherwise=otherwise):
                    done.append(replace(node, body=self.nodes(body), otherwise=self.nodes(otherwise)))
                case MdHom():
                    done.append(self._joined(node, done))
                case _:
                    done.append(node)
        return tuple(done)

    def _joined(self, node: MdHom, done: list[HostNode]) -> MdHom:
        """Return a node with what it finishes, which leaves ``done``: the latest that can come this late."""
        if not _is_map(node):
            return node
        for k in reversed(range(len(done))):
            before = done[k]
            if not isinstance(before, MdHom) or not self._passes(before, node):
                continue
            after = {name for other in done[k + 1 :] for name in buffers_written(other)}
            whole = _finished(before, node, self.buffers)
            if (
                after.isdisjoint(buffers_read(before))
                and whole is not None
                and self._stays_flat(before, whole)
            ):
                del done[k]
                return whole
        return node

    def _passes(self, before: MdHom, node: MdHom) -> bool:
        return (
            len(before.outputs) == 1
            and before.outputs[0].buffer in {*buffers_read(node)} & self.passing.keys()
        )

    def _stays_flat(self, before: MdHom, whole: MdHom) -> bool:
        """Whether the whole needs loops over no more dimensions than the part before the map."""
        first, _ = with_fewer_dimensions(before, self.buffers)
        second, _ = with_fewer_dimensions(whole, self.buffers)
        return len(second.extents) <= len(first.extents)


def _is_map(node: MdHom) -> bool:
    plain = (
        node.guard is None and node.written is None and all(e is None for e in (*node.initial, *node.finish))
    )
    return plain and len(node.outputs) == 1 and all(o.order is Order.CONCATENATE for o in node.combine)


def _finished(before: MdHom, node: MdHom, buffers: Mapping[str, Buffer]) -> MdHom | None:
    """Return ``before`` with a map of its result as its end; None where they do not go point by point."""
    name = before.outputs[0].buffer
    through = [k for k, view in enumerate(node.inputs) if view.buffer == name]
    dimensions = _matching(before, node, node.inputs[through[0]], buffers[name])
    apart = any(view != node.inputs[through[0]] for view in (node.inputs[k] for k in through))
    if dimensions is None or apart or not _may_end(before, buffers[name].type):
        return None
    affine = all(isinstance(index, Index) for view in (*node.inputs, *node.outputs) for index in view.indices)
    in_place = {v.buffer for v in node.outputs} & {*buffers_read(before), *buffers_read(node)}
    whole = _Ending(before, node, tuple(through), dimensions).whole() if affine and not in_place else None
    return whole if whole is not None and _length(whole) <= MOST_PARTS else None


def _length(hom: MdHom) -> int:
    return sum(1 for e in hom.finish if e is not None for _ in walk(e))


def _may_end(before: MdHom, kind: ElementType) -> bool:
    """Whether an md_hom writes every point of its result, with all the digits that it has until then."""
    orders = {operator.order for operator in before.combine}
    reduces = Order.POINTWISE in orders
    whole = before.written is None and (before.guard is None or reduces)
    types = {e.type for e in (*before.finish, *before.terms) if e is not None}
    return (
        whole
        and orders <= {Order.CONCATENATE, Order.POINTWISE}
        and types == {kind}
        and kind is not ElementType.FLOAT16
    )


def _matching(before: MdHom, node: MdHom, view: View, buffer: Buffer) -> dict[int, int] | None:
    """Return which dimension of ``before`` each dimension of a map is; None where they do not go together."""
    found: dict[int, int] = {}
    for there, here, length in zip(before.outputs[0].indices, view.indices, buffer.shape, strict=True):
        first, second = _plain(there), _plain(here)
        if first is None or second is None:
            return None
        if length == Number(1):
            continue
        (d,), (m,) = first or (-1,), second or (-1,)
        if -1 in (d, m) or m in found or d in found.values():
            return None
        if not before.extents[d] == node.extents[m] == length:
            return None
        found[m] = d
    kept = {d for d, o in enumerate(before.combine) if o.order is Order.CONCATENATE}
    rest = [before.extents[d] for d in kept - set(found.values())]
    rest += [extent for m, extent in enumerate(node.extents) if m not in found]
    return found if all(extent == Number(1) for extent in rest) else None


def _plain(index: Index | Expression) -> tuple[int, ...] | None:
    """Return the dimension that is an index, () for the index 0; None for any other index."""
    if not isinstance(index, Index) or index.offset != ZERO:
        return None
    used = tuple(d for d, c in enumerate(index.coefficients) if c)
    return used if len(used) <= 1 and all(index.coefficients[d] == 1 for d in used) else None


@dataclass(frozen=True)
class _Ending:
    """A map on its way to the end of an md_hom.

    ``through``: the map's inputs that are the md_hom's result; ``dimensions``: of the map, and which of the
    md_hom each is (others have one point).
    """

    before: MdHom
    node: MdHom
    through: tuple[int, ...]
    dimensions: Mapping[int, int]

    def whole(self) -> MdHom:
        """Return the md_hom with the map at its end."""
        before, node = self.before, self.node
        inputs = [*before.inputs]
        positions: dict[int, int] = {}
        for k, view in enumerate(node.inputs):
            if k not in self.through:
                seen = self._view(view)
                positions[k] = inputs.index(seen) if seen in inputs else len(inputs)
                inputs += [] if seen in inputs else [seen]
        total = Read(len(inputs), before.terms[0].type)
        earlier = before.finish[0]
        result = total if earlier is None else _with_result(earlier, len(before.inputs), total)
        term = rebuilt(node.terms[0], lambda e: self._part(e, positions, result))
        return replace(
            before,
            name=node.name,
            inputs=tuple(inputs),
            outputs=(self._view(node.outputs[0]),),
            finish=(term,),
            span=node.span,
        )

    def _part(self, part: Expression, positions: Mapping[int, int], result: Expression) -> Expression | None:
        match part:
            case Read(position=position):
                return result if position in self.through else Read(positions[position], part.type)
            case IteratorValue(dimension=m):
                d = self.dimensions.get(m)
                return Constant(0, part.type) if d is None else IteratorValue(d, part.type)
            case _:
                return None

    def _view(self, view: View) -> View:
        """Return a view of the map over the dimensions of the md_hom."""
        rank, indices = len(self.before.extents), []
        for index in view.indices:
            assert isinstance(index, Index)
            coefficients = [0] * rank
            for m, d in self.dimensions.items():
                coefficients[d] = index.coefficients[m]
            indices.append(Index(tuple(coefficients), index.offset))
        return View(view.buffer, tuple(indices), view.span)


def _with_result(earlier: Expression, count: int, total: Read) -> Expression:
    """Return what finished a result before, over ``total``, where reads beyond ``count`` were the result."""
    return rebuilt(earlier, lambda e: total if isinstance(e, Read) and e.position >= count else None)
