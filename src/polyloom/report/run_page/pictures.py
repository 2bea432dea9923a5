"""The pictures of a run: kernels under the roofline, a schedule as tiles, what tuning found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.report.run_page.drawing import Drawing, LogAxis
from polyloom.report.run_page.kernels import Kernel, Timing
from polyloom.report.terminal import seconds_text

MOST_TILES = 64
"""In a row or a column of a picture; of more, the first ones are drawn."""

FLOAT_BYTES = 4


@dataclass(frozen=True)
class Roof:
    """What a device can do at most, by the numbers of the cost model: operations and bytes a second."""

    operations: float
    bytes: float


def roof_of(device: DeviceModel) -> Roof:
    """Return the roof for 32-bit floats, a multiply-add as two operations.

    Source: Williams, Waterman and Patterson, Roofline (2009); numbers: mdh/device/models.
    """
    costs = device.costs.kernels
    units = max(1, device.compute_units) * max(device.clock_mhz, costs.least_clock_mhz) * 1e6
    if isinstance(costs, CpuCosts):
        lanes = max(1, device.vector_bytes // FLOAT_BYTES)
        rate = device.memory_rate or units * costs.bytes_per_cycle[-1]
        return Roof(2 * units * lanes * costs.fma_per_cycle, rate)
    return Roof(2 * units * costs.lanes_of_unit, device.memory_rate or costs.memory_bytes_per_second)


def time_text(seconds: float) -> str:
    """Return a time as pages write it: ``12.3 ms``."""
    return seconds_text(seconds).replace(" us", " µs")


def roofline(kernels: Sequence[Kernel], roof: Roof) -> Markup | None:
    """Return kernels by operations a byte and a second under the roof; None where none can be placed."""
    placed = [(k, k.intensity, k.rate) for k in kernels]
    known = [(k, i, r) for k, i, r in placed if i is not None and r is not None]
    if not known:
        return None
    ridge = roof.operations / roof.bytes
    x = LogAxis(min(0.05, *(i for _, i, _ in known)), 10 * max(ridge, *(i for _, i, _ in known)), 64, 600)
    y = LogAxis(min(roof.operations / 1e4, *(r for _, _, r in known)) / 2, 2 * roof.operations, 290, 14)
    drawing = Drawing(620, 330, f"Roofline with {len(known)} kernels")
    for tick in x.ticks():
        drawing.line(x.at(tick), 14, x.at(tick), 290, "axis")
        drawing.text(x.at(tick), 306, f"{tick:g}", "middle")
    for tick in y.ticks():
        drawing.line(64, y.at(tick), 600, y.at(tick), "axis")
        drawing.text(58, y.at(tick) + 4, f"{tick / 1e9:g}", "end")
    drawing.text(330, 324, "operations for each byte of memory", "middle")
    drawing.text(68, 12, "GFLOP/s")
    low = max(x.low, y.low / roof.bytes)
    top = y.at(roof.operations)
    drawing.path([(x.at(low), y.at(low * roof.bytes)), (x.at(ridge), top), (600, top)], "roof")
    for kernel, intensity, rate in known:
        share = rate / min(roof.operations, intensity * roof.bytes)
        title = f"{kernel.name}: {rate / 1e9:.3g} GFLOP/s, {share:.0%} of what the roof allows"
        drawing.dot(x.at(intensity), y.at(rate), "kernel", title)
        drawing.text(x.at(intensity) + 8, y.at(rate) - 6, kernel.name)
    return drawing.svg()


def tiling(kernel: Kernel) -> Markup | None:
    """Return the points of a kernel cut into groups, and one group into cache and register tiles.

    Of more than two dimensions, the two that are cut into the most pieces. None without a schedule.
    """
    schedule = kernel.schedule
    if schedule is None or not kernel.extents:
        return None
    down, across = _shown(kernel, schedule)
    drawing = Drawing(640, 270, f"Schedule of {kernel.name} as tiles")
    whole = _Plane(kernel, down, across, 40, 34, 240, 210)
    group = tuple(g or n for g, n in zip(schedule.group, kernel.extents, strict=True))
    whole.draw(drawing, kernel.extents, "whole", "all points")
    whole.cut(drawing, kernel.extents, group, "group")
    inner = _Plane(kernel, down, across, 350, 34, 240, 210)
    inner.draw(drawing, group, "whole", "what one group takes")
    local = tuple(t or g for t, g in zip(schedule.local, group, strict=True))
    inner.cut(drawing, group, local, "local")
    inner.cut(drawing, local, _registers(schedule), "private", within=group)
    if schedule.vector in (down, across):
        inner.cut(drawing, _vector(schedule), _vector(schedule), "vector", within=group)
    return drawing.svg()


def _vector(schedule: Schedule) -> tuple[int, ...]:
    """Return the points of one vector."""
    return tuple(schedule.width if k == schedule.vector else 1 for k in range(len(schedule.private)))


def _registers(schedule: Schedule) -> tuple[int, ...]:
    """Return the points of a register tile; vectors have their width."""
    return tuple(
        size * (schedule.width if k == schedule.vector else 1) for k, size in enumerate(schedule.private)
    )


def _shown(kernel: Kernel, schedule: Schedule) -> tuple[int | None, int]:
    """Return the dimensions that go down and across, the last of both across; None where there is one."""
    group = [g or n for g, n in zip(schedule.group, kernel.extents, strict=True)]
    pieces = [n / g * r for n, g, r in zip(kernel.extents, group, _registers(schedule), strict=True)]
    order = sorted(range(len(pieces)), key=lambda k: (-pieces[k], k))
    chosen = sorted(order[:2])
    return (chosen[0], chosen[1]) if len(chosen) == 2 else (None, chosen[0])


@dataclass(frozen=True)
class _Plane:
    """Two dimensions of a kernel's points in a frame of pixels."""

    kernel: Kernel
    down: int | None
    across: int
    left: float
    top: float
    width: float
    height: float

    def _sizes(self, sizes: Sequence[int]) -> tuple[int, int]:
        return sizes[self.across], 1 if self.down is None else sizes[self.down]

    def draw(self, drawing: Drawing, sizes: Sequence[int], kind: str, words: str) -> None:
        """Draw the frame with its sizes."""
        drawing.box(self.left, self.top, self.width, self.height, kind)
        across, down = self._sizes(sizes)
        names = self.kernel.iterators
        drawing.text(self.left, self.top - 20, words)
        drawing.text(self.left, self.top - 5, f"{names[self.across]}: {across} →")
        if self.down is not None:
            drawing.text(self.left, self.top + self.height + 16, f"{names[self.down]}: {down} ↓")

    def cut(
        self,
        drawing: Drawing,
        sizes: Sequence[int],
        tile: Sequence[int],
        kind: str,
        within: Sequence[int] | None = None,
    ) -> None:
        """Cut points into tiles; the first one stands out. ``within``: what the frame stands for."""
        frame = self._sizes(within or sizes)
        total, size = self._sizes(sizes), self._sizes(tile)
        scale = (self.width / frame[0], self.height / frame[1])
        ends = [total[axis] * scale[axis] for axis in (0, 1)]
        for axis in (0, 1):
            for k in range(1, min(-(-total[axis] // size[axis]), MOST_TILES + 1)):
                at = k * size[axis] * scale[axis]
                if axis == 0:
                    drawing.line(self.left + at, self.top, self.left + at, self.top + ends[1], kind)
                else:
                    drawing.line(self.left, self.top + at, self.left + ends[0], self.top + at, kind)
        first = [min(size[axis], total[axis]) * scale[axis] for axis in (0, 1)]
        about = {
            "group": "a group of threads",
            "local": "a cache tile",
            "private": "a register tile",
            "vector": "a vector",
        }[kind]
        words = " × ".join(map(str, reversed(size) if self.down is not None else size[:1]))
        drawing.box(self.left, self.top, first[0], first[1], f"first {kind}", f"{about}: {words}")


def tuning_history(history: Sequence[Timing]) -> Markup | None:
    """Return the times of schedules in the order in which they were tried, and the best until then."""
    if len(history) < 2:
        return None
    seconds = [timing.seconds for timing in history]
    drawing = Drawing(620, 220, f"{len(history)} schedules that were timed")
    y = LogAxis(min(seconds) / 1.2, max(seconds) * 1.2, 190, 14)
    step = 540 / max(1, len(seconds) - 1)
    for tick in (min(seconds), max(seconds)):
        drawing.line(70, y.at(tick), 610, y.at(tick), "axis")
        drawing.text(64, y.at(tick) + 4, time_text(tick), "end")
    best: list[tuple[float, float]] = []
    for k, timing in enumerate(history):
        x, lowest = 70 + k * step, min(seconds[: k + 1])
        best += [(x, best[-1][1] if best else y.at(lowest)), (x, y.at(lowest))]
        kind = "kernel" if timing.confirmed else "tried"
        drawing.dot(x, y.at(timing.seconds), kind, time_text(timing.seconds), 3)
    drawing.path(best, "roof")
    drawing.text(340, 212, "schedules in the order in which they were timed", "middle")
    return drawing.svg()
