"""Names of nodes: schedules and times of a node are reported under its name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from polyloom.ir.host import Copy, HostLeaf, HostProgram, MdHom, Nest
from polyloom.ir.naming import fresh
from polyloom.polyhedra.loops.tree import leaves_in, with_leaves


def with_unique_names(program: HostProgram) -> HostProgram:
    """Return the program with other names for nodes whose name an earlier, different node has.

    A node that stands in two places, as in the two loops that one of the source became, has one name.
    """
    taken = {node.name for node in leaves_in(program.body) if isinstance(node, MdHom | Nest)}
    return replace(program, body=with_leaves(program.body, _Renaming(taken).of))


def shared_names(program: HostProgram) -> tuple[str, ...]:
    """Return the names that several different nodes have."""
    holders: dict[str, MdHom | Nest] = {}
    return tuple(
        dict.fromkeys(
            node.name
            for node in leaves_in(program.body)
            if isinstance(node, MdHom | Nest) and holders.setdefault(node.name, node) != node
        )
    )


@dataclass
class _Renaming:
    """``given``: for each name that nodes had, those nodes and the names that they have got."""

    taken: set[str]
    given: dict[str, list[tuple[MdHom | Nest, str]]] = field(default_factory=dict)

    def of(self, node: HostLeaf) -> tuple[HostLeaf]:
        """Return a node by the name that it gets."""
        return (node if isinstance(node, Copy) else self._named(node),)

    def _named(self, node: MdHom | Nest) -> MdHom | Nest:
        same = self.given.setdefault(node.name, [])
        name = next((given for known, given in same if known == node), None)
        if name is None:
            name = fresh(node.name, self.taken) if same else node.name
            self.taken.add(name)
            same.append((node, name))
        return node if name == node.name else replace(node, name=name)
