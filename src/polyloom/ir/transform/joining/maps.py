"""Maps over the same points as one: what both read is loaded once, what one passes to the other not at all.

Before: ``t[i] = a[i]; a[i] = b[i]; b[i] = t[i]``, three maps. After: one map with two results, ``a[i]`` from
``b[i]`` and ``b[i]`` from ``a[i]``, which are both read before any is stored; there is no ``t``.

An element that one of two maps writes the other one may touch only at the same point. Where they touch
different elements of one array follows from steps (``a[2 i]`` and ``a[2 i + 1]``), from ranges, and from
guards and the host loops around, which isl is asked about (``a[i][j]`` and ``a[j][i]`` where i < j).

Source: loop fusion (Kennedy and McKinley 1993), of loops whose iterations are independent. Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from polyloom.ir.expressions import Expression, Read, walk
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Role, View, uses
from polyloom.ir.node_names import with_unique_names
from polyloom.ir.rebuild import read_positions, rebuilt
from polyloom.ir.relations import never_meet
from polyloom.ir.transform.flatten_dimensions import Buffers, lie_in_rows
from polyloom.ir.transform.fuse_maps import (
    combined_dimensions,
    permuted_condition,
    with_inputs_of,
    without_unread_inputs,
)
from polyloom.ir.transform.joining.elements import are_apart
from polyloom.ir.transform.joining.reductions import joined_reduction
from polyloom.ir.transform.records.unrolled_records import LINES
from polyloom.ir.transform.reroll_maps import rerolled
from polyloom.polyhedra.loops.tree import (
    Branch,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    leaves_in,
    with_leaves,
)

MOST_ARRAYS = 8
"""How many arrays a joined map may touch: each is a stream that the processor has to follow."""

FARTHEST = 16
"""How many nodes before a map are looked at, if it may be carried out before those between."""

MOST_REPEATED = 256
"""How many operations a value may have that several results are made of, times its uses but the first.

They are computed once: compilers of C see that they are the same, for all results come before the stores.
"""


def joined_maps(program: HostProgram) -> HostProgram:
    """Return the program with maps joined that follow one another, or may, and reductions. Sizes are known.

    Every element gets the value that it had, by the same operations.
    """
    touched = Counter(name for node in leaves_in(program.body) for name in uses([node]).all)
    local = frozenset(b.name for b in program.buffers if b.role is Role.LOCAL)
    buffers = {b.name: b for b in program.buffers}
    body = _rerolled(_Joining(program, touched, local).nodes(program.body), buffers)
    return program if body == program.body else with_unique_names(replace(program, body=body))


def _rerolled(body: tuple[HostNode, ...], buffers: Buffers) -> tuple[HostNode, ...]:
    """Return nodes with maps of alike results over one dimension more, unless they are parts of records."""

    def change(node: HostNode) -> tuple[HostNode, ...]:
        if not isinstance(node, MdHom) or not _is_map(node):
            return (node,)
        in_order = _in_memory(node)
        made = rerolled(in_order)
        is_longer = len(node.outputs) > max(LINES) or lie_in_rows(made, len(made.extents) - 1, buffers)
        return (made if is_longer else in_order,)

    return with_leaves(body, change)


def _in_memory(node: MdHom) -> MdHom:
    """Return a map whose results are in the order in which they lie: all are known before one is stored."""
    buffers = list(dict.fromkeys(view.buffer for view in node.outputs))

    def place(o: int) -> tuple[int, tuple[tuple[tuple[int, ...], int], ...]]:
        view = node.outputs[o]
        return buffers.index(view.buffer), tuple((i.coefficients, i.constant) for i in view.affine)

    if not all(isinstance(i.offset, Number) for view in node.outputs for i in view.affine):
        return node
    order = sorted(range(len(node.outputs)), key=place)
    return replace(
        node, outputs=tuple(node.outputs[o] for o in order), terms=tuple(node.terms[o] for o in order)
    )


class _Joining:
    """``touched``: how many nodes touch each buffer; ``local``: buffers of no use to the caller."""

    def __init__(self, program: HostProgram, touched: Counter[str], local: frozenset[str]) -> None:
        self.program, self.touched, self.local = program, touched, local
        self.known: tuple[IntExpression, ...] = ()
        """What is known of the iterators of the host loops around."""

    def nodes(self, nodes: Sequence[HostNode]) -> tuple[HostNode, ...]:
        """Return a sequence with maps joined, until there are none left to join."""
        before, found = len(nodes) + 1, list(map(self._node, nodes))
        while len(found) < before:
            before, found = len(found), self._once(found)
        return tuple(found)

    def _once(self, nodes: Sequence[HostNode]) -> list[HostNode]:
        found: list[HostNode] = []
        for node in nodes:
            for at in self._reachable(found, node):
                both = self._joined(found[at], node)
                if both is not None:
                    found[at] = both
                    break
            else:
                found.append(node)
        return found

    def _reachable(self, before: Sequence[HostNode], node: HostNode) -> Iterator[int]:
        """Yield the nodes behind which a node may stand at once, the last one first: it moves over others."""
        own = uses([node])
        for at in reversed(range(max(0, len(before) - FARTHEST), len(before))):
            yield at
            other = uses([before[at]])
            if own.written & other.all or other.written & own.all:
                return

    def _node(self, node: HostNode) -> HostNode:
        match node:
            case Loop(parallel=False, body=body):
                outside = self.known
                self.known = (*outside, *_known_in(node))
                made = replace(node, body=self.nodes(body))
                self.known = outside
                return made
            case Branch(body=body, otherwise=otherwise):
                return replace(node, body=self.nodes(body), otherwise=self.nodes(otherwise))
            case _:
                return node

    def _joined(self, a: HostNode, b: HostNode) -> MdHom | None:
        if not isinstance(a, MdHom) or not isinstance(b, MdHom):
            return None
        between = uses([a]).written & uses([b]).read & self.local
        passed = frozenset(name for name in between if self.touched[name] == 2)
        made = joined(a, b, passed, self.known) or joined_reduction(a, b)
        if made is None or len(uses([made]).all) > MOST_ARRAYS:
            return None
        for name in uses([a]).all & uses([b]).all:
            self.touched[name] -= 1
        return made


def _known_in(loop: Loop[HostNode]) -> Iterator[IntExpression]:
    """Yield what holds of an iterator inside of its loop."""
    yield loop.condition
    if isinstance(loop.step, Number):
        yield Operation(">=" if loop.step.value > 0 else "<=", (Name(loop.iterator), loop.start))


def joined(
    a: MdHom, b: MdHom, passed: Collection[str] = (), known: Sequence[IntExpression] = ()
) -> MdHom | None:
    """Return one map that does what ``a`` and then ``b`` do; None where they are not so, or share nothing.

    ``passed``: buffers that nothing else needs; results that lie there disappear where ``b`` reads them.
    ``known``: conditions that hold for host iterators.
    """
    if not (_is_map(a) and _is_map(b)) or a.extents != b.extents:
        return None
    same = {k: k for k in range(len(a.extents))}
    conditions = [(a.guard, b.guard), (a.written, b.written)]
    if any(permuted_condition(x, a, b, same) != y for x, y in conditions):
        return None
    if not (_walks(a) & _walks(b)) or not all(_in_order(x, y, a, b, known) for x, y in _orders(a, b)):
        return None
    given = {k: a.outputs.index(v) for k, v in enumerate(b.inputs) if v in a.outputs}
    if _are_places(b, given) or _repeated(a, b, given) > MOST_REPEATED:
        return None
    inputs, moved = with_inputs_of(b.inputs, a, b, same, {})
    terms = [moved(term) for term in a.terms]
    values = {k: terms[o] for k, o in given.items()}
    gone = {v for v in a.outputs if v in b.outputs or (v.buffer in passed and _only_given(v, b))}
    kept = [o for o, view in enumerate(a.outputs) if view not in gone]
    made = replace(
        b,
        inputs=inputs,
        outputs=(*(a.outputs[o] for o in kept), *b.outputs),
        terms=(*(terms[o] for o in kept), *(_with_values(t, values) for t in b.terms)),
        initial=(None,) * (len(kept) + len(b.outputs)),
        finish=(None,) * (len(kept) + len(b.outputs)),
        name=f"{a.name}_{b.name}",
    )
    return without_unread_inputs(made)


def _is_map(node: MdHom) -> bool:
    return (
        bool(node.extents)
        and not combined_dimensions(node)
        and all(part is None for part in (*node.initial, *node.finish))
        and all(isinstance(index, Index) for view in node.outputs for index in view.indices)
        and len({view.buffer for view in node.outputs}) > 0
    )


def _walks(hom: MdHom) -> set[tuple[str, tuple[tuple[int, ...], ...]]]:
    """Return how an md_hom goes through its arrays, wherever it begins."""
    return {
        (v.buffer, tuple(i.coefficients for i in v.indices if isinstance(i, Index)))
        for v in (*hom.inputs, *hom.outputs)
    }


def _orders(a: MdHom, b: MdHom) -> Iterator[tuple[View, View]]:
    """Yield the accesses of both whose order counts if they touch one element."""
    yield from ((x, y) for x in a.outputs for y in (*b.inputs, *b.outputs) if x.buffer == y.buffer)
    yield from ((x, y) for x in a.inputs for y in b.outputs if x.buffer == y.buffer)


def _in_order(x: View, y: View, a: MdHom, b: MdHom, known: Sequence[IntExpression]) -> bool:
    """Whether two accesses touch an element at the same point alone, or never the same."""
    if x == y or are_apart(x, y, a):
        return True
    is_open = not all(isinstance(extent, Number) for extent in a.extents)
    return (a.guard is not None or bool(known) or is_open) and never_meet((a, x), (b, y), known)


def _are_places(b: MdHom, inputs: Collection[int]) -> bool:
    """Whether some of the inputs say where others are read."""
    computed = [i for view in b.inputs for i in view.indices if not isinstance(i, Index)]
    return any(k in inputs for k in read_positions(*computed))


def _repeated(a: MdHom, b: MdHom, given: dict[int, int]) -> int:
    """Return how many operations of ``a`` are written more than once in the joined map."""
    read = (part.position for term in b.terms for part in walk(term) if isinstance(part, Read))
    uses_of = Counter(given[position] for position in read if position in given)
    return sum(
        (count - 1 + (a.outputs[o] not in b.outputs)) * _operations(a.terms[o])
        for o, count in uses_of.items()
    )


def _operations(value: Expression) -> int:
    return sum(not isinstance(part, Read) for part in walk(value))


def _only_given(view: View, b: MdHom) -> bool:
    """Whether ``b`` reads a buffer at this view, and at no other."""
    return {v for v in b.inputs if v.buffer == view.buffer} == {view}


def _with_values(term: Expression, values: dict[int, Expression]) -> Expression:
    return rebuilt(term, lambda part: values.get(part.position) if isinstance(part, Read) else None)
