"""A compiled layer as a CSL project: layout, programs, host program, and the commands that run it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import product
from typing import Any

from polyloom.ir.evaluation.inputs import shape_of
from polyloom.polyhedra.loops.generate import IntExpression, Number, Operation
from polyloom.wafer.csl_output.layout import (
    Area,
    Routed,
    Tile,
    color_text,
    element_types,
    frame_of,
    layout_file,
    port_color,
    port_routes,
)
from polyloom.wafer.csl_output.limits import COLORS
from polyloom.wafer.csl_output.ports import Passing, passing, port_file, port_roles
from polyloom.wafer.csl_output.reference import reference_file
from polyloom.wafer.csl_output.role import role_file
from polyloom.wafer.csl_output.text import STAMPS
from polyloom.wafer.host.manifest import manifest
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram, queue_colors

IDLE = """\
// A PE that has nothing to do
param memcpy_params;
const sys = @import_module("<memcpy/memcpy>", memcpy_params);
var no_stamp = @zeros([3]u16);
var no_stamp_ptr: [*]u16 = &no_stamp;

fn compute(invocations: u16) void {
  sys.unblock_cmd_stream();
}

comptime {
  @export_symbol(no_stamp_ptr, "begin_stamp");
  @export_symbol(no_stamp_ptr, "end_stamp");
  @export_symbol(compute, "compute");
}
"""


def project_files(program: WaferProgram, arch: str) -> dict[str, str]:
    """Return the files of a project for ``wse2`` or ``wse3``, name to text.

    Errors: ``Unsupported`` with ``csl-...`` for what CSL, or this printer, cannot say.
    """
    analysis, routing = program.analysis, program.routing
    here = passing(program)
    data_colors = _data_colors(program, here)
    ports = port_roles(here)
    frame = frame_of(analysis.border.given.grid, here)
    texts = {f"{role.code.name}.csl": role_file(role.code, arch, data_colors) for role in program.roles}
    tiles = [_tile(program, role, texts[f"{role.code.name}.csl"]) for role in program.roles]
    for port in ports:
        texts[f"{port.name}.csl"] = port_file(port, arch, data_colors)
        of_ports = {each.name: color_text(port_color(each.group)) for each in port.passing}
        file = f"{port.name}.csl"
        tiles.append(
            Tile(file=file, pes=port.pes, colors=of_ports, parameters=(".invocations = invocations",))
        )
    described = manifest(program)
    codes = [role.code for role in program.roles]
    arrays = sorted(
        {e["array"] for key in ("zeros", "residents", "resident_outputs") for e in described[key]}
    )
    symbols = element_types(codes, arrays)
    for each in here:
        symbols |= {f"{each.name}_{what}": "u32" for what in _buffers(each)}
    symbols |= dict.fromkeys(STAMPS, "u16")
    described["tensors"] = {
        tensor.name: {"type": tensor.type.value, "shape": list(shape_of(tensor, {}))}
        for tensor in analysis.program.buffers
    }
    described["fed"], described["results"] = list(analysis.program.inputs), list(analysis.program.outputs)
    described["csl"] = {
        "arch": arch,
        "left": frame.left,
        "top": frame.top,
        "width": frame.width,
        "height": frame.height,
        "passing": [_passing(each) for each in here],
    }
    routes = (Routed(r.pes, str(r.color), r.source, r.targets) for r in routing.routes)
    ways = (*routes, *port_routes(ports))
    corner = frame.left, frame.top
    area = Area(title="all PEs", pes=frame.pes, origin=corner, tiles=tuple(tiles), routes=ways)
    texts["layout.csl"] = layout_file(frame, [area], symbols)
    texts["idle.csl"] = IDLE
    texts["layer.json"] = json.dumps(described, indent=1) + "\n"
    texts["reference.py"] = reference_file(analysis.program)
    return texts | host_files("run.py", arch, frame.width, frame.height)


def host_files(run: str, arch: str, width: int, height: int) -> dict[str, str]:
    """Return the host program ``run``, what it needs, and the commands, for so many columns and rows."""
    found = {
        name: (files(__package__) / f"{source}.txt").read_text(encoding="utf-8")
        for name, source in (("run.py", run), ("transfers.py", "transfers.py"))
    }
    return {**found, f"commands_{arch}.sh": _commands(arch, width, height)}


def _data_colors(program: WaferProgram, here: Sequence[Passing]) -> frozenset[int]:
    """Return the colors whose wavelets may start tasks: of sparse tensors, on any PE."""
    colors = set(colors_that_start_tasks(program))
    for each in here:
        if each.group.sparse and not each.inward:
            colors |= color_values(port_color(each.group))
    return frozenset(colors)


def colors_that_start_tasks(program: WaferProgram) -> frozenset[int]:
    """Return the colors of a layer whose wavelets start tasks of its roles."""
    colors: set[int] = set()
    for role in program.roles:
        started = {task.queue for task in role.code.data_tasks}
        for queue, color in queue_colors(program, role).items():
            colors |= color_values(color) if queue in started else set()
    return frozenset(colors)


def color_values(color: IntExpression) -> frozenset[int]:
    """Return colors among which that of a queue is on every PE; all where its form is another than ours."""
    match color:
        case Number(value=value):
            return frozenset((value,))
        case Operation(operator="%", operands=(_, Number(value=value))):
            return frozenset(range(value))
        case Operation(operator="+", operands=operands):
            return frozenset(sum(each) for each in product(*map(color_values, operands)))
        case Operation(operator="?", operands=(_, then, otherwise)):
            return color_values(then) | color_values(otherwise)
        case _:
            return frozenset(range(COLORS))


def _tile(program: WaferProgram, role: RoleProgram, text: str) -> Tile:
    queues, colors = (*role.code.inputs, *role.code.outputs), queue_colors(program, role)
    own = {queue: color_text(colors[queue]) for queue in queues}
    file = f"{role.code.name}.csl"
    return Tile(file=file, pes=role.pes, origin=role.origin, colors=own, coordinates=coordinates_of(text))


def coordinates_of(text: str) -> tuple[str, ...]:
    """Return the coordinates that a role's file is given."""
    return tuple(re.findall(r"^param (PE_[XY]): i16;", text, flags=re.MULTILINE))


def _buffers(each: Passing) -> tuple[str, ...]:
    return ("words", "lengths", "count") if each.inward and each.group.sparse else ("words", "count")


def _passing(each: Passing) -> dict[str, Any]:
    return {
        "name": each.name,
        "tensor": each.group.tensor,
        "side": each.group.side.value,
        "inward": each.inward,
        "sparse": each.group.sparse,
        "capacity": each.capacity,
        "chunks": each.chunks,
        "room": each.room,
    }


def _commands(arch: str, width: int, height: int) -> str:
    """Return the commands as the vendor's examples have them: memcpy needs columns and rows around."""
    return f"""\
#!/usr/bin/env bash
set -e

cslc --arch={arch} ./layout.csl --fabric-dims={width + 7},{height + 2} --fabric-offsets=4,1 \\
  --params=invocations:1 -o out --memcpy --channels=1
cs_python run.py --name out
"""
