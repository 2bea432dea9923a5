"""A network on one wafer as a CSL project: the layers' programs at their places, exchanges, streams.

The host's PEs lie in a column west of the mesh: one sends what its row is fed, one keeps what its row gives
and notes when each sample is complete. Tables of exchanges, and the order of results, are data for the host
program, in ``network.npz``. Source: docs/csl_output.md.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Unsupported, error
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.types import ElementType
from polyloom.wafer.csl_output.layout import Area, Frame, Routed, Tile, layout_file
from polyloom.wafer.csl_output.limits import input_queue, local_tasks, output_queue
from polyloom.wafer.csl_output.project import IDLE, colors_that_start_tasks, coordinates_of, host_files
from polyloom.wafer.csl_output.reference import reference_file
from polyloom.wafer.csl_output.role import role_file
from polyloom.wafer.csl_output.statements import MOVES
from polyloom.wafer.csl_output.text import STAMPS, TYPES
from polyloom.wafer.host.manifest import manifest
from polyloom.wafer.mapping.grid import Grid
from polyloom.wafer.network.constants import computed_before
from polyloom.wafer.network.csl_output.lines import StageColors, box, line_parts
from polyloom.wafer.network.exchange import BUFFER
from polyloom.wafer.network.exchanges import Carried, Exchange
from polyloom.wafer.network.floor_plan import Place
from polyloom.wafer.network.program import NetworkProgram
from polyloom.wafer.network.tables import positions_of
from polyloom.wafer.program.wafer_program import RoleProgram, queue_colors

HOST_COLUMN = 1
"""Columns west of the mesh, where the host's PEs lie."""

Arrays = dict[str, npt.NDArray[Any]]


def network_files(
    network: NetworkProgram, arch: str, weights: Mapping[str, npt.NDArray[Any]] | None = None
) -> dict[str, str | bytes]:
    """Return the files of a project for ``wse2`` or ``wse3``, name to content.

    ``weights``: values of inputs that the host program need not be given.

    Errors: ``Unsupported`` with ``csl-...`` for what CSL, or this printer, cannot say.
    """
    plan = network.plan
    frame = Frame(grid=Grid(plan.width, plan.height), left=HOST_COLUMN, top=0, right=0, bottom=0)
    data = _data_colors(network)
    texts: dict[str, str] = {"idle.csl": IDLE}
    symbols: dict[str, str] = {}
    areas = []
    for place in plan.places:
        own, kinds = _stage_files(place, arch, data)
        texts, symbols = texts | own, symbols | kinds
        areas.append(_area(network, place, frame, own))
    for exchange in network.exchanges:
        prefix = _prefix(exchange)
        for code in (exchange.code, exchange.last):
            if code is not None:
                texts[f"{code.name}.csl"] = role_file(code, arch, data, prefix)
        used = [*next(iter(exchange.tables.values())), *([BUFFER] if exchange.held else [])]
        symbols |= {f"{prefix}{a.name}": TYPES[a.type] for a in exchange.code.arrays if a.name in used}
    for kind in dict.fromkeys(_kind(network, c) for c in network.carried if _row(c) is not None):
        texts[_host_file("feed", kind)] = _filled("feed.csl", kind, arch, data)
        texts[_host_file("take", kind)] = _filled("take.csl", kind, arch, data)
        symbols[f"words_{TYPES[kind]}"] = TYPES[kind]
    rows, streams = _host_rows(network)
    title = "streets, and the host's PEs"
    areas.append(Area(title=title, pes=frame.pes, origin=(HOST_COLUMN, 0), tiles=rows, routes=()))
    symbols |= dict.fromkeys((*STAMPS, "sample_stamps"), "u16")
    constants = [StageColors(n, c).constant for n, c in network.colors.stages.items() if c]
    layout = layout_file(frame, areas, symbols, streams=streams, constants=constants)
    document, arrays = _document(network, arch, frame), _arrays(network)
    arrays |= {f"weight {name}": value for name, value in _weights(network, weights or {}).items()}
    return {
        **texts,
        "layout.csl": _only_used(layout, constants),
        "network.json": json.dumps(document, indent=1) + "\n",
        "network.npz": _npz(arrays),
        "reference.py": reference_file(plan.network.program),
        **host_files("network_run.py", arch, frame.width, frame.height),
    }


def _weights(network: NetworkProgram, weights: Mapping[str, npt.NDArray[Any]]) -> Arrays:
    """Return the weights, with what the host computes of them before. Errors: ``csl-network-constant``."""
    before = network.plan.network.before
    if before is not None and (before.state or not set(before.program.inputs) <= set(weights)):
        message = f"`{before.program.statements[-1].write.buffer}` is computed before the first sample"
        helps = ["compute it before, and give its result as an input"]
        raise Unsupported(error("csl-network-constant", message, helps=helps))
    types = {t.name: t.type.dtype for t in network.plan.network.program.tensors}
    given = {n: np.asarray(a).astype(types.get(n, a.dtype)) for n, a in weights.items()}
    return {**given, **computed_before(before, given, 1)}


def _only_used(layout: str, constants: Sequence[str]) -> str:
    """Return the layout without arrays of colors that nothing mentions but their declaration."""
    for line in constants:
        name = line.split()[1]
        if layout.count(f"{name}[") == 0:
            layout = layout.replace(f"{line}\n", "")
    return layout


def _data_colors(network: NetworkProgram) -> frozenset[int]:
    """Return the colors on the mesh whose wavelets start tasks."""
    found: set[int] = set()
    for place in network.plan.places:
        numbers = network.colors.stages[place.block.placed.stage.name]
        own = colors_that_start_tasks(place.block.placed.program)
        found |= {numbers[color] for color in own if color < len(numbers)}
    return frozenset(found)


# ---- Layers


def _stage_files(place: Place, arch: str, data: frozenset[int]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the programs of a layer, and what the host reads and writes there."""
    program, prefix = place.block.placed.program, f"{place.block.placed.stage.name}_"
    texts = {f"{r.code.name}.csl": role_file(r.code, arch, data, prefix) for r in program.roles}
    arrays = {entry["array"] for entry in manifest(program)["residents"]}
    declared = [array for role in program.roles for array in role.code.arrays]
    return texts, {f"{prefix}{a.name}": TYPES[a.type] for a in declared if a.name in arrays}


def _area(network: NetworkProgram, place: Place, frame: Frame, texts: Mapping[str, str]) -> Area:
    """Return the area of a layer's block: its PEs and the exchanges around them."""
    placed, block = place.block.placed, place.block
    colors = StageColors(placed.stage.name, network.colors.stages[placed.stage.name])
    tiles = [_tile(place, role, colors, texts[f"{role.code.name}.csl"]) for role in placed.program.roles]
    of_layer = placed.program.routing.routes
    routes = [Routed(r.pes, str(colors.numbers[r.color]), r.source, r.targets) for r in of_layer]
    for carried in network.carried:
        for exchange in carried.exchanges:
            if exchange.line.stage == placed.stage.name:
                stream = network.colors.streams[carried.net.stream.tensor]
                parts = line_parts(place, exchange.line, stream, network.colors)
                tiles += parts.tiles
                routes += parts.routes
    (x, y), (left, top) = place.origin, (place.x, place.y)
    columns, rows = (left, left + block.width - 1), (top, top + block.height - 1)
    return Area(
        title=f"the layer `{placed.stage.name}` and its exchanges",
        pes=box((columns[0] - x, columns[1] - x), (rows[0] - y, rows[1] - y)),
        origin=(x + frame.left, y + frame.top),
        tiles=tuple(tiles),
        routes=tuple(routes),
        box=((columns[0] + frame.left, columns[1] + frame.left), (rows[0] + frame.top, rows[1] + frame.top)),
    )


def _tile(place: Place, role: RoleProgram, colors: StageColors, text: str) -> Tile:
    of_queues = queue_colors(place.block.placed.program, role)
    own = {queue: colors.text(of_queues[queue]) for queue in (*role.code.inputs, *role.code.outputs)}
    file, coordinates = f"{role.code.name}.csl", coordinates_of(text)
    return Tile(file=file, pes=role.pes, origin=role.origin, colors=own, coordinates=coordinates)


# ---- The host's PEs


def _row(carried: Carried) -> int | None:
    return carried.net.fed if carried.net.fed is not None else carried.net.taken


def _kind(network: NetworkProgram, carried: Carried) -> ElementType:
    return network.plan.network.buffer(carried.net.stream.tensor).type


def _host_file(verb: str, kind: ElementType) -> str:
    return f"{verb}_{TYPES[kind]}.csl"


def _filled(name: str, kind: ElementType, arch: str, data: frozenset[int]) -> str:
    """Return a program of the host's PEs for elements of a type."""
    text = (files("polyloom.wafer.csl_output") / f"{name}.txt").read_text(encoding="utf-8")
    (task,) = local_tasks(1, arch, data, name)
    fields = [".simd_mode = .{ .simd_off = true }"] if kind.size == 2 else []
    out = [".fabric_color = network_color"] if arch == "wse2" else []
    sends = name == "feed.csl"
    told = [] if sends and arch == "wse2" else ["@initialize_queue(queue, .{ .color = network_color });"]
    values = {
        "TYPE": TYPES[kind],
        "MOVE": MOVES[kind],
        "QUEUE": str(output_queue(0) if sends else input_queue(0)),
        "TASK": str(task),
        "FIELDS": "".join(f", {field}" for field in [*(out if sends else []), *fields]),
        "READY": "".join(f"  {line}\n" for line in told),
    }
    for key, value in values.items():
        text = text.replace(f"<{key}>", value)
    return text


def _host_rows(network: NetworkProgram) -> tuple[tuple[Tile, ...], tuple[Routed, ...]]:
    """Return the programs of the host's PEs, and the routes of all streams."""
    tiles, routes = [], []
    for carried in network.carried:
        net, row = carried.net, _row(carried)
        color = str(network.colors.streams[net.stream.tensor])
        routes += [Routed(box(way.x, way.y), color, way.source, way.targets) for way in net.ways]
        if row is None:
            continue
        if net.fed is not None and net.taken is not None:
            message = f"the host both feeds and takes `{net.stream.tensor}`"
            raise Unsupported(error("csl-form", f"no CSL is printed for this yet: {message}"))
        here = isl.Set(f"{{ PE[-1, {row}] }}")
        verb, way = ("feed", ("ramp", ("east",))) if net.fed is not None else ("take", ("east", ("ramp",)))
        routes.append(Routed(here, color, *way))
        parameters = (".invocations = invocations", f".elements = {carried.length}")
        file = _host_file(verb, _kind(network, carried))
        tiles.append(Tile(file=file, pes=here, colors={"network": color}, parameters=parameters))
    return tuple(tiles), tuple(routes)


# ---- What the host program reads


def _prefix(exchange: Exchange) -> str:
    """Return what the host's names of an exchange's arrays begin with: types of buffers differ."""
    return f"{exchange.line.name}_" if exchange.held else ""


def _document(network: NetworkProgram, arch: str, frame: Frame) -> dict[str, Any]:
    plan, program = network.plan, network.plan.network.program
    buffers = [program.buffer(name) for name in (*program.inputs, *program.outputs)]
    sides = {"left": frame.left, "top": frame.top, "width": frame.width, "height": frame.height}
    return {
        "csl": {"arch": arch, **sides},
        "tensors": {b.name: {"type": b.type.value, "shape": list(shape_of(b, {}))} for b in buffers},
        "inputs": list(program.inputs),
        "streamed": list(plan.network.streamed),
        "outputs": list(program.outputs),
        "layers": [_layer(place) for place in plan.places],
        "exchanges": [_exchange(network, c, e) for c in network.carried for e in c.exchanges],
        "fed": [_at_host(network, c) for c in network.carried if c.net.fed is not None],
        "taken": [_at_host(network, c) for c in network.carried if c.net.taken is not None],
    }


def _layer(place: Place) -> dict[str, Any]:
    found = manifest(place.block.placed.program)
    return {
        "name": place.block.placed.stage.name,
        "origin": list(place.origin),
        "size": found["size"],
        "roles": {role["name"]: role["where"] for role in found["roles"]},
        "residents": found["residents"],
    }


def _exchange(network: NetworkProgram, carried: Carried, exchange: Exchange) -> dict[str, Any]:
    """Return where an exchange's tables go, and what state it holds."""
    line, place = exchange.line, network.plan.place(exchange.line.stage)
    (x, _), (y, _) = place.line_box(line)
    step = (1, 0) if line.is_row else (0, 1)
    found: dict[str, Any] = {
        "name": line.name,
        "prefix": _prefix(exchange),
        "pes": [[x + step[0] * (p - line.low), y + step[1] * (p - line.low)] for p in exchange.tables],
        "tables": list(next(iter(exchange.tables.values()))),
    }
    if exchange.held and carried.net.stream.state is not None:
        ports = [order.position - line.low for order in exchange.held]
        found["state"] = {
            "names": list(carried.net.stream.state),
            "pes": [[x + step[0] * p, y + step[1] * p] for p in ports],
            "type": line.group.type.value,
            "cells": exchange.cells,
            "buffers": exchange.buffers,
        }
    return found


def _at_host(network: NetworkProgram, carried: Carried) -> dict[str, Any]:
    kind, tensor = _kind(network, carried), carried.net.stream.tensor
    return {
        "tensor": tensor,
        "row": _row(carried),
        "words": f"words_{TYPES[kind]}",
        "type": kind.value,
        "elements": carried.length,
        "results": [name for name, _ in carried.net.stream.results],
    }


def _arrays(network: NetworkProgram) -> Arrays:
    """Return tables of exchanges, the order of results, and which elements of a state each port holds."""
    found: Arrays = {}
    program = network.plan.network.program
    for carried in network.carried:
        for exchange in carried.exchanges:
            for name in next(iter(exchange.tables.values())):
                tables = [table[name].reshape(-1) for table in exchange.tables.values()]
                found[f"table {exchange.line.name} {name}"] = np.stack(tables)
            for number, order in enumerate(exchange.held):
                found[f"state {exchange.line.name} {number}"] = order.element.reshape(-1)
        if carried.net.taken is not None:
            for name, elements in carried.net.stream.results:
                shape = program.buffer(name).extents
                grid = np.argwhere(np.ones(shape, dtype=np.bool_))
                found[f"order {name}"] = positions_of(grid, elements, carried.positions).astype(np.int32)
    return found


def _npz(arrays: Arrays) -> bytes:
    target = io.BytesIO()
    np.savez_compressed(target, **arrays)  # type: ignore[arg-type]
    return target.getvalue()
