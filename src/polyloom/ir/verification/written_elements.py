"""Which elements a host program writes, as loops that visit them: what a pass on its nodes must not change.

``for (i = 0; i < n; i++) s[i] += ...`` visits ``s(i)``; ``polyhedra.loop_meaning`` makes sets of such loops.
What data decide is left out: a write under a condition on data counts, an index that data choose is 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from polyloom.ir.expressions import (
    Expression,
)
from polyloom.ir.host import Copy, HostLeaf, HostNode, Index, MdHom, Nest, Order, View, uses
from polyloom.ir.integer_values import integer_of
from polyloom.ir.integers import names_in_tree
from polyloom.ir.verification.programs import InvalidProgram
from polyloom.polyhedra.loops.meaning import visit_the_same
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Name,
    Number,
    Tree,
    leaves_in,
    loops_over,
    replace_name,
    sum_of,
    with_leaves,
)


def verify_writes(
    before: Sequence[HostNode], after: Sequence[HostNode], passing: Collection[str] = ()
) -> None:
    """Raise ``InvalidProgram`` where nodes that take the place of others write other elements.

    ``passing``: buffers that no other node reads, which may go. Nothing is said of what isl cannot express
    (``n * i`` for a parameter ``n``), or not with little effort.
    """
    names = (uses(before).written | uses(after).written) - {*passing}
    chosen = chosen_by_data((*before, *after))
    trees = writes(before, names, chosen), writes(after, names, chosen)
    wrong = visit_the_same(*trees, names_in_tree((*trees[0], *trees[1])))
    if wrong is not None:
        who = ", ".join(node.name for node in leaves_in(tuple(before)) if isinstance(node, MdHom | Nest))
        raise InvalidProgram(f"{who}: other elements are written than before, {wrong}")


Chosen = Collection[tuple[str, int]]
"""Buffers, and which of their indices data choose: these count as 0."""


def chosen_by_data(nodes: Sequence[HostNode]) -> frozenset[tuple[str, int]]:
    """Return the indices of written buffers that are no function of iterators and parameters for isl."""
    return frozenset(
        (view.buffer, k)
        for view, iterators in _targets(nodes)
        for k, index in enumerate(view.indices)
        if _integer(index, iterators) is None
    )


def _targets(nodes: Sequence[HostNode]) -> Iterable[tuple[View, tuple[str, ...]]]:
    for node in leaves_in(tuple(nodes)):
        match node:
            case MdHom(outputs=outputs, iterators=iterators):
                yield from ((view, iterators) for view in outputs)
            case Nest(assignments=assignments):
                yield from ((a.target, a.iterators) for a in assignments)
            case _:
                pass


def writes(nodes: Sequence[HostNode], names: Collection[str], chosen: Chosen = ()) -> Tree:
    """Return loops that visit every element of the named buffers that nodes write."""
    return with_leaves(nodes, lambda leaf: _leaf(leaf, names, chosen))


def _leaf(node: HostLeaf, names: Collection[str], chosen: Chosen) -> Tree:
    match node:
        case Copy(target=target):
            return (Instance(f"all of {target}", ()),) if target in names else ()
        case MdHom():
            return _md_hom(node, names, chosen)
        case Nest():
            return _nest(node, names, chosen)


def _md_hom(node: MdHom, names: Collection[str], chosen: Chosen) -> Tree:
    """Return loops over the dimensions that are kept, where results are stored.

    Where an output is selected by data no dimension counts as reduced: each point writes.
    """
    elements = tuple(_element(view, node.iterators, chosen) for view in node.outputs if view.buffer in names)
    computed = any(not isinstance(index, Index) for view in node.outputs for index in view.indices)
    kept = [k for k, o in enumerate(node.combine) if computed or o.order is not Order.POINTWISE]
    stored: Tree = elements if node.written is None else (Branch(node.written, elements, ()),)
    return loops_over([node.iterators[k] for k in kept], [node.extents[k] for k in kept], stored)


def _nest(node: Nest, names: Collection[str], chosen: Chosen) -> Tree:
    private = {b.name for b in node.private}
    targets = {
        a.name: (a.iterators, _element(a.target, a.iterators, chosen))
        for a in node.assignments
        if a.target.buffer in names and a.target.buffer not in private
    }

    def stored(instance: Instance) -> Tree:
        if instance.statement not in targets:
            return ()
        iterators, element = targets[instance.statement]
        return (_at(element, iterators, instance.arguments),)

    return loops_over(node.iterators, node.extents, with_leaves(node.body, stored))


def _at(element: Instance, iterators: Sequence[str], arguments: Sequence[IntExpression]) -> Instance:
    """Return an element over the iterators of an assignment at the point that the arguments are."""
    apart = [f"{name}''" for name in iterators]
    found = list(element.arguments)
    for old, new in (*zip(iterators, map(Name, apart), strict=True), *zip(apart, arguments, strict=True)):
        found = [replace_name(index, old, new) for index in found]
    return Instance(element.statement, tuple(found))


def _element(view: View, iterators: Sequence[str], chosen: Chosen) -> Instance:
    values = (
        None if (view.buffer, k) in chosen else _integer(index, iterators)
        for k, index in enumerate(view.indices)
    )
    return Instance(view.buffer, tuple(Number(0) if v is None else v for v in values))


def _integer(index: Index | Expression, iterators: Sequence[str]) -> IntExpression | None:
    """Return an index as an integer expression that isl understands; None where there is none."""
    if not isinstance(index, Index):
        return integer_of(index, [Name(i) for i in iterators])
    terms = [(c, Name(name)) for c, name in zip(index.coefficients, iterators, strict=True) if c]
    return sum_of([*terms, (1, index.offset)])
