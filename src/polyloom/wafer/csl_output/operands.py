"""The operands of a role of PE: what its code configures, how it is declared, and which one is meant.

A SIMD operand is a data structure descriptor (DSD). Source: wafer-target.md, 2.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, names_in, sum_of
from polyloom.wafer.csl_output.flat import array_of, place
from polyloom.wafer.csl_output.limits import FIRST_CONTROL_TASK
from polyloom.wafer.csl_output.text import TYPES, bare, cannot, integer
from polyloom.wafer.machine.instructions import instruction
from polyloom.wafer.pe_program.tree import (
    Configure,
    ConfigureFabric,
    ConfigureRun,
    Invoke,
    Node,
    OperandRef,
    RoleCode,
    SetBase,
    SetLength,
    all_nodes,
    nodes_in,
)

_KNOWN = frozenset(("PE_X", "PE_Y"))
"""What a declaration may read: parameters of the program."""


LARGEST_STRIDE = 127
"""Of a mem1d DSD: a signed byte."""


@dataclass(frozen=True)
class Operand:
    """A descriptor of memory or of a queue as the setup of a role says it; ``moves``: tasks change it."""

    name: str
    type: ElementType
    setup: Configure | ConfigureFabric
    array: str | None
    start: IntExpression
    moves: bool


def memory_descriptor(setup: Configure, array: str, start: IntExpression) -> str:
    """Return the descriptor of elements of a flat array; ``start``: the place of its first one."""
    sizes, strides = setup.sizes, setup.strides
    if len(sizes) == 1 and abs(strides[0]) > LARGEST_STRIDE:
        sizes, strides = (Number(1), *sizes), (0, *strides)
    form = "mem1d_dsd" if len(sizes) == 1 else "mem4d_dsd"
    iterators = "ijkl"[: len(sizes)]
    terms = [(stride, Name(name)) for stride, name in zip(strides, iterators, strict=True) if stride]
    at = sum_of([*terms, (1, start)])
    extents = ", ".join(map(_extent, sizes))
    access = f"|{','.join(iterators)}|{{{extents}}} -> {array}[{bare(integer(at))}]"
    return f"@get_dsd({form}, .{{ .tensor_access = {access} }})"


def single_element(queue: str, kind: ElementType) -> str:
    """Return the descriptor of one element of a queue, which may carry elements of several types."""
    return f"{queue}_one_{TYPES[kind]}"


def received_value(queue: str, kind: ElementType) -> str:
    """Return the variable that takes an element of a queue."""
    return f"{queue}_value_{TYPES[kind]}"


def control_task(queue: str) -> str:
    """Return the task that the end of a chunk from a queue starts."""
    return f"@get_control_task_id({FIRST_CONTROL_TASK} + @get_int({queue}_color))"


def operands_of(code: RoleCode) -> Iterator[Operand]:
    """Yield the operands with their setup: by ``main``, or by the first task that configures them.

    ``code``: over flat arrays.
    """
    arrays_by_name = {array.name: array for array in code.arrays}
    counts = {declared.name: declared.count for declared in code.operands}
    kinds = _types(code)
    setups: dict[str, Configure | ConfigureFabric] = {}
    arrays: dict[str, str] = {}
    starts: dict[str, IntExpression] = {}
    in_main = list(nodes_in(code.main))
    for node in all_nodes(code):
        for name, each in _of_each(node, counts):
            if isinstance(each, Configure | ConfigureFabric):
                setups.setdefault(name, each)
            elif isinstance(each, ConfigureRun):
                setups.setdefault(name, Configure(OperandRef(name), (Number(1),), (1,)))
            elif isinstance(each, SetBase):
                arrays.setdefault(name, array_of(each.element))
                if node in in_main:
                    starts[name] = place(each.element, arrays_by_name)
    moved = {
        name
        for node in _in_tasks(code)
        for name, each in _of_each(node, counts)
        if not (isinstance(each, Configure | ConfigureFabric) and each == setups[name])
    }
    for name, setup in ((name, _declared(setup)) for name, setup in setups.items()):
        lowest = _first(setup.sizes, setup.strides) if isinstance(setup, Configure) else Number(0)
        yield Operand(
            name=name,
            type=kinds[name],
            setup=setup,
            array=arrays.get(name),
            start=starts.get(name, lowest),
            moves=name in moved or setup != setups[name],
        )


def shaped_first(code: RoleCode) -> frozenset[str]:
    """Return the operands that a task gives a form and then a place, which must leave the form as it is."""
    found: set[str] = set()
    for body in (*((*task.body, *task.end) for task in code.data_tasks), *(t.body for t in code.local_tasks)):
        shaped: set[str] = set()
        for node in nodes_in(body):
            if isinstance(node, Configure | ConfigureRun | SetLength):
                shaped.add(node.operand.name)
            elif isinstance(node, SetBase) and node.element.word is None and node.operand.selector is None:
                found |= {node.operand.name} & shaped
    return frozenset(found)


def references(node: Node) -> Iterator[OperandRef]:
    """Yield the operands that a node configures or works on."""
    if isinstance(node, Configure | ConfigureFabric | ConfigureRun | SetBase | SetLength):
        yield node.operand
    elif isinstance(node, Invoke):
        yield node.destination
        yield from (source for source in node.sources if isinstance(source, OperandRef))


def selector_of(node: Node) -> str | None:
    """Return the variable that selects a node's operands among several; None where nothing does."""
    selectors = {r.selector for r in references(node) if r.selector and not r.selector.isdigit()}
    if len(selectors) > 1:
        raise cannot("one instruction selects its operands by several variables")
    return next(iter(selectors), None)


def resolved(node: Node, selected: str) -> Node:
    """Return a node whose operands are single ones: those of several have a number at the end."""

    def single(reference: OperandRef) -> OperandRef:
        if reference.selector is None:
            return reference
        number = reference.selector if reference.selector.isdigit() else selected
        return OperandRef(f"{reference.name}_{number}")

    if isinstance(node, Configure | ConfigureFabric | ConfigureRun | SetBase | SetLength):
        return replace(node, operand=single(node.operand))
    if isinstance(node, Invoke):
        sources = tuple(single(s) if isinstance(s, OperandRef) else s for s in node.sources)
        return replace(node, destination=single(node.destination), sources=sources)
    return node


def names_of_each(name: str, count: int) -> Sequence[str]:
    """Return the names of the single operands that a declared one stands for."""
    return (name,) if count == 1 else tuple(f"{name}_{k}" for k in range(count))


def _in_tasks(code: RoleCode) -> Iterator[Node]:
    for task in code.data_tasks:
        yield from nodes_in((*task.body, *task.end))
    for local in code.local_tasks:
        yield from nodes_in(local.body)


def _of_each(node: Node, counts: Mapping[str, int]) -> Iterator[tuple[str, Node]]:
    """Yield what a node does to an operand, for each of several that it may be, with its own name."""
    if isinstance(node, Configure | ConfigureFabric | ConfigureRun | SetBase | SetLength):
        operand = node.operand
        match = re.fullmatch(r"(\w+)", operand.selector or "")
        if operand.selector is None:
            yield operand.name, node
        elif operand.selector.isdigit():
            name = f"{operand.name}_{operand.selector}"
            yield name, replace(node, operand=OperandRef(name))
        elif match is not None:
            for k in range(counts[operand.name]):
                name = f"{operand.name}_{k}"
                yield name, replace(node, operand=OperandRef(name))


def _extent(size: IntExpression) -> str:
    """Return a size of a descriptor, which is computed in i16 where it is known at run time only."""
    text = bare(integer(size))
    return text if names_in(size) <= _KNOWN else f"@as(u16, {text})"


def _declared(setup: Configure | ConfigureFabric) -> Configure | ConfigureFabric:
    """Return a setup that can stand in a declaration: of one element, where its size is known later only."""
    sizes = setup.sizes if isinstance(setup, Configure) else (setup.elements,)
    if all(names_in(size) <= _KNOWN for size in sizes):
        return setup
    if isinstance(setup, ConfigureFabric):
        return replace(setup, elements=Number(1))
    return replace(setup, sizes=tuple(s if names_in(s) <= _KNOWN else Number(1) for s in sizes))


def _first(sizes: Sequence[IntExpression], strides: Sequence[int]) -> IntExpression:
    """Return how far the first element lies behind the lowest one: what runs backwards begins at its end."""
    back = [(-stride, size) for size, stride in zip(sizes, strides, strict=True) if stride < 0]
    return sum_of([*back, (1, Number(sum(stride for stride in strides if stride < 0)))])


def _types(code: RoleCode) -> dict[str, ElementType]:
    """Return the element type of each operand, from the instructions that use it."""
    counts = {declared.name: declared.count for declared in code.operands}
    found: dict[str, ElementType] = {}
    for node in all_nodes(code):
        if isinstance(node, Invoke):
            entry = instruction(node.instruction)
            pairs = [(node.destination, entry.destination), *zip(node.sources, entry.sources, strict=True)]
            for reference, kind in pairs:
                if isinstance(reference, OperandRef):
                    for name in names_of_each(reference.name, counts[reference.name]):
                        found[name] = kind
    return found
