"""Names of nodes: schedules and times of a node are reported under its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from polyloom.ir.host import HostBranch, HostLoop, HostNode, HostProgram, MdHom, Nest, walk_host
from polyloom.ir.naming import fresh


def with_unique_names(program: HostProgram) -> HostProgram:
    """Return the program with other names for nodes whose name an earlier, different node has.

    A node that stands in two places, as in the two loops that one of the source became, has one name.
    """
    taken = {node.name for node in walk_host(program.body) if isinstance(node, MdHom | Nest)}
    return replace(program, body=_Renaming(taken).nodes(program.body))


def shared_names(program: HostProgram) -> tuple[str, ...]:
    """Return the names that several different nodes have."""
    holders: dict[str, MdHom | Nest] = {}
    return tuple(
        dict.fromkeys(
            node.name
            for node in walk_host(program.body)
            if isinstance(node, MdHom | Nest) and holders.setdefault(node.name, node) != node
        )
    )


@dataclass
class _Renaming:
    """``given``: for each name that nodes had, those nodes and the names that they have got."""

    taken: set[str]
    given: dict[str, list[tuple[MdHom | Nest, str]]] = field(default_factory=dict)

    def nodes(self, nodes: Sequence[HostNode]) -> tuple[HostNode, ...]:
        return tuple(map(self._node, nodes))

    def _node(self, node: HostNode) -> HostNode:
        match node:
            case HostLoop(body=body):
                return replace(node, body=self.nodes(body))
            case HostBranch(body=body, otherwise=otherwise):
                return replace(node, body=self.nodes(body), otherwise=self.nodes(otherwise))
            case MdHom() | Nest():
                return self._named(node)
            case _:
                return node

    def _named(self, node: MdHom | Nest) -> MdHom | Nest:
        same = self.given.setdefault(node.name, [])
        name = next((given for known, given in same if known == node), None)
        if name is None:
            name = fresh(node.name, self.taken) if same else node.name
            self.taken.add(name)
            same.append((node, name))
        return node if name == node.name else replace(node, name=name)
