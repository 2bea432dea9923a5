"""Dense streams of 16-bit elements that travel two in a wavelet: which can, and the programs that do it.

Elements stay in their order; the first of a pair is the low half. All that is sent and received where
wavelets of one kind go must be in instructions whose pairs begin at the same places: either all of them take
an even number of elements, or all the same odd one, whose last element has a wavelet of its own.
Source: wafer-target.md, 2.2 (SIMD modes of fabric operands). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.polyhedra.loops.generate import IntExpression, Number, Operation
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.border.flows import LINE
from polyloom.wafer.border.line import Entry
from polyloom.wafer.dataflow.line_traffic import link_queue, neighbour_queue
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.machine.instructions import instruction
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    ConfigureFabric,
    CountDown,
    CountUp,
    For,
    If,
    IfNextInvocation,
    Invoke,
    Node,
    OperandRef,
    Received,
    RoleCode,
    Scope,
    Send,
    SendEnd,
    all_nodes,
)
from polyloom.wafer.roles.activities import RoleActivities
from polyloom.wafer.roles.adapter_work import queue_name
from polyloom.wafer.roles.result import RoleProgram
from polyloom.wafer.routing.all_routes import Routing

Net = tuple[str, str]
"""Where wavelets go that one queue after the other passes on: its kind, and its name among those."""

EVEN = 2


def stream_net(tensor: str, side: Side) -> Net:
    """Return the net of a stream from a side."""
    return ("stream", f"{tensor} {side.value}")


def chain_net(chain: Chain) -> Net:
    """Return the net of a reduction's chain, and of what leaves at its end."""
    return ("chain", chain.name)


def port_net(adapter: Adapter, entry: Entry) -> Net:
    """Return the net between an adapter's ports of a kind and the host."""
    return ("port", f"{adapter.name} {entry.value}")


@dataclass(frozen=True, eq=False)
class Paired:
    """The roles as they are then, and the nets that have pairs.

    ``blocks``: after how many elements of a net a wavelet ends in any case: 2, or an odd number.
    """

    roles: tuple[RoleProgram, ...]
    blocks: Mapping[Net, int]


@dataclass(frozen=True)
class _Use:
    """Elements that an instruction moves; ``both``: the nets of all its queues."""

    net: Net
    count: IntExpression
    possible: bool
    both: tuple[Net, ...]


def pair_wavelets(roles: Sequence[RoleProgram], routing: Routing, machine: Machine) -> Paired:
    """Let elements travel in pairs wherever that is possible and no instruction is too slow for it."""
    queues = [_nets(role, routing) for role in roles]
    uses = [u for role, nets in zip(roles, queues, strict=True) for u in _uses(role.code, nets, machine)]
    blocks: dict[Net, int] = {}
    for group in _groups(uses):
        block = _block([use for use in uses if use.net in group])
        if block is not None:
            blocks.update(dict.fromkeys(group, block))
    changed = (
        replace(role, code=_with_pairs(role.code, {q for q, net in nets.items() if net in blocks}))
        for role, nets in zip(roles, queues, strict=True)
    )
    return Paired(tuple(changed), blocks)


def _nets(role: RoleProgram, routing: Routing) -> dict[str, Net]:
    """Return the net of each queue of a role, by name."""
    found: dict[str, Net] = {}
    for ahead in Side:
        net = ("neighbour", ahead.value)
        found[neighbour_queue(ahead, incoming=False)] = net
        found[neighbour_queue(ahead.opposite, incoming=True)] = net
    if isinstance(role.work, RoleActivities):
        found |= {here.queue: stream_net(here.stream.tensor, here.stream.side) for here in role.work.streams}
        for colored in routing.chains:
            for incoming in (True, False):
                found[colored.chain.queue(incoming=incoming)] = chain_net(colored.chain)
        for link in routing.links:
            for incoming in (True, False):
                found[link_queue(link.link, incoming=incoming)] = ("broadcast", link.link)
        return found
    for work in role.work.works:
        found |= dict(_adapter_nets(work.adapter, routing))
        for kind in work.kinds:
            for way, incoming in ((kind.origin, True), *((target, False) for target in kind.targets)):
                if way.entry is not None:
                    net = port_net(work.adapter, way.entry)
                    found[queue_name(work.adapter, way, incoming=incoming)] = net
    return found


def _adapter_nets(adapter: Adapter, routing: Routing) -> Iterator[tuple[str, Net]]:
    name = queue_name(adapter, LINE, incoming=not adapter.inward)
    if adapter.inward:
        yield name, stream_net(adapter.tensor, adapter.side)
        return
    for colored in routing.chains:
        chain = colored.chain
        if chain.leaves and (chain.tensor, chain.side) == (adapter.tensor, adapter.side):
            yield name, chain_net(chain)


def _uses(code: RoleCode, nets: Mapping[str, Net], machine: Machine) -> Iterator[_Use]:
    """Yield what a role does with each net; code that takes or gives single elements cannot have pairs."""
    counts: dict[str, list[ConfigureFabric]] = {}
    for node in all_nodes(code):
        if isinstance(node, ConfigureFabric):
            counts.setdefault(node.operand.name, []).append(node)
    single = {task.queue for task in code.data_tasks} | set(_single(code))
    yield from (_Use(nets[queue], Number(1), False, ()) for queue in sorted(single))
    for one in code.filters:
        yield from (_Use(nets[one.queue], count, True, ()) for count in (one.skip, one.keep, one.period))
    for node in all_nodes(code):
        if isinstance(node, Invoke):
            yield from _of_instruction(node, counts, nets, machine)


def _single(code: RoleCode) -> Iterator[str]:
    """Yield the queues from or to which single elements go, wherever that stands in the code."""
    for node in all_nodes(code):
        if isinstance(node, Send | SendEnd):
            yield node.queue
        yield from (r.queue for r in _received(node))


def _received(node: object) -> Iterator[Received]:
    for held in vars(node).values():
        for part in held if isinstance(held, tuple) else (held,):
            if isinstance(part, Compute):
                yield from (value for _, value in part.values if isinstance(value, Received))


def _of_instruction(
    node: Invoke, counts: Mapping[str, Sequence[ConfigureFabric]], nets: Mapping[str, Net], machine: Machine
) -> Iterator[_Use]:
    entry = instruction(node.instruction)
    operands = zip((node.destination, *node.sources), (entry.destination, *entry.sources), strict=True)
    fabric = [(o, t) for o, t in operands if isinstance(o, OperandRef) and o.name in counts]
    involved = tuple(nets[c.queue] for o, _ in fabric for c in counts[o.name])
    possible = machine.simd_width(node.instruction) >= EVEN and all(t.size == EVEN for _, t in fabric)
    for operand, _ in fabric:
        for each in counts[operand.name]:
            yield _Use(nets[each.queue], each.elements, possible, involved)


def _groups(uses: Sequence[_Use]) -> list[set[Net]]:
    """Return the nets that are used, those together that meet in an instruction."""
    groups: list[set[Net]] = []
    for use in uses:
        joined = {use.net, *use.both}
        apart = [group for group in groups if not group & joined]
        for group in groups:
            if group & joined:
                joined |= group
        groups = [*apart, joined]
    return groups


def _block(uses: Sequence[_Use]) -> int | None:
    """Return after how many elements a wavelet ends in any case; None where there can be no pairs."""
    if not all(use.possible for use in uses):
        return None
    if all(_is_even(use.count) for use in uses):
        return EVEN
    numbers = {use.count.value if isinstance(use.count, Number) else None for use in uses}
    (number, *others) = numbers
    return None if others or number is None or number < EVEN else number


def _is_even(expression: IntExpression) -> bool:
    match expression:
        case Number(value=value):
            return value % 2 == 0
        case Operation(operator="*", operands=operands):
            return any(map(_is_even, operands))
        case Operation(operator="+" | "-" | "min" | "max", operands=operands):
            return all(map(_is_even, operands))
        case Operation(operator="?", operands=(_, then, otherwise)):
            return _is_even(then) and _is_even(otherwise)
        case _:
            return False


def _with_pairs(code: RoleCode, queues: set[str]) -> RoleCode:
    """Return a role whose operands on some queues have pairs."""
    if not queues.intersection((*code.inputs, *code.outputs)):
        return code
    return replace(
        code,
        filters=tuple(replace(one, pairs=True) if one.queue in queues else one for one in code.filters),
        main=_marked(code.main, queues),
        data_tasks=tuple(
            replace(t, body=_marked(t.body, queues), end=_marked(t.end, queues)) for t in code.data_tasks
        ),
        local_tasks=tuple(replace(t, body=_marked(t.body, queues)) for t in code.local_tasks),
    )


def _marked(code: Code, queues: set[str]) -> Code:
    return tuple(_marked_node(node, queues) for node in code)


def _marked_node(node: Node, queues: set[str]) -> Node:
    if isinstance(node, ConfigureFabric):
        return replace(node, pairs=True) if node.queue in queues else node
    if isinstance(node, If):
        return replace(node, body=_marked(node.body, queues), otherwise=_marked(node.otherwise, queues))
    if isinstance(node, For | Scope | CountDown | CountUp | IfNextInvocation):
        return replace(node, body=_marked(node.body, queues))
    return node
