"""Tiles across time, wavefronts and blocks of a run as pictures, with the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.explain.waves import Tile, Waves, waves_of
from polyloom.mdh.lowering.pieces.affine import affine_pieces
from polyloom.mdh.lowering.sweeps.fusion import fused_sweeps
from polyloom.mdh.lowering.time_tiles.choose import with_time_tiles
from polyloom.mdh.native.device import NATIVE
from polyloom.mdh.running import RunResult
from polyloom.report.run_page.drawing import Drawing

COLOURS = 5
"""Classes of the style sheet, ``wave0`` and so on: waves one after another differ."""
LEAST_WIDE, LEAST_HIGH = 16, 14
"""Pixels of a tile in which its number has room."""
LEFT, TOP, WIDTH, HEIGHT = 60, 34, 540, 260


@dataclass(frozen=True)
class WavePicture:
    """A picture of a loop nest, by name."""

    name: str
    svg: Markup


def wave_pictures(result: RunResult, program: CompiledProgram) -> tuple[WavePicture, ...]:
    """Return pictures of the loops of a run on the processor around tiles or waves of several kernels."""
    if program.device.platform != NATIVE:
        return ()
    tiled = with_time_tiles(affine_pieces(specialise(program.program, result.parameters)), program.device)
    found = waves_of(fused_sweeps(tiled.program, program.device))
    return tuple(WavePicture(f"loop over {waves.loop}", drawn(waves)) for waves in found)


def drawn(waves: Waves) -> Markup:
    """Return the tiles of a nest as an SVG: rows downwards, points to the right."""
    cut = f" where {waves.at}" if waves.at else ""
    frame = _Frame.around(waves)
    drawing = Drawing(LEFT + WIDTH + 20, TOP + HEIGHT + 34, f"Tiles of the loop over {waves.loop}{cut}")
    drawing.box(LEFT, TOP, WIDTH, HEIGHT, "whole")
    for tile in waves.tiles:
        _draw(drawing, frame, tile)
    drawing.text(LEFT, TOP - 18, f"{waves.across} →{cut}")
    for x in (frame.left, frame.right - 1):
        drawing.text(frame.x(x + 0.5), TOP - 4, str(x), "middle")
    for y in (frame.top, frame.bottom - 1):
        drawing.text(LEFT - 6, frame.y(y + 0.5) + 4, str(y), "end")
    drawing.text(LEFT, TOP + HEIGHT + 20, f"{waves.down} ↓")
    return drawing.svg()


@dataclass(frozen=True)
class _Frame:
    """The points that are drawn, ends excluded."""

    left: int
    right: int
    top: int
    bottom: int

    @staticmethod
    def around(waves: Waves) -> _Frame:
        rows = [row for tile in waves.tiles for row in tile.rows]
        return _Frame(
            left=min(first for _, first, _ in rows),
            right=max(last for _, _, last in rows) + 1,
            top=min(row for row, _, _ in rows),
            bottom=max(row for row, _, _ in rows) + 1,
        )

    def x(self, point: float) -> float:
        return LEFT + WIDTH * (point - self.left) / (self.right - self.left)

    def y(self, row: float) -> float:
        return TOP + HEIGHT * (row - self.top) / (self.bottom - self.top)


def _draw(drawing: Drawing, frame: _Frame, tile: Tile) -> None:
    kind = f"wave wave{tile.wave % COLOURS}"
    title = f"wave {tile.wave}: {', '.join(tile.nodes)}"
    if tile.full:
        drawing.polygon(list(_outline(frame, tile)), kind, title)
    else:
        for row, *ends in tile.rows:
            for x in dict.fromkeys(ends):
                left, top = frame.x(x), frame.y(row)
                drawing.box(left, top, frame.x(x + 1) - left, frame.y(row + 1) - top, kind, title)
    middle = tile.rows[len(tile.rows) // 2] if tile.full else tile.rows[0]
    row, first, last = middle if tile.full else (*middle[:2], middle[1])
    high = tile.rows[-1][0] + 1 - tile.rows[0][0] if tile.full else 1
    if frame.x(last + 1) - frame.x(first) < LEAST_WIDE or frame.y(high) - frame.y(0) < LEAST_HIGH:
        return
    drawing.text((frame.x(first) + frame.x(last + 1)) / 2, frame.y(row + 0.5) + 4, str(tile.wave), "middle")


def _outline(frame: _Frame, tile: Tile) -> Iterator[tuple[float, float]]:
    """Yield the corners of a tile: down its right side, up its left one; straight between rows left out."""
    right = [corner for row, _, last, end in _ends(tile) for corner in ((last + 1, row), (last + 1, end))]
    left = [corner for row, first, _, end in _ends(tile) for corner in ((first, row), (first, end))]
    yield from ((frame.x(x), frame.y(y)) for x, y in dict.fromkeys((*right, *reversed(left))))


def _ends(tile: Tile) -> Iterator[tuple[int, int, int, int]]:
    """Yield the rows, each with where it ends: at the next one, or at once where that is left out."""
    following = [row for row, _, _ in tile.rows[1:]]
    for (row, first, last), after in zip(tile.rows, [*following, tile.rows[-1][0] + 1], strict=True):
        yield row, first, last, after if after == row + 1 else row
