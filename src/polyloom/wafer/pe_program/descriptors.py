"""The files of operand descriptors: which operands stay in them, and which are loaded again for each use.

An instruction takes its destination from one file of descriptors, its first source from a second, the others
from a third. An operand is configured once and stays, as long as its file has room; of those for which there
is none, each use begins with configuring it again, which costs what the machine says.
Not in the papers: dtg_codegen configures every operand once. Source: wafer-target.md, 1.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from polyloom.wafer.pe_program.tree import (
    Code,
    Configure,
    ConfigureFabric,
    CountDown,
    CountUp,
    For,
    If,
    IfNextInvocation,
    Invoke,
    Node,
    OperandRef,
    RoleCode,
    Scope,
    SetLength,
    all_nodes,
    nodes_in,
)

FILES = ("destination", "first source", "other sources")


@dataclass(frozen=True)
class DescriptorUse:
    """``used``: operands of each file; ``loaded``: what tasks configure; ``reloaded``: what they should.

    ``held``: descriptors that each file needs so, one of them to load these into.
    """

    used: tuple[int, int, int]
    loaded: frozenset[str]
    reloaded: tuple[str, ...]
    held: tuple[int, int, int]


def descriptor_use(code: RoleCode, capacity: int) -> DescriptorUse:
    """Return what a role's instructions need of files of ``capacity`` descriptors."""
    files, loaded = _files(code), _configured_in_tasks(code)
    used = [sum(counts.values()) for counts in files]
    reloaded = _reloaded(code, files, loaded, capacity)
    held = [_held(counts, loaded.union(reloaded)) for counts in files]
    return DescriptorUse((used[0], used[1], used[2]), loaded, reloaded, (held[0], held[1], held[2]))


def _held(counts: Mapping[str, int], loaded: frozenset[str]) -> int:
    """Return the descriptors of the operands that stay, and one to load the others into."""
    staying = sum(count for name, count in counts.items() if name not in loaded)
    return staying + any(name in loaded for name in counts)


def _configured_in_tasks(code: RoleCode) -> frozenset[str]:
    """Return the operands that tasks configure before they use them."""
    tasks = [c for t in code.data_tasks for c in (t.body, t.end)] + [t.body for t in code.local_tasks]
    nodes = (node for task in tasks for node in nodes_in(task))
    return frozenset(n.operand.name for n in nodes if isinstance(n, Configure | ConfigureFabric))


def with_reloads(code: RoleCode, capacity: int) -> RoleCode:
    """Configure each operand for which there is no room again before each of its uses.

    ``invoke_simd(fmovh, a, b)`` becomes ``configure(a, ...); invoke_simd(fmovh, a, b)``.
    """
    again = set(descriptor_use(code, capacity).reloaded)
    if not again:
        return code
    setup = {n.operand.name: n for n in nodes_in(code.main) if isinstance(n, Configure | ConfigureFabric)}
    loads = {name: node for name, node in setup.items() if name in again}
    tasks = (replace(t, body=_reload(t.body, loads), end=_reload(t.end, loads)) for t in code.data_tasks)
    local = (replace(t, body=_reload(t.body, loads)) for t in code.local_tasks)
    return replace(code, data_tasks=tuple(tasks), local_tasks=tuple(local))


def _reload(code: Code, loads: Mapping[str, Node]) -> Code:
    result: list[Node] = []
    for node in code:
        if isinstance(node, Invoke):
            result += [loads[name] for name in dict.fromkeys(_names(node)) if name in loads]
        result.append(_inside(node, loads))
    return tuple(result)


def _inside(node: Node, loads: Mapping[str, Node]) -> Node:
    if isinstance(node, If):
        return replace(node, body=_reload(node.body, loads), otherwise=_reload(node.otherwise, loads))
    if isinstance(node, For | Scope | CountDown | CountUp | IfNextInvocation):
        return replace(node, body=_reload(node.body, loads))
    return node


def _names(node: Invoke) -> Iterator[str]:
    for operand in (node.destination, *node.sources):
        if isinstance(operand, OperandRef):
            yield operand.name


def _files(code: RoleCode) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Return the operands of each file, with the descriptors that each takes."""
    counts = {declared.name: declared.count for declared in code.operands}
    files: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
    for node in all_nodes(code):
        if isinstance(node, Invoke):
            files[0][node.destination.name] = counts[node.destination.name]
            for position, source in enumerate(node.sources):
                if isinstance(source, OperandRef):
                    files[min(position, 1) + 1][source.name] = counts[source.name]
    return files


def _reloaded(
    code: RoleCode, files: tuple[dict[str, int], ...], loaded: frozenset[str], capacity: int
) -> tuple[str, ...]:
    """Choose operands until each file has room for the others, and a descriptor to load these into.

    Those that are used once an invocation come first, then those in loops, the deepest last; of equal ones
    the last declared comes first. What a microthread uses, what is chosen at run time and what has a length
    of its own stays.
    """
    full = [counts for counts in files if _held(counts, loaded) > capacity]
    chosen: list[str] = []
    for name in _candidates(code):
        if any(name in counts and _held(counts, loaded.union(chosen)) > capacity for counts in full):
            chosen.append(name)
    return tuple(name for name in chosen if name not in loaded)


def _candidates(code: RoleCode) -> list[str]:
    """Return the operands that may be loaded for each use, those of elements of a stream last."""
    fixed = {n for node in all_nodes(code) if isinstance(node, Invoke) and node.then for n in _names(node)}
    fixed |= {node.operand.name for node in all_nodes(code) if isinstance(node, SetLength)}
    arriving = [node for task in code.data_tasks for node in nodes_in((*task.body, *task.end))]
    often = {n for node in arriving if isinstance(node, Invoke) for n in _names(node)}
    uses = _uses(code)
    free = [(d.name in often, uses[d.name], -k, d.name) for k, d in enumerate(code.operands) if d.count == 1]
    return [name for *_, name in sorted(free) if name not in fixed]


_TRIPS = 8
"""A guess of how often a loop runs: only the order of uses matters."""


def _uses(code: RoleCode) -> Counter[str]:
    """Return how often each operand is used by an instruction, each loop counting as a few times."""
    found: Counter[str] = Counter()
    for task in (*(c for t in code.data_tasks for c in (t.body, t.end)), *(t.body for t in code.local_tasks)):
        _count(task, 1, found)
    return found


def _count(code: Code, times: int, found: Counter[str]) -> None:
    for node in code:
        if isinstance(node, Invoke):
            found.update(dict.fromkeys(_names(node), times))
        elif isinstance(node, For):
            _count(node.body, times * _TRIPS, found)
        elif isinstance(node, If):
            _count((*node.body, *node.otherwise), times, found)
        elif isinstance(node, Scope | CountDown | CountUp | IfNextInvocation):
            _count(node.body, times, found)
