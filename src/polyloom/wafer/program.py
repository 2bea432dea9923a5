"""A compiled layer: the emitted files, and what a host must know to load, feed and collect."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.diagnostics import Unsupported, error
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.code import RoleCode
from polyloom.wafer.emit_c import INTEGERS_H, operand_count, role_file
from polyloom.wafer.layout import layout_file
from polyloom.wafer.role_context import RoleBuilder
from polyloom.wafer.role_program import role_code
from polyloom.wafer.roles import Role, find_roles
from polyloom.wafer.routes import Routing, route
from polyloom.wafer.simulator.machine import Machine
from polyloom.wafer.stream_code import StreamOnRole, streams_on


@dataclass(frozen=True)
class MemoryField:
    """A field of a role's ``struct memory``: ``offset`` and ``bytes`` in bytes."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True, eq=False)
class RoleProgram:
    """One role: its PEs, its program, its streams, and its memory by C's rules of alignment."""

    role: Role
    code: RoleCode
    streams: tuple[StreamOnRole, ...]
    memory: tuple[MemoryField, ...]

    @property
    def memory_bytes(self) -> int:
        """``sizeof(struct memory)``."""
        size = max((f.offset + f.bytes for f in self.memory), default=2)
        alignment = max((a.type.size for a in self.code.arrays), default=2)
        return -(-size // alignment) * alignment

    def offset(self, name: str) -> int:
        """Return the byte offset of a field; KeyError where the role has none of that name."""
        return {f.name: f.offset for f in self.memory}[name]

    def has(self, name: str) -> bool:
        """Whether the role's memory has a field."""
        return any(f.name == name for f in self.memory)


@dataclass(frozen=True, eq=False)
class WaferProgram:
    """``files``: name to text: the roles' C, ``layout.c`` and ``integers.h``."""

    analysis: LayerAnalysis
    machine: Machine
    roles: tuple[RoleProgram, ...]
    routing: Routing
    files: dict[str, str]


def compile_program(analysis: LayerAnalysis, machine: Machine) -> WaferProgram:
    """Make the code of every role and the layout.

    Raises PolyloomError and Unsupported (``wafer-...``) where the layer does not fit the machine: memory,
    colors, queues, descriptors, the grid.
    """
    _check_grid(analysis, machine)
    routing = route(analysis.graph, machine.colors)
    roles = tuple(_role_program(analysis, role) for role in find_roles(analysis))
    for program in roles:
        _check_memory(analysis, machine, program)
        _check_queues(analysis, machine, program)
    files = {f"{p.code.name}.c": role_file(p.code) for p in roles}
    parts = tuple((p.role, p.code, p.streams) for p in roles)
    files["layout.c"] = layout_file(analysis.mapping.grid, parts, routing)
    files["integers.h"] = INTEGERS_H
    return WaferProgram(analysis, machine, roles, routing, files)


def _role_program(analysis: LayerAnalysis, role: Role) -> RoleProgram:
    code = role_code(analysis, role)
    return RoleProgram(role, code, streams_on(RoleBuilder(analysis, role)), _memory_fields(analysis, code))


def _memory_fields(analysis: LayerAnalysis, code: RoleCode) -> tuple[MemoryField, ...]:
    fields: list[MemoryField] = []
    end = 0
    sizes = {array.name: array.bytes for array in analysis.arrays.values()}
    for array in code.arrays:
        end = -(-end // array.type.size) * array.type.size
        fields.append(MemoryField(array.name, end, sizes[array.name]))
        end += sizes[array.name]
    end += end % 2
    for counter in code.counters:
        fields.append(MemoryField(counter, end, 2))
        end += 2
    return tuple(fields)


def _check_grid(analysis: LayerAnalysis, machine: Machine) -> None:
    grid = analysis.mapping.grid
    if grid.width > machine.grid[0] or grid.height > machine.grid[1]:
        wide, high = machine.grid
        raise Unsupported(
            error(
                "wafer-grid",
                f"{grid.width} x {grid.height} PEs do not fit on {machine.name}, which has {wide} x {high}",
                analysis.mapping.span("size"),
                helps=["make the rectangle smaller, so that each PE has more work"],
            )
        )


def _check_memory(analysis: LayerAnalysis, machine: Machine, program: RoleProgram) -> None:
    if program.memory_bytes <= machine.memory_bytes:
        return
    fields = sorted(program.memory, key=lambda f: -f.bytes)
    rows = "\n".join(f"{f.name:<24}{f.bytes:>10} bytes" for f in fields if f.bytes > 2)
    pes = program.role.pes.coalesce()
    raise Unsupported(
        error(
            "wafer-memory",
            f"{program.memory_bytes} bytes of data do not fit in the {machine.memory_bytes} bytes of a PE",
            analysis.mapping.span("compute_map"),
            notes=[
                f"on {pes}:\n{rows}",
                f"{machine.name} has {machine.sram_bytes} bytes, {machine.reserved_bytes} are kept for code",
            ],
            helps=["use more PEs, so that each keeps less of the largest tensors"],
        )
    )


def _check_queues(analysis: LayerAnalysis, machine: Machine, program: RoleProgram) -> None:
    code = program.code
    limits = (
        ("input queues", len(code.inputs), len(machine.input_queues)),
        ("output queues", len(code.outputs), len(machine.output_queues)),
    )
    for what, needed, available in limits:
        if needed > available:
            message = f"{program.role.pes} need {needed} {what}, {machine.name} has {available}"
            span = analysis.mapping.span("iport_map") or analysis.mapping.span("compute_map")
            helps = ["keep tensors in PE memory: leave them out of `iport_map` or `oport_map`"]
            raise Unsupported(error("wafer-queues", message, span, helps=helps))
    if operand_count(code) > 256:
        message = f"{program.role.pes} need {operand_count(code)} SIMD operands; at most 256 can be numbered"
        helps = ["place the statements on different PEs"]
        span = analysis.mapping.span("compute_map")
        raise Unsupported(error("wafer-operands", message, span, helps=helps))
