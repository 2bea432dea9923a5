"""What the kernel tree of a host program must carry out and store, from the host program alone; its proof.

Trees are proved before they are built where programs are verified between passes. One that is wrong is never
built; what isl does not find out in time is said (by the logger of this module).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from polyloom.ir.host import Copy, HostNode, HostProgram, Index, MdHom, Nest, Order, uses
from polyloom.ir.verification.passes import is_on
from polyloom.ir.verification.programs import InvalidProgram
from polyloom.ir.verification.written_elements import chosen_by_data, writes
from polyloom.mdh.lowering.program_tree import Host, Statements, instance_of
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tree.verify import Asked, verify
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    Loop,
    Name,
    Tree,
    leaves_in,
    loops_over,
    with_leaves,
)

EFFORT = 100_000
"""What isl may spend on a tree: a tenth of a second."""

_LOG = logging.getLogger(__name__)


def proved(program: HostProgram, function: Function) -> Function:
    """Return the tree of a program; prove it where programs are verified after each pass.

    Where sizes are left open nothing is proved: for some of them the program itself may leave its arrays.

    Raises ``InvalidProgram`` where the tree is wrong.
    """
    if is_on() and not function.integers:
        verdict = verify(function, asked(program), EFFORT)
        if verdict.wrong:
            raise InvalidProgram(f"the tree of `{program.name}` is wrong: {'; '.join(verdict.wrong)}")
        if verdict.unknown:
            _LOG.warning("not proved of `%s`: %s", program.name, "; ".join(verdict.unknown))
    return function


def asked(program: HostProgram) -> Asked:
    """Return the instances that the tree of a program must carry out, by the names that it has for them."""
    least, most = _AskedOf(least=True), _AskedOf(least=False)
    whole = uses(program.body).written - _unclear(program)
    return Asked(
        least=least.nodes(program.body),
        most=most.nodes(program.body),
        written=writes(program.body, whole),
        terms=frozenset(most.terms),
        whole=all(node.written is None for node in leaves_in(program.body) if isinstance(node, MdHom)),
    )


def _unclear(program: HostProgram) -> set[str]:
    """Return buffers of which data, or more than their views, choose what is written."""
    found = {name for name, _ in chosen_by_data(program.body)}
    for node in leaves_in(program.body):
        match node:
            case Copy(target=target):
                found.add(target)
            case MdHom(outputs=outputs) if not _fills(node):
                found |= {view.buffer for view in outputs}
            case _:
                pass
    return found


def _fills(hom: MdHom) -> bool:
    """Return whether each kept point is stored, whatever the guard excludes."""
    combiners = [o.combiner for o in hom.combine if o.combiner is not None]
    if not combiners and hom.guard is not None:
        return False
    reduced = [k for k, o in enumerate(hom.combine) if o.order is Order.POINTWISE]
    indices = [index for view in hom.outputs for index in view.indices if isinstance(index, Index)]
    scatters = any(index.coefficients[k] for index in indices for k in reduced)
    return not scatters and all(None not in c.neutral for c in combiners)


class _AskedOf:
    """Loops over the instances of a program; of ``least``, those whose results are stored."""

    def __init__(self, *, least: bool) -> None:
        self.least = least
        self.statements = Statements()
        self.terms: set[str] = set()

    def nodes(self, nodes: tuple[HostNode, ...], host: Host = ()) -> Tree:
        return tuple(part for node in nodes for part in self._node(node, host))

    def _node(self, node: HostNode, host: Host) -> Tree:
        match node:
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                inner = self.nodes(body, (*host, iterator))
                return (Loop(iterator=iterator, start=start, condition=condition, step=step, body=inner),)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                return (Branch(condition, self.nodes(body, host), self.nodes(otherwise, host)),)
            case MdHom():
                return self._md_hom(node, host)
            case Nest():
                names = self.statements.at(node)
                return loops_over(node.iterators, node.extents, _in_program(node.body, host, names))
            case Copy():
                return ()

    def _md_hom(self, hom: MdHom, host: Host) -> Tree:
        points = tuple(map(Name, (*host, *hom.iterators)))
        names = self.statements.at(hom).values()
        self.terms.update(names if hom.written is None else ())
        tree: Tree = tuple(Instance(name, points) for name in names)
        for condition in (hom.guard, hom.written if self.least else None):
            tree = tree if condition is None else (Branch(condition, tree, ()),)
        return loops_over(hom.iterators, hom.extents, tree)


def _in_program(tree: Tree, host: Host, names: Mapping[str, str]) -> Tree:
    """Return loops with their instances as those of the program."""

    def known(instance: Instance) -> Tree:
        found = instance_of(instance, host, names)
        return () if found is None else (found,)

    return with_leaves(tree, known)
