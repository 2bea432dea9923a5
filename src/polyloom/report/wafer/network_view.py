"""A network on one wafer as text: the floor plan, a row for each layer and stream, what limits it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from polyloom.report.terminal import WIDE, console, print_pairs
from polyloom.wafer.network.result import NetworkResult, Part

COLUMNS, ROWS = 96, 36
"""Characters that a floor plan takes at most."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
EXCHANGE, STREAM, EMPTY = ":", "-", "."


def print_network(result: NetworkResult) -> None:
    """Print the floor plan and tables."""
    out = console(piped=WIDE)
    for line in floor_plan_lines(result):
        out.print(line)
    out.print()
    out.print(_layers(result))
    out.print()
    out.print(_streams(result))
    out.print()
    print_pairs(_summary(result))


def floor_plan_lines(result: NetworkResult) -> Iterator[str]:
    """Yield the mesh as lines of characters: a letter for each layer, one character for some PEs."""
    plan = result.program.plan
    across = -(-plan.width // COLUMNS)
    down = max(-(-plan.height // ROWS), 2 * across if across > 1 else 1)
    canvas = [[EMPTY] * -(-plan.width // across) for _ in range(-(-plan.height // down))]
    for net in plan.nets:
        for way in net.ways:
            _fill(canvas, way.x, way.y, STREAM, across, down)
    for part in result.exchanges:
        _fill(canvas, part.x, part.y, EXCHANGE, across, down)
    for number, part in enumerate(result.stages):
        _fill(canvas, part.x, part.y, _letter(number), across, down)
    yield from ("".join(row) for row in canvas)
    scale = "a PE" if across == down == 1 else f"{across} x {down} PEs"
    yield f"each character is {scale};  {EXCHANGE} exchanges  {STREAM} streams  {EMPTY} unused"


def _fill(
    canvas: list[list[str]], x: tuple[int, int], y: tuple[int, int], sign: str, across: int, down: int
) -> None:
    for row in range(y[0] // down, y[1] // down + 1):
        for column in range(x[0] // across, x[1] // across + 1):
            canvas[row][column] = sign


def _letter(number: int) -> str:
    return LETTERS[number] if number < len(LETTERS) else "#"


def _layers(result: NetworkResult) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("", "layer"):
        table.add_column(name)
    for name in ("PEs", "at", "bytes/PE", "estimated", "work/sample", "of interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, part in enumerate(result.stages):
        table.add_row(_letter(number), *_cells(part, result.interval))
    return table


def _cells(part: Part, interval: float) -> Iterator[str]:
    width, height = part.x[1] - part.x[0] + 1, part.y[1] - part.y[0] + 1
    yield part.name
    yield f"{width} x {height}"
    yield f"{part.x[0]}, {part.y[0]}"
    yield f"{part.bytes:,}"
    yield f"{part.estimate:,.0f}"
    yield f"{part.work:,.0f}"
    yield f"{part.work / interval:.0%}"


def _streams(result: NetworkResult) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("stream", "from", "to"):
        table.add_column(name)
    for name in ("elements", "routers", "color", "work/sample"):
        table.add_column(name, justify="right", no_wrap=True)
    lines = {carried.net.stream.tensor: carried.exchanges for carried in result.program.carried}
    works = {part.name: part.work for part in result.exchanges}
    for stream in result.streams:
        busiest = max(works[exchange.line.name] for exchange in lines[stream.tensor])
        figures = (f"{stream.elements:,}", f"{stream.hops:,}", str(stream.color), f"{busiest:,.0f}")
        table.add_row(stream.tensor, stream.source, ", ".join(stream.sinks), *figures)
    return table


def _summary(result: NetworkResult) -> Iterator[tuple[str, str]]:
    s, plan = result.simulation, result.program.plan
    machine = result.program.machine
    longest, by = result.bottleneck
    first = int(s.finished[0])
    yield (
        "mesh",
        f"{plan.width} x {plan.height} of {machine.grid[0]} x {machine.grid[1]} PEs of {machine.name}",
    )
    yield "PEs", f"{result.pes:,} with a program, at work {result.utilisation:.0%} of the time"
    yield "colors", f"{result.program.colors.count} of {machine.colors}"
    if result.before:
        yield "host", f"computes {', '.join(f'`{n}`' for n in result.before)} before: no sample reaches it"
    yield "cycles", f"{s.cycles:,} for {result.samples} samples; the first one was complete after {first:,}"
    if result.samples > 1:
        filled = "" if result.interval >= longest else ", which were few: more would wait for the bottleneck"
        yield "interval", f"{result.interval:,.0f} cycles between two samples{filled}"
        yield "throughput", f"{result.samples_per_second:,.0f} samples a second at {machine.clock_ghz} GHz"
    waits = "" if result.waiting is None else f"; {result.waiting}"
    yield "bottleneck", f"{by}: {longest:,.0f} cycles a sample{waits}"
    if result.check is not None:
        yield "check", _verdict(result)


def _verdict(result: NetworkResult) -> str:
    assert result.check is not None
    found = "passed" if result.check.passed else "FAILED"
    reals = ", also with made-up reals" if result.check.reals is not None else ""
    return f"{found}: each sample beside the evaluator{reals}"
