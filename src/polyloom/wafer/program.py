"""A compiled layer: the emitted files, and what a host must know to load, feed and collect."""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.diagnostics import Unsupported, error
from polyloom.polyhedra.loops import IntExpression
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.bindings import border_bindings, compute_bindings
from polyloom.wafer.border_code import border_role_code, border_roles
from polyloom.wafer.code import RoleCode
from polyloom.wafer.emit_c import INTEGERS_H, operand_count, role_file
from polyloom.wafer.layout import layout_file
from polyloom.wafer.port_groups import PortGroup, inputs_of, outputs_of
from polyloom.wafer.role_context import RoleBuilder
from polyloom.wafer.role_program import role_code
from polyloom.wafer.roles import Role, find_roles
from polyloom.wafer.routes import Routing, route
from polyloom.wafer.simulator.machine import Machine
from polyloom.wafer.stream_code import streams_on


@dataclass(frozen=True)
class MemoryField:
    """A field of a role's ``struct memory``: ``offset`` and ``bytes`` in bytes."""

    name: str
    offset: int
    bytes: int


@dataclass(frozen=True, eq=False)
class RoleProgram:
    """One role: its PEs, its program, and its memory by C's rules of alignment.

    ``role``: on PEs of the compute rectangle, or, for adapters, of the given one; ``origin``: where PE (0, 0)
    of that rectangle is in the given one; ``bindings``: the color of each queue, as an expression of PE_X and
    PE_Y in the given rectangle.
    """

    role: Role
    code: RoleCode
    origin: tuple[int, int]
    bindings: dict[str, IntExpression]
    memory: tuple[MemoryField, ...]

    @property
    def pes(self) -> isl.Set:
        """Return ``{ PE[x, y] }`` of the given rectangle."""
        return self.role.pes.apply(self.to_given())

    def to_given(self) -> isl.Map:
        """Return ``{ PE[x, y] -> PE[x, y] }``: from the role's rectangle to the given one."""
        x, y = self.origin
        return isl.Map(f"{{ PE[x, y] -> PE[x + {x}, y + {y}] }}")

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
    """``files``: name to text: the roles' C, ``layout.c`` and ``integers.h``.

    ``inputs`` and ``outputs``: the ports of the given rectangle.
    """

    analysis: LayerAnalysis
    machine: Machine
    roles: tuple[RoleProgram, ...]
    routing: Routing
    inputs: tuple[PortGroup, ...]
    outputs: tuple[PortGroup, ...]
    files: dict[str, str]


def compile_program(analysis: LayerAnalysis, machine: Machine) -> WaferProgram:
    """Make the code of every role and the layout.

    Raises PolyloomError and Unsupported (``wafer-...``) where the layer does not fit the machine: memory,
    colors, queues, descriptors, the grid.
    """
    _check_grid(analysis, machine)
    routing = route(analysis.graph, analysis.border, machine.colors)
    roles = (
        *(_role_program(analysis, routing, role) for role in find_roles(analysis)),
        *(_border_program(analysis, routing, role) for role in border_roles(analysis, routing.adapters)),
    )
    for program in roles:
        _check_memory(analysis, machine, program)
        _check_queues(analysis, machine, program)
    files = {f"{p.code.name}.c": role_file(p.code) for p in roles}
    parts = tuple((p.pes, p.code, p.origin, p.bindings) for p in roles)
    files["layout.c"] = layout_file(analysis.border.given.grid, parts, routing)
    files["integers.h"] = INTEGERS_H
    inputs, outputs = inputs_of(analysis, routing), outputs_of(analysis, routing)
    return WaferProgram(analysis, machine, roles, routing, inputs, outputs, files)


def _role_program(analysis: LayerAnalysis, routing: Routing, role: Role) -> RoleProgram:
    code, origin = role_code(analysis, role), analysis.border.origin
    bindings = compute_bindings(routing, streams_on(RoleBuilder(analysis, role)), role, origin)
    return RoleProgram(role, code, origin, bindings, _memory_fields(code))


def _border_program(analysis: LayerAnalysis, routing: Routing, role: Role) -> RoleProgram:
    code = border_role_code(analysis, routing.adapters, role)
    bindings = border_bindings(analysis.border, routing, role)
    return RoleProgram(role, code, (0, 0), bindings, _memory_fields(code))


def _memory_fields(code: RoleCode) -> tuple[MemoryField, ...]:
    fields: list[MemoryField] = []
    end = 0
    for array in code.arrays:
        end = -(-end // array.type.size) * array.type.size
        fields.append(MemoryField(array.name, end, array.bytes))
        end += array.bytes
    end += end % 2
    for counter in code.counters:
        fields.append(MemoryField(counter, end, 2))
        end += 2
    return tuple(fields)


def _check_grid(analysis: LayerAnalysis, machine: Machine) -> None:
    grid = analysis.border.given.grid
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
    pes = program.pes.coalesce()
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
            message = f"{program.pes} need {needed} {what}, {machine.name} has {available}"
            span = analysis.mapping.span("iport_map") or analysis.mapping.span("compute_map")
            helps = ["keep tensors in PE memory: leave them out of `iport_map` or `oport_map`"]
            raise Unsupported(error("wafer-queues", message, span, helps=helps))
    if operand_count(code) > 256:
        message = f"{program.pes} need {operand_count(code)} SIMD operands; at most 256 can be numbered"
        helps = ["place the statements on different PEs"]
        span = analysis.mapping.span("compute_map")
        raise Unsupported(error("wafer-operands", message, span, helps=helps))
