"""Maps as parts of the md_homs beside them, in programs that write each buffer once.

r = conv(x, W); s = r * scale + shift; y = max(s, 0)    becomes    y = max(conv(x, W) * scale + shift, 0)

A map joins the md_hom whose result it alone reads, point by point, or the md_hom that alone reads its
results, where these are of no use to the caller, and unless the two together need loops over more dimensions
than the md_hom alone (``flatten_dimensions``). Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyloom.ir.expressions import walk
from polyloom.ir.host import Buffer, HostNode, HostProgram, Index, MdHom, Order, Role, used_buffers, uses
from polyloom.ir.transform.flatten_dimensions import with_fewer_dimensions, without_single_points
from polyloom.ir.transform.fuse_maps import with_finish, with_term
from polyloom.ir.types import ElementType
from polyloom.ir.verification.written_elements import verify_writes
from polyloom.polyhedra.loops.tree import Branch, Loop, Number, leaves_in

MOST_PARTS = 256
"""How long the scalar functions of an md_hom may get: who reads a result twice has what made it twice."""


def with_finishing_maps(program: HostProgram) -> HostProgram:
    """Return the program with maps joined to what they finish or feed, without buffers of no more use.

    Half precision is rounded when it is stored, so its maps stay apart.

    Errors: ``InvalidProgram`` where a node would write other elements than those that it joins.
    """
    leaves = [uses([n]) for n in leaves_in(program.body) if not isinstance(n, Loop | Branch)]
    reads = Counter(name for leaf in leaves for name in leaf.read)
    writes = Counter(name for leaf in leaves for name in leaf.written)
    passing = frozenset(
        b.name
        for b in program.buffers
        if b.role is Role.LOCAL and reads[b.name] == writes[b.name] == 1 and b.type is not ElementType.FLOAT16
    )
    body = _Joiner({b.name: b for b in program.buffers}, passing).nodes(program.body)
    left = uses(body).all
    buffers = tuple(b for b in program.buffers if b.name in left or b.name not in passing)
    return replace(program, body=body, buffers=buffers)


@dataclass(frozen=True)
class _Joiner:
    """``passing``: buffers that one node writes and one reads, and nobody else sees.

    ``known``: of pairs that were tried what they are in one, by their forms: equal layers are tried once.
    """

    buffers: Mapping[str, Buffer]
    passing: frozenset[str]
    known: dict[str, MdHom | None] = field(default_factory=dict)

    def nodes(self, nodes: Sequence[HostNode]) -> tuple[HostNode, ...]:
        """Return the nodes of one body, what joins at the place of the later one."""
        done: dict[int, HostNode] = {}
        writers: dict[str, int] = {}
        for place, node in enumerate(nodes):
            match node:
                case Loop(body=body):
                    node = replace(node, body=self.nodes(body))
                case Branch(body=body, otherwise=otherwise):
                    node = replace(node, body=self.nodes(body), otherwise=self.nodes(otherwise))
                case MdHom():
                    node = self._joined(node, done, writers)
                case _:
                    pass
            done[place] = node
            writers |= dict.fromkeys(uses([node]).written, place)
        return tuple(done.values())

    def _joined(self, node: MdHom, done: dict[int, HostNode], writers: Mapping[str, int]) -> MdHom:
        """Return a node with all that can join it, which leaves ``done``."""
        passed = sorted(uses([node]).read & self.passing & writers.keys(), key=writers.__getitem__)
        for name in reversed(passed):
            place = writers[name]
            before = done[place]
            if not isinstance(before, MdHom) or self._is_late(before, place, writers):
                continue
            whole = self._whole(before, node) if _type_of(before) is self.buffers[name].type else None
            if whole is not None:
                del done[place]
                return self._joined(whole, done, writers)
        return node

    def _is_late(self, before: MdHom, place: int, writers: Mapping[str, int]) -> bool:
        """Whether something that a node reads is written again behind it."""
        return any(writers.get(name, -1) >= place for name in uses([before]).read)

    def _whole(self, before: MdHom, node: MdHom) -> MdHom | None:
        """Return two nodes in one; None where that is not the same, or no gain."""
        if _length(before) + _length(node) > MOST_PARTS + 2:
            return None
        used = dict.fromkeys((*used_buffers(before), *used_buffers(node)))
        names = {name: str(k) for k, name in enumerate(used)}
        form = self._form(before, node, names)
        if form not in self.known:
            made = self._tried(before, node)
            self.known[form] = None if made is None else _with_names(made, names)
        found = self.known[form]
        if found is None:
            return None
        own = _with_names(found, {new: old for old, new in names.items()})
        return replace(own, name=node.name, span=node.span)

    def _form(self, before: MdHom, node: MdHom, names: Mapping[str, str]) -> str:
        """Return all that decides what becomes of two nodes, but what they and their buffers are called.

        A text: 0.0 and -0.0 are equal, but not the same.
        """
        nodes = (replace(_with_names(n, names), name="") for n in (before, node))
        buffers = ((replace(self.buffers[n], name=""), n in self.passing) for n in names)
        return repr((*nodes, *buffers))

    def _tried(self, before: MdHom, node: MdHom) -> MdHom | None:
        a, b = without_single_points(before), without_single_points(node)
        for made, alone in self._choices(a, b):
            if made is not None and _length(made) <= MOST_PARTS and self._is_no_loss(made, alone):
                verify_writes((before, node), (made,), self.passing)
                return made
        return None

    def _choices(self, a: MdHom, b: MdHom) -> Iterator[tuple[MdHom | None, MdHom]]:
        """Yield the ways in which two nodes may be one, each with the node that it is like."""
        if _is_map(b) and _writes_all(a):
            yield with_finish(a, b, self.passing), a
        if _is_map(a):
            yield with_term(a, b, self.passing), b

    def _is_no_loss(self, made: MdHom, alone: MdHom) -> bool:
        """Whether loops are as few as before, or those of a reduction have rows of results as long."""
        after, before = (with_fewer_dimensions(hom, self.buffers)[0] for hom in (made, alone))
        is_fewer = len(after.extents) <= len(before.extents)
        return is_fewer or (made.terms == alone.terms and _row(after) >= _row(before) > 1)


def _with_names(hom: MdHom, names: Mapping[str, str]) -> MdHom:
    """Return an md_hom on buffers of other names."""
    inputs, outputs = (
        tuple(replace(v, buffer=names[v.buffer]) for v in views) for views in (hom.inputs, hom.outputs)
    )
    return replace(hom, inputs=inputs, outputs=outputs)


def _row(hom: MdHom) -> int:
    """Return how many neighbours among its results a dimension of an md_hom goes through; 0: not known."""
    index = hom.outputs[0].indices[-1]
    along = [d for d, c in enumerate(index.coefficients) if c] if isinstance(index, Index) else []
    extents = [n.value for d in along if isinstance(n := hom.extents[d], Number)]
    return extents[0] if len(extents) == len(along) == 1 else 0


def _is_map(node: MdHom) -> bool:
    parts = (node.guard, node.written, *node.initial, *node.finish)
    keeps = all(operator.order is Order.CONCATENATE for operator in node.combine)
    return keeps and len(node.outputs) == 1 and all(part is None for part in parts)


def _writes_all(node: MdHom) -> bool:
    """Whether an md_hom writes every point of its result."""
    orders = {operator.order for operator in node.combine}
    whole = node.written is None and (node.guard is None or Order.POINTWISE in orders)
    return whole and orders <= {Order.CONCATENATE, Order.POINTWISE}


def _type_of(node: MdHom) -> ElementType:
    """Return the type of an md_hom's results before they are stored."""
    results = [node.terms[0]]
    results += [operator.combiner.results[0] for operator in node.combine if operator.combiner is not None]
    results += [e for e in node.finish[:1] if e is not None]
    return results[-1].type


def _length(hom: MdHom) -> int:
    return sum(1 for e in (*hom.terms, *hom.finish) if e is not None for _ in walk(e))
