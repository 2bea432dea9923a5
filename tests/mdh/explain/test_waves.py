"""Tiles and waves as they are drawn: each held against the points that the host loops visit, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from polyloom.ir.host import HostNode, HostProgram, Index, MdHom
from polyloom.ir.integers import integer
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.explain.waves import Waves, waves_of
from polyloom.mdh.lowering.time_tiles.choose import with_time_tiles
from polyloom.mdh.lowering.time_tiles.sizes import Shape, TimeCost
from polyloom.mdh.native.device import choose
from polyloom.polyhedra.loops.tree import Branch, Loop
from polyloom.report.run_page.waves import drawn
from polyloom.scop.transform import host_program
from polyloom.sources import Reading, load_scops

LOOPS = Path(__file__).parents[3] / "benchmarks/loops"
STEPS, N = 11, 40


def program(name: str, **sizes: int) -> HostProgram:
    (scop,) = load_scops(LOOPS / f"{name}.c", Reading())
    return specialise(host_program(scop).program, sizes)


def tiled(axes: Sequence[int]) -> HostProgram:
    """Return jacobi-2d in tiles of 12 rows and 3 steps along some axes."""

    def best(cost: TimeCost) -> Shape:
        assert all(cost.sides_of(axis) is not None for axis in axes)
        return Shape(dict.fromkeys(axes, 12), 3, 0.0)

    return with_time_tiles(program("jacobi-2d", steps=STEPS, n=N), choose("native", threads=2), best).program


Path_ = tuple[int, ...]


def visits(
    node: HostNode, path: Path_, values: dict[str, int]
) -> Iterator[tuple[Path_, dict[str, int], list[int]]]:
    """Yield each point: places and values of the loops around its tile, all values, and its element."""
    match node:
        case Loop(iterator=name, parallel=parallel):
            value, inside = integer(node.start, values), "parallel" in values
            while integer(node.condition, here := {**values, name: value}):
                here |= {"parallel": 1} if parallel else {}
                for place, each in enumerate(node.body):
                    inner = path if inside and not parallel else (*path, value)
                    yield from visits(each, inner if parallel or inside else (*inner, place), here)
                value += integer(node.step, values)
        case Branch(condition=condition, body=body):
            for each in body if integer(condition, values) else ():
                yield from visits(each, path, values)
        case MdHom():
            for point in product(*(range(integer(extent, values)) for extent in node.extents)):
                yield path, values, [_at(index, point, values) for index in node.outputs[0].affine]


def _at(index: Index, point: Sequence[int], values: dict[str, int]) -> int:
    moved = sum(c * x for c, x in zip(index.coefficients, point, strict=True))
    return moved + integer(index.offset, values)


def expected(of: HostProgram, column: int | None) -> dict[Path_, dict[int, set[int]]]:
    """Return the rows of each tile: by steps the points of the first subscript, where the second is so."""
    found: dict[Path_, dict[int, set[int]]] = {}
    for node in of.body:
        for path, values, element in visits(node, (), {}):
            if column is None or element[1] == column:
                found.setdefault(path, {}).setdefault(values["t"], set()).add(element[0])
    return found


def drawn_rows(waves: Waves) -> dict[int, list[tuple[tuple[int, int, int], ...]]]:
    found: dict[int, list[tuple[tuple[int, int, int], ...]]] = {}
    for tile in waves.tiles:
        found.setdefault(tile.wave, []).append(tile.rows)
    return found


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("axes", [(1,), (0, 1)], ids=["rows", "rows and columns"])
def test_tiles_across_time_are_where_they_run(axes: tuple[int, ...]) -> None:
    of = tiled(axes)
    (waves,) = waves_of(of)
    assert waves.down == "t" and waves.across == "B[x][·]"
    column = int(waves.at.rpartition(" ")[2]) if waves.at else None
    assert (column is None) == (len(axes) == 1)
    every = expected(of, column).values()
    shapes = [tuple((t, min(xs), max(xs)) for t, xs in sorted(rows.items())) for rows in every]
    assert all(tile.full for tile in waves.tiles) and len(waves.tiles) > 8
    assert [tile.rows for tile in waves.tiles if tile.rows not in shapes] == []
    numbers = {tile.wave for tile in waves.tiles}
    assert numbers == set(range(1, len(numbers) + 1)) and len(numbers) >= 6
    for rows in drawn_rows(waves).values():
        taken = [(t, x) for tile in rows for t, first, last in tile for x in range(first, last + 1)]
        assert len(taken) == len(set(taken))


def test_waves_follow_each_other_in_time() -> None:
    (waves,) = waves_of(tiled((1,)))
    first_steps = {w: min(t for rows in found for t, _, _ in rows) for w, found in drawn_rows(waves).items()}
    assert [first_steps[w] for w in sorted(first_steps)] == [0, 0, 3, 3, 6, 6]


def test_a_wavefront_has_a_wave_for_each_of_its_steps() -> None:
    (waves,) = waves_of(program("seidel-2d", steps=10, n=30))
    assert waves.loop == "w" and (waves.down, waves.across) == ("A[x][·]", "A[·][x]")
    at = {tile.wave: tile for tile in waves.tiles}
    assert at[3].rows == ((1, 3, 3), (2, 1, 1)) and at[3].full
    assert at[5].rows[0] == (1, 1, 5) and not at[5].full, "t = 1, j = 1 and t = 0, j = 5"


def test_what_is_no_nest_has_no_picture() -> None:
    assert waves_of(program("gemm", n=20, m=20, k=20)) == ()


def test_the_drawing_has_a_shape_and_a_number_for_each_tile() -> None:
    (waves,) = waves_of(tiled((1,)))
    root = ET.fromstring(str(drawn(waves)))
    shapes = [e for e in root if e.tag.endswith("polygon")]
    assert len(shapes) == len(waves.tiles)
    titles = {"".join(e.itertext()) for e in shapes}
    assert "wave 1: S1_1, S2_1" in titles
    (frame,) = [e for e in root if e.attrib.get("class") == "whole"]
    left, width = float(frame.attrib["x"]), float(frame.attrib["width"])
    for shape in shapes:
        xs = [float(corner.split(",")[0]) for corner in shape.attrib["points"].split()]
        assert left - 0.1 <= min(xs) < max(xs) <= left + width + 0.1
