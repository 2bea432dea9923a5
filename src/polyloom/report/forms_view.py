"""The form of a host program in one line: what runs on the host, and the operators of each node."""

from __future__ import annotations

from polyloom.ir.host import Copy, HostNode, HostProgram, MdHom, Nest
from polyloom.polyhedra.loops.tree import Branch, Loop


def form(program: HostProgram) -> str:
    """Return ``for k { (++); (++, ++) }``; ``nest(++)`` is a sequential program for each point."""
    return _sequence(program.body)


def _sequence(nodes: tuple[HostNode, ...]) -> str:
    return "; ".join(_node(node) for node in nodes)


def _node(node: HostNode) -> str:
    match node:
        case Loop(iterator=iterator, body=body):
            return f"for {iterator} {{ {_sequence(body)} }}"
        case Branch(body=body, otherwise=()):
            return _sequence(body)
        case Branch(body=body, otherwise=otherwise):
            return f"if {{ {_sequence(body)} }} else {{ {_sequence(otherwise)} }}"
        case MdHom():
            return _operators(node)
        case Nest(iterators=iterators):
            return f"nest({', '.join('++' for _ in iterators)})"
        case Copy():
            return "copy"


def _operators(node: MdHom) -> str:
    """Return the combine operators; a box that is not full is marked as masked."""
    operators = ", ".join(str(operator) for operator in node.combine)
    return f"({operators}){' masked' if node.guard is not None else ''}"
