"""Random layers whose ports lie anywhere around the rectangle, with free border rows and columns.

Everything follows from one seed. Maps that no border line can serve must be refused in order.
"""

from __future__ import annotations

from random import Random

import islpy as isl
import layers
from layers import Layer

from polyloom.ir.program import Program
from polyloom.ir.relations import element_set
from polyloom.wafer.mapping.grid import Grid, Side

_NEXT = ";\n             "


def border_layer(seed: int) -> Layer:
    """Make the layer of a seed."""
    random = Random(f"border {seed}")
    program = next(p for p in iter(lambda: layers._program(random), None) if layers._is_exact(p))
    inner = random.randint(1, 3), random.randint(1, 3)
    free = {side: random.random() < 0.6 for side in Side}
    origin = int(free[Side.WEST]), int(free[Side.NORTH])
    grid = Grid(
        inner[0] + origin[0] + int(free[Side.EAST]),
        inner[1] + origin[1] + int(free[Side.SOUTH]),
    )
    shift = isl.Map(f"{{ PE[x, y] -> PE[x + {origin[0]}, y + {origin[1]}] }}")
    placement = {n: p.apply_range(shift) for n, p in _placements(random, program, inner).items()}
    sides = [side for side in Side if free[side]] or list(Side)
    text = _map(random, program, placement, grid, sides)
    return Layer(seed, program, text, random.choice([1.0, 1.0, 0.3]), random.choice([1, 1, 2, 3]))


def _placements(random: Random, program: Program, inner: tuple[int, int]) -> dict[str, isl.Map]:
    """Place a second statement where the first one's results are, or anywhere."""
    if random.random() < 0.5:
        return layers._placements(random, program, inner)
    return {s.name: layers._placement(random, s, inner) for s in program.statements}


def _map(
    random: Random, program: Program, placement: dict[str, isl.Map], grid: Grid, sides: list[Side]
) -> str:
    lines = [f"size: {{ PE[{grid.width}, {grid.height}] }}"]
    lines.append(f"compute_map: {{ {'; '.join(layers._inside(p) for p in placement.values())} }}")
    inputs = {name: _ports(random, program, name, grid, sides) for name in program.inputs}
    inputs = {name: ports for name, ports in inputs.items() if random.random() < 0.6}
    outputs = {
        name: _ports(random, program, name, grid, sides) for name in program.outputs if random.random() < 0.8
    }
    for key, ports in (("iport_map", inputs), ("oport_map", outputs)):
        if ports:
            lines.append(f"{key}: {{ {_NEXT.join(ports.values())} }}")
    narrow = [n for n in (*inputs, *outputs) if program.buffer(n).type.size == 2]
    sparse = [name for name in narrow if random.random() < 0.5]
    if sparse:
        lines.append(f"sparse: {', '.join(sparse)}")
    return "\n".join(lines) + "\n"


def _ports(random: Random, program: Program, tensor: str, grid: Grid, sides: list[Side]) -> str:
    """Let the elements pass one port, or spread over some of one side."""
    shape = program.buffer(tensor).extents
    side = random.choice(sides)
    last = grid.positions(side) - 1
    first = random.randint(0, last)
    names = ", ".join(f"i{k}" for k in range(len(shape)))
    position = str(first)
    if shape and random.random() < 0.5:
        position = random.choice(
            [
                f"i0 mod {last + 1}",
                f"{last} - (i0 mod {last + 1})",
                f"i0//{-(-shape[0] // (last + 1))}",
                f"{last} - i0//{-(-shape[0] // (last + 1))}",
                f"{first} - {first}*(i0 mod 2)",
            ]
        )
    port = {
        Side.NORTH: f"PE[{position}, -1]",
        Side.SOUTH: f"PE[{position}, {grid.height}]",
        Side.WEST: f"PE[-1, {position}]",
        Side.EAST: f"PE[{grid.width}, {position}]",
    }[side]
    lines = isl.Map(f"{{ {tensor}[{names}] -> {port} }}").intersect_domain(
        element_set(program.buffer(tensor))
    )
    return layers._with_index(layers._order(random, shape), lines, shape)
