"""Which host loops run in tiles across time, and of the others why they do not: a sentence each."""

from __future__ import annotations

from polyloom.ir.host import HostNode, HostProgram
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.time_tiles.choose import tiles_of, time_loops
from polyloom.mdh.lowering.time_tiles.sizes import LARGEST_SHARE, Shape, TimeCost
from polyloom.mdh.lowering.time_tiles.sweeps import TimeLoop
from polyloom.mdh.lowering.time_tiles.tiled import TilesOf
from polyloom.polyhedra.loops.tree import Branch, Loop


def time_tiles_explained(program: HostProgram, device: DeviceModel) -> tuple[str, ...]:
    """Return what became of each outermost host loop of a program whose sizes are known."""
    loops = [loop for node in program.body for loop in _outermost(node)]
    return tuple(
        dict.fromkeys(f"loop over {loop.iterator}: {_what(loop, program, device)}" for loop in loops)
    )


def _outermost(node: HostNode) -> list[Loop[HostNode]]:
    match node:
        case Loop():
            return [node]
        case Branch(body=body, otherwise=otherwise):
            return [loop for inner in (*body, *otherwise) for loop in _outermost(inner)]
        case _:
            return []


def _what(loop: Loop[HostNode], program: HostProgram, device: DeviceModel) -> str:
    forms = list(time_loops(loop))
    if not forms:
        return "not in tiles across time, for its steps are more than md_homs of sizes that stay the same"
    found = [(steps, *_asked(steps, program, device)) for steps in forms]
    for steps, of, _ in found:
        if of is not None:
            return _tiles(of) + (", which are two rows of a ring each" if steps.folded else "")
    steps, _, asked = found[-1]
    return f"not in tiles across time, for {_why_not(asked, steps)}"


def _asked(
    steps: TimeLoop, program: HostProgram, device: DeviceModel
) -> tuple[TilesOf | None, list[TimeCost]]:
    """Return the tiles of a loop, and what was asked for their cost."""
    asked: list[TimeCost] = []

    def best(cost: TimeCost) -> Shape | None:
        asked.append(cost)
        return cost.best()

    return tiles_of(steps, program, device, best), asked


def _why_not(asked: list[TimeCost], steps: TimeLoop) -> str:
    if not asked:
        return "it was not found out in time how they may lie"
    if not any(asked[0].sides_of(axis) is not None for axis in range(len(steps.axes))):
        return "along every axis rows of one step need each other, or rows that are not at a fixed distance"
    return f"they would take more than {LARGEST_SHARE:.0%} of the time that the cost model expects without"


def _tiles(of: TilesOf) -> str:
    widths = " x ".join(str(tiles.width) for tiles in of.tiles)
    phases = 1
    for tiles in of.tiles:
        phases *= len(tiles.phases)
    rises = ", ".join(f"{tiles.lower.rise} and {tiles.upper.rise}" for tiles in of.tiles)
    return (
        f"blocks of {of.tiles[0].height} steps in trapezoids of {widths} rows, whose sides move {rises} rows "
        f"a step; {phases} waves for each block"
    )
