"""Copies that are there only to be sent: chains take what was copied from where it lies.

``fmovh(y, x); faddh(out, in, y)`` becomes ``faddh(out, in, x)`` where nothing else of the program touches
``y``: the part of a sum that one PE has is one term, or a statement moves what leaves at a port.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace

from polyloom.polyhedra.loops.generate import IntExpression
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.pe_program.addresses import coalesced
from polyloom.wafer.pe_program.tree import (
    Code,
    Configure,
    Element,
    Invoke,
    LocalTask,
    OperandRef,
    RoleCode,
    SetBase,
    all_nodes,
)


def with_terms_in_place(code: RoleCode, chains: Collection[str], tensors: Collection[str]) -> RoleCode:
    """Return a role's program without such copies.

    ``chains``: the tasks that send what is in memory, behind all that is computed of it; ``tensors``: the
    arrays that keep their elements for an invocation, once these are complete.
    """
    for copy in _copies(code):
        senders = _senders(code, copy, chains) if copy.array_read in tensors else None
        if senders:
            code = _without(code, copy, senders)
    return code


@dataclass(frozen=True)
class _Copy:
    """``node``: all elements of the array ``written`` are set to what ``base`` begins."""

    task: LocalTask
    node: Invoke
    written: Element
    base: Element

    @property
    def array_read(self) -> str:
        return self.base.array


def _copies(code: RoleCode) -> list[_Copy]:
    """Return the moves of elements in memory, in their order there, to other ones that tasks do always."""
    types = {array.name: array.type for array in code.arrays}
    found: list[_Copy] = []
    for task in code.local_tasks:
        for node in task.body:
            if not isinstance(node, Invoke) or node.then is not None or len(node.sources) != 1:
                continue
            (source,) = node.sources
            if not isinstance(source, OperandRef) or source == node.destination:
                continue
            to, start = _nest(code, node.destination), _nest(code, source)
            if to is None or start is None or to[1:] != start[1:]:
                continue
            written, base = to[0], start[0]
            same = types[written.array] is types[base.array]
            if same and node.instruction == move_instruction(types[base.array]).name:
                found.append(_Copy(task, node, written, base))
    return found


_Nest = tuple[Element, tuple[IntExpression, ...], tuple[int, ...]]


def _nest(code: RoleCode, operand: OperandRef) -> _Nest | None:
    """Return where an operand in memory begins, its sizes and strides; None where they are set anew."""
    about = [n for n in all_nodes(code) if not isinstance(n, Invoke) and operand.name in _operands(n)]
    bases = [node for node in about if isinstance(node, SetBase)]
    shapes = [node for node in about if isinstance(node, Configure)]
    if operand.selector is not None or len(about) != 2 or len(bases) != 1 or len(shapes) != 1:
        return None
    if not all(node in code.main for node in about):
        return None
    return (bases[0].element, *coalesced(shapes[0].sizes, shapes[0].strides))


def _senders(code: RoleCode, copy: _Copy, chains: Collection[str]) -> list[str] | None:
    """Return the operands that chains send the copied elements by, if these are all that touch the copy."""
    names = {n.operand.name for n in code.main if isinstance(n, SetBase) and n.element == copy.written}
    touching = [n for n in all_nodes(code) if copy.written.array in _arrays(n)]
    if any(not isinstance(n, SetBase) or n.operand.name not in names for n in touching):
        return None
    names.discard(copy.node.destination.name)
    if _uses(code, copy.node.destination.name) != [copy.node]:
        return None
    nest = _nest(code, copy.node.destination)
    sent = [node for task in code.local_tasks if task.name in chains for node in _invoked(task.body)]
    for name in names:
        uses = _uses(code, name)
        if any(node not in sent or node.destination.name == name for node in uses):
            return None
        if nest is None or _nest(code, OperandRef(name)) != nest:
            return None
    return sorted(names)


def _invoked(code: Code) -> list[Invoke]:
    return [node for node in code if isinstance(node, Invoke)]


def _uses(code: RoleCode, operand: str) -> list[Invoke]:
    return [node for node in all_nodes(code) if isinstance(node, Invoke) and operand in _operands(node)]


def _without(code: RoleCode, copy: _Copy, senders: Collection[str]) -> RoleCode:
    """Leave a copy out, and what only that uses; its senders begin at what was copied."""
    (source,) = (s for s in copy.node.sources if isinstance(s, OperandRef))
    gone = {copy.node.destination.name}
    if _uses(code, source.name) == [copy.node]:
        gone.add(source.name)
    main: Code = tuple(
        replace(node, element=copy.base)
        if isinstance(node, SetBase) and node.operand.name in senders
        else node
        for node in code.main
        if not (isinstance(node, SetBase | Configure) and node.operand.name in gone)
    )
    body = tuple(node for node in copy.task.body if node is not copy.node)
    tasks = (replace(t, body=body) if t is copy.task else t for t in code.local_tasks)
    operands = tuple(declared for declared in code.operands if declared.name not in gone)
    return replace(code, main=main, local_tasks=tuple(tasks), operands=operands)


def _operands(part: object) -> list[str]:
    return [found.name for found in _parts(part) if isinstance(found, OperandRef)]


def _arrays(part: object) -> list[str]:
    return [found.array for found in _parts(part) if isinstance(found, Element)]


def _parts(part: object) -> Iterator[object]:
    """Yield what a node holds, and what that holds."""
    if isinstance(part, tuple):
        for item in part:
            yield from _parts(item)
    elif is_dataclass(part):
        yield part
        for item in fields(part):
            yield from _parts(getattr(part, item.name))
