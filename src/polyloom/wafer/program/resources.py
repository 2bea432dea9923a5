"""The resources that a role needs, memory, colors, queues, tasks, descriptors, and whether they suffice.

Everything is counted for a role at once, by intersecting sets of PEs, never PE by PE.
Not in the papers. Source of the limits: the machine's file, with where each number comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.diagnostics import Diagnostic, Unsupported, error
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.mapping import Mapping
from polyloom.wafer.pe_program.descriptors import FILES, descriptor_use
from polyloom.wafer.pe_program.print_c import operand_count
from polyloom.wafer.pe_program.tree import Code, For, If, Invoke, RoleCode, Scope
from polyloom.wafer.roles.result import MemoryField, RoleProgram
from polyloom.wafer.routing.all_routes import Routing


@dataclass(frozen=True)
class Amount:
    """``used`` of ``limit``; ``what``: a plural noun; ``names``: what they are."""

    what: str
    used: int
    limit: int
    names: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the machine has as many."""
        return self.used <= self.limit


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleResources:
    """What the PEs of one role take. ``pes``: of the given rectangle.

    ``configurations``: SIMD operands that the role configures; ``loaded``: those configured for each use.
    """

    role: str
    pes: isl.Set
    amounts: tuple[Amount, ...]
    configurations: int
    loaded: tuple[str, ...]

    def amount(self, what: str) -> Amount:
        """Return an amount by its name; KeyError where there is none."""
        return {amount.what: amount for amount in self.amounts}[what]


MEMORY, COLORS, INPUTS, OUTPUTS = "bytes of memory", "colors", "input queues", "output queues"
TASKS, MICROTHREADS, DESCRIPTORS = "tasks", "microthreads", "descriptors"


def resources_of(
    machine: Machine, routing: Routing, programs: Sequence[RoleProgram]
) -> tuple[RoleResources, ...]:
    """Return what each role takes, in their order."""
    return tuple(_resources(machine, routing, program) for program in programs)


def _resources(machine: Machine, routing: Routing, program: RoleProgram) -> RoleResources:
    code, pes = program.code, program.pes.coalesce()
    descriptors = descriptor_use(code, machine.operand_descriptors)
    fields = sorted((f for f in program.memory if f.bytes > 2), key=lambda f: -f.bytes)
    colors = tuple(text for color, text in routing.colors if not routing.passed[color].is_disjoint(pes))
    beside = tuple(_started(code))
    tasks = (*(t.name for t in code.data_tasks), *(t.name for t in code.local_tasks))
    amounts = (
        Amount(MEMORY, program.memory_bytes, machine.memory_bytes, _sizes(fields)),
        Amount(COLORS, len(colors), machine.colors, colors),
        *_queues(machine, code),
        Amount(TASKS, len(tasks), machine.tasks, tasks),
        Amount(MICROTHREADS, min(len(beside), machine.microthreads), machine.microthreads, beside),
        *(
            Amount(f"{DESCRIPTORS} ({file})", held, machine.operand_descriptors, ())
            for file, held in zip(FILES, descriptors.held, strict=True)
        ),
    )
    return RoleResources(
        role=code.name,
        pes=pes,
        amounts=amounts,
        configurations=operand_count(code),
        loaded=tuple(sorted(descriptors.loaded)),
    )


def _queues(machine: Machine, code: RoleCode) -> tuple[Amount, Amount]:
    return (
        Amount(INPUTS, len(code.inputs), len(machine.input_queues), code.inputs),
        Amount(OUTPUTS, len(code.outputs), len(machine.output_queues), code.outputs),
    )


def _sizes(fields: Sequence[MemoryField]) -> tuple[str, ...]:
    return tuple(f"{f.name}: {f.bytes}" for f in fields)


def _started(code: RoleCode) -> Iterator[str]:
    """Yield the tasks that microthreads activate; if the machine has fewer, some wait (``activities``)."""
    for task in code.local_tasks:
        yield from _started_in(task.body)


def _started_in(code: Code) -> Iterator[str]:
    for node in code:
        if isinstance(node, Invoke) and node.then is not None:
            yield node.then
        elif isinstance(node, If | For | Scope):
            yield from _started_in(node.body)


# What does not fit.


_FEWER_QUEUES = (
    "keep tensors in PE memory: leave them out of `iport_map` or `oport_map`;"
    " or place statements on different PEs"
)
_HELPS = {
    MEMORY: "use more PEs, so that each keeps less of the largest tensors",
    COLORS: "let tensors enter and leave on other rows or columns: what meets nowhere shares a color",
    INPUTS: _FEWER_QUEUES,
    OUTPUTS: _FEWER_QUEUES,
    TASKS: "place the statements on different PEs",
    DESCRIPTORS: "place the statements on different PEs; `--simd enumerate` takes one for each size",
}


def check_fits(mapping: Mapping, machine: Machine, resources: Sequence[RoleResources]) -> None:
    """Refuse what the machine has too little of.

    Raises Unsupported ``wafer-memory``, ``wafer-queues``, ``wafer-tasks``,
    ``wafer-operands`` or ``wafer-descriptors``.
    """
    for role in resources:
        if role.configurations > MOST_OPERANDS:
            raise Unsupported(_too_many_operands(mapping, role))
        for amount in role.amounts:
            if not amount.fits:
                raise Unsupported(_too_much(mapping, machine, role, amount))


def check_queues(mapping: Mapping, machine: Machine, program: RoleProgram) -> None:
    """Refuse a role that takes more queues than there are, before there are programs of others.

    Errors: ``wafer-queues``, as of ``check_fits``.
    """
    taken = RoleResources(
        role=program.code.name,
        pes=program.pes.coalesce(),
        amounts=_queues(machine, program.code),
        configurations=0,
        loaded=(),
    )
    check_fits(mapping, machine, [taken])


def _too_many_operands(mapping: Mapping, role: RoleResources) -> Diagnostic:
    return error(
        "wafer-operands",
        f"{role.pes} need {role.configurations} SIMD operands; at most {MOST_OPERANDS} can be numbered",
        mapping.span("compute_map"),
        helps=[_HELPS[TASKS]],
    )


MOST_OPERANDS = 256
"""So many SIMD operands of a role can be numbered, in a byte."""

_CODES = {
    MEMORY: "wafer-memory",
    COLORS: "wafer-colors",
    INPUTS: "wafer-queues",
    OUTPUTS: "wafer-queues",
    TASKS: "wafer-tasks",
}


def _memory_rows(amount: Amount) -> str:
    """Return a line for each field that is named, and one for what is left, so that they add up."""
    sizes = [(name, int(size)) for name, size in (text.split(": ") for text in amount.names)]
    rest = amount.used - sum(size for _, size in sizes)
    rows = [*sizes, ("scalars and padding", rest)] if rest else sizes
    return "\n".join(f"{name:<24}{size:>10} bytes" for name, size in rows)


def _too_much(mapping: Mapping, machine: Machine, role: RoleResources, amount: Amount) -> Diagnostic:
    compute = mapping.span("compute_map")
    if amount.what == MEMORY:
        return error(
            "wafer-memory",
            f"{amount.used} bytes of data do not fit in the {amount.limit} bytes of a PE",
            compute,
            notes=[
                f"on {role.pes}:\n{_memory_rows(amount)}",
                f"{machine.name} has {machine.sram_bytes} bytes, {machine.reserved_bytes} are kept for code"
                if machine.reserved_bytes
                else f"`--memory` allows {machine.memory_bytes}",
            ],
            helps=[_HELPS[MEMORY]],
        )
    message = f"{role.pes} need {amount.used} {amount.what}, {machine.name} has {amount.limit}"
    ports = {INPUTS: mapping.span("iport_map"), OUTPUTS: mapping.span("oport_map")}
    return error(
        _CODES.get(amount.what, "wafer-descriptors"),
        message,
        ports.get(amount.what) or compute,
        notes=[f"these are {', '.join(amount.names)}"] if amount.names else [],
        helps=[_HELPS.get(amount.what, _HELPS[DESCRIPTORS])],
    )
