"""A compiled layer: the emitted files, and what a host must know to load, feed and collect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from polyloom.diagnostics import Unsupported, error
from polyloom.polyhedra.effort import naming
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.codegen.border import border_role_code
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.pe_program.descriptors import with_reloads
from polyloom.wafer.pe_program.print_c import INTEGERS_H, role_file
from polyloom.wafer.program.bindings import Bindings, border_bindings, compute_bindings
from polyloom.wafer.program.layout_file import layout_file
from polyloom.wafer.program.paired_wavelets import Net, Paired, pair_wavelets
from polyloom.wafer.program.port_groups import PortGroup, inputs_of, outputs_of
from polyloom.wafer.program.precedence import SynchronisationPolicy
from polyloom.wafer.program.resources import RoleResources, check_fits, resources_of
from polyloom.wafer.program.role_program import role_code
from polyloom.wafer.program.synchronisation import choose_policy
from polyloom.wafer.roles.activities import RoleActivities, activities_on
from polyloom.wafer.roles.adapter_work import AdapterRole, adapter_roles
from polyloom.wafer.roles.result import MemoryField as MemoryField
from polyloom.wafer.roles.result import RoleProgram as RoleProgram
from polyloom.wafer.roles.result import memory_fields
from polyloom.wafer.roles.roles import find_roles
from polyloom.wafer.routing.all_routes import Routing, route


@dataclass(frozen=True, eq=False, kw_only=True)
class WaferProgram:
    """``files``: name to text: the roles' C, ``layout.c`` and ``integers.h``.

    ``inputs`` and ``outputs``: the ports of the given rectangle; ``resources``: what each role takes;
    ``policy``: what chains wait for before they start.
    """

    analysis: LayerAnalysis
    machine: Machine
    roles: tuple[RoleProgram, ...]
    resources: tuple[RoleResources, ...]
    policy: SynchronisationPolicy
    routing: Routing
    inputs: tuple[PortGroup, ...]
    outputs: tuple[PortGroup, ...]
    files: dict[str, str]


@dataclass(frozen=True, eq=False, kw_only=True)
class Survey:
    """The roles of a layer and what they take of a machine, whether it has that or not.

    ``blocks``: of the nets with two elements in a wavelet (``paired_wavelets``).
    """

    roles: tuple[RoleProgram, ...]
    resources: tuple[RoleResources, ...]
    policy: SynchronisationPolicy
    routing: Routing
    blocks: Mapping[Net, int]


class Onlooker(Protocol):
    """Sees the programs of roles as they are made."""

    def urgent(self, role: RoleActivities) -> bool:
        """Whether a role's program is to be made before those of others."""

    def see(self, role: RoleProgram) -> None:
        """Look at the next program; what is raised ends the survey."""


def survey(analysis: LayerAnalysis, machine: Machine, onlooker: Onlooker | None = None) -> Survey:
    """Make the programs of all roles and count what they take.

    ``onlooker`` sees each program when it is made: the urgent ones first, then those of the PEs that do most
    things.
    Raises Unsupported (``wafer-colors``, ``wafer-deadlock``) where no routes or no order were found.
    """
    routing = route(analysis.graph, analysis.border, machine.colors)
    with naming("the roles of the PEs"):
        found = [activities_on(analysis, role) for role in find_roles(analysis)]
        border = adapter_roles(analysis, routing.adapters)
    with naming("an order without deadlock"):
        policy = choose_policy(analysis, found, border)
    made: dict[int, RoleProgram] = {}
    for number in _in_order(found, onlooker):
        made[number] = _role_program(analysis, machine, found[number], policy)
        if onlooker is not None:
            onlooker.see(made[number])
    for number, adapters in enumerate(border, len(found)):
        made[number] = _border_program(analysis, machine, adapters)
        if onlooker is not None:
            onlooker.see(made[number])
    roles = tuple(made[number] for number in sorted(made))
    paired = Paired(roles, {})
    if analysis.options.has(Extension.PAIRED_WAVELETS) and machine.wavelet_elements > 1:
        paired = pair_wavelets(roles, routing, machine)
    with naming("what the programs of the PEs take of the machine"):
        used = resources_of(machine, routing, paired.roles)
    return Survey(roles=paired.roles, resources=used, policy=policy, routing=routing, blocks=paired.blocks)


def _in_order(found: Sequence[RoleActivities], onlooker: Onlooker | None) -> list[int]:
    """Return the numbers of roles in the order in which their programs are made."""

    def rank(number: int) -> tuple[bool, int]:
        urgent = onlooker is not None and onlooker.urgent(found[number])
        return not urgent, -len(found[number].activities)

    return sorted(range(len(found)), key=rank)


def compile_program(
    analysis: LayerAnalysis,
    machine: Machine,
    *,
    files: bool = True,
    onlooker: Onlooker | None = None,
) -> WaferProgram:
    """Make the code of every role and the layout; without ``files`` none is written, for the cost model.

    ``onlooker`` as of ``survey``.

    Raises PolyloomError and Unsupported (``wafer-...``) where the layer does not fit the machine: memory,
    colors, queues, tasks, descriptors, the grid.
    """
    _check_grid(analysis, machine)
    found = survey(analysis, machine, onlooker)
    check_fits(analysis.mapping, machine, found.resources)
    roles, routing = found.roles, found.routing
    with naming("the ports of the rectangle"):
        inputs = inputs_of(analysis, routing, found.blocks)
        outputs = outputs_of(analysis, routing, found.blocks)
    return WaferProgram(
        analysis=analysis,
        machine=machine,
        roles=roles,
        resources=found.resources,
        policy=found.policy,
        routing=routing,
        inputs=inputs,
        outputs=outputs,
        files=_files(analysis, found) if files else {},
    )


def _files(analysis: LayerAnalysis, found: Survey) -> dict[str, str]:
    files = {f"{p.code.name}.c": role_file(p.code) for p in found.roles}
    with naming("the layout of the PEs"):
        parts = tuple((p.pes, p.code, p.origin, _bindings(analysis, found.routing, p)) for p in found.roles)
        files["layout.c"] = layout_file(analysis.border.given.grid, parts, found.routing)
    files["integers.h"] = INTEGERS_H
    return files


def _role_program(
    analysis: LayerAnalysis, machine: Machine, here: RoleActivities, policy: SynchronisationPolicy
) -> RoleProgram:
    with naming(f"the program of the PEs `{here.role.name}`"):
        code = with_reloads(role_code(analysis, here, policy), machine.operand_descriptors)
    return RoleProgram(here, code, analysis.border.origin, memory_fields(code))


def _border_program(analysis: LayerAnalysis, machine: Machine, here: AdapterRole) -> RoleProgram:
    with naming(f"the program of the border's PEs `{here.role.name}`"):
        code = with_reloads(border_role_code(analysis, here), machine.operand_descriptors)
    return RoleProgram(here, code, (0, 0), memory_fields(code))


def queue_colors(program: WaferProgram, role: RoleProgram) -> Bindings:
    """Return the color of each queue of a role, as functions of a PE's coordinates in the given rectangle."""
    return _bindings(program.analysis, program.routing, role)


def _bindings(analysis: LayerAnalysis, routing: Routing, program: RoleProgram) -> Bindings:
    """Return the color of each queue of a role, which only the layout needs."""
    if isinstance(program.work, AdapterRole):
        return border_bindings(analysis.border, routing, program.role)
    return compute_bindings(routing, program.work.streams, program.role, program.origin)


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
