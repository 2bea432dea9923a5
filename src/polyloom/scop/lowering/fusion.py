"""Maps become part of the reductions beside them, where programs change arrays in place.

The pairs are those of ``ir/transform/fuse_maps``; here is which of them may come together, in what order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polyloom.ir.host import HostNode, MdHom, Nest, uses
from polyloom.ir.transform.fuse_maps import with_finish, with_initial, with_term
from polyloom.ir.verification.written_elements import verify_writes
from polyloom.polyhedra.loops.tree import Branch, Loop, leaves_in, with_leaves


def fused(body: tuple[HostNode, ...], passing: frozenset[str]) -> tuple[HostNode, ...]:
    """Return the nodes with maps fused into reductions; ``passing``: local buffers.

    A local buffer that only passes values from a reduction to one map disappears.

    Errors: ``InvalidProgram`` where a fused node would write other elements than the two.
    """
    before: tuple[HostNode, ...] = ()
    while body != before:
        before = body
        body = _fused(body, frozenset(b for b in passing if _uses_of(body, b) == 2))
    return body


def without_dead(body: tuple[HostNode, ...], local: frozenset[str]) -> tuple[HostNode, ...]:
    """Return the nodes without md_homs and nests whose results are local and that no other node reads."""
    before: tuple[HostNode, ...] = ()
    while body != before:
        before = body
        dead = [n for n in leaves_in(body) if isinstance(n, MdHom | Nest) and _is_dead(n, body, local)]
        body = _without(body, dead)
    return body


def _is_dead(node: MdHom | Nest, body: tuple[HostNode, ...], local: frozenset[str]) -> bool:
    """Whether nothing that runs later reads what a node writes; in a loop, whether nothing does."""
    written = uses([node]).written
    place = next((k for k, other in enumerate(body) if other is node), None)
    later = body if place is None else body[place + 1 :]
    others = [n for n in leaves_in(later) if n is not node and not isinstance(n, (Loop, Branch))]
    return written <= local and not any(uses([o]).read & written for o in others)


def _without(body: tuple[HostNode, ...], dead: Sequence[HostNode]) -> tuple[HostNode, ...]:
    return with_leaves(body, lambda node: () if any(node is gone for gone in dead) else (node,))


def _uses_of(body: tuple[HostNode, ...], buffer: str) -> int:
    """Return how many nodes touch a buffer."""
    leaves = (n for n in leaves_in(body) if not isinstance(n, (Loop, Branch)))
    return sum(buffer in uses([n]).all for n in leaves)


def _fused(body: tuple[HostNode, ...], passing: frozenset[str]) -> tuple[HostNode, ...]:
    nodes = [_inside(node, passing) for node in body]
    changed = True
    while changed:
        changed = False
        for first, second in _pairs(nodes):
            a, b = nodes[first], nodes[second]
            assert isinstance(a, MdHom)
            assert isinstance(b, MdHom)
            made = with_initial(a, b, passing) or with_finish(a, b, passing) or with_term(a, b, passing)
            if made is not None:
                verify_writes((a, b), (made,), passing)
                nodes[second] = made
                del nodes[first]
                changed = True
                break
    return tuple(nodes)


def _inside(node: HostNode, passing: frozenset[str]) -> HostNode:
    match node:
        case Loop(body=body):
            return replace(node, body=_fused(body, passing))
        case Branch(body=body, otherwise=otherwise):
            return replace(node, body=_fused(body, passing), otherwise=_fused(otherwise, passing))
        case _:
            return node


def _pairs(nodes: Sequence[HostNode]) -> Iterator[tuple[int, int]]:
    """Yield pairs of md_homs through one buffer, of which the first can wait for the second."""
    for first, a in enumerate(nodes):
        if not isinstance(a, MdHom):
            continue
        own = uses([a])
        for second in range(first + 1, len(nodes)):
            b = nodes[second]
            if isinstance(b, MdHom) and own.written & uses([b]).read:
                yield first, second
            other = uses([b])
            if own.written & other.all or own.read & other.written:
                break
