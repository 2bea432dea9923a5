"""md_homs of ``++`` and of one point-wise operator as OpenCL: work-groups, cache tiles, register tiles.

A kernel reads like this (two dimensions kept, one reduced):

    work-group:       i_first .. i_end, j_first .. j_end, k_first .. k_end
    cache tiles:      loops over i_tile, j_tile, k_tile; copies into local memory
    register tiles:   loops over i, j; totals in variables
    reduction:        loop over k, unrolled; each value loaded once
    results:          combined across vectors and work-items, finished, stored

Register tiles that stick out: with known extents the rest has a shape of its own; else positions are clamped
to the last point and the store is left out. Groups with several work-items, which meet at barriers, have one
shape only. Source: md_poly, Sec. 4. Not in the papers: vectors, shapes of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.host import View
from polyloom.mdh.kernel.arguments import Signature
from polyloom.mdh.kernel.lines import INDENT, Lines, Namer
from polyloom.mdh.kernel.loads import Points
from polyloom.mdh.kernel.local_memory import declaration, located, write_copy
from polyloom.mdh.kernel.register_tile import RegisterTile, Totals
from polyloom.mdh.kernel.state import Axis, Spot, State, minimum, plus
from polyloom.mdh.kernel.stores import STREAM
from polyloom.mdh.print.helpers import helper_functions
from polyloom.mdh.schedule.addresses import ZERO
from polyloom.mdh.schedule.copy_plan import CopyPlan, copy_plan
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number

BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"
BARRIER_OF_ALL_MEMORY = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"


@dataclass(frozen=True)
class Results:
    """Where results go: ``views``, finished or not; ``parts``: per split dimension, the part's variable.

    ``waiting``: where totals wait between cache tiles, a view per output.
    """

    views: tuple[View, ...]
    finishing: bool = True
    parts: Mapping[int, str] | None = None
    waiting: tuple[View, ...] = ()


def tile_kernel(signature: Signature, schedule: Schedule, name: str, results: Results) -> str:
    """Return the kernel called ``name``, with the helper functions that it calls."""
    writer = _Tiles(signature, schedule, results)
    body = writer.body()
    streams = "STREAM(" in body
    if streams:
        body = _either(signature, schedule, results, body)
    text = f"{signature.declaration(name, writer.facts.total_items)}{{\n{body}}}\n"
    return helper_functions(text) + (STREAM + "\n" if streams else "") + text


def _either(signature: Signature, schedule: Schedule, results: Results, streaming: str) -> str:
    """Return both forms of a body: stores that bypass the caches need results that begin at a line."""
    plain = _Tiles(signature, replace(schedule, streaming=False), results).body()
    buffers = dict.fromkeys(view.buffer for view in results.views)
    line = max(signature.buffers[b].type.size for b in buffers) * schedule.width
    aligned = " && ".join(f"(size_t){signature.names[b]} % {line} == 0" for b in buffers)
    inner = "".join(f"{INDENT}{text}" for text in streaming.splitlines(keepends=True))
    outer = "".join(f"{INDENT}{text}" for text in plain.splitlines(keepends=True))
    return f"{INDENT}if ({aligned}) {{\n{inner}{INDENT}}}\n{INDENT}else {{\n{outer}{INDENT}}}\n"


class _Tiles:
    """Writes the loops of one kernel."""

    def __init__(self, signature: Signature, schedule: Schedule, results: Results) -> None:
        hom = signature.hom
        self.facts = TileFacts(hom, schedule)
        self.schedule = schedule
        self.results = results
        namer = Namer({*signature.names, *signature.names.values(), *hom.iterators, *signature.defined})
        points = Points(signature=signature, namer=namer, copies={})
        zeros: list[IntExpression] = [ZERO] * len(hom.extents)
        self.state = State(
            signature=signature,
            facts=self.facts,
            lines=Lines(),
            namer=namer,
            points=points,
            low=zeros,
            high=list(hom.extents),
        )
        self.state.top = self.state.lines.slot()
        self.tile = RegisterTile(self.state, results.views, results.finishing, results.waiting)
        self.plans = self._plans()

    def _plans(self) -> dict[int, tuple[CopyPlan, str]]:
        """Return the copies, each with its array, and declare them."""
        state, found = self.state, {}
        for k, view in enumerate(state.hom.inputs):
            plan = copy_plan(self.facts, k, state.signature.buffers)
            if plan is not None and k not in state.points.risky:
                array = state.namer.fresh(f"{state.signature.names[view.buffer]}_copy")
                state.top.add(declaration(plan, array))
                found[k] = plan, array
        return found

    def body(self) -> str:
        """Return the lines of the kernel."""
        state = self.state
        self._work_group()
        self._work_items()
        state.group_ranges = {d: (state.low[d], state.high[d]) for d in range(len(state.low))}
        with state.points.scope(state.lines, frozenset(state.signature.numbers)):
            if self.facts.persistent:
                self._persistent()
            else:
                self._cache_tiles(self.facts.tiled_order, self._cache_tile)
        return state.lines.text()

    # Work-groups and work-items

    def _work_group(self) -> None:
        """Declare what the work-group covers."""
        split = [d for d in reversed(self.schedule.group_order) if self.schedule.group[d]]
        if not split:
            return
        state = self.state
        group = state.namer.fresh("group")
        mutable = "" if len(split) > 1 else "const "
        state.lines.add(f"{mutable}{state.integer} {group} = get_group_id(0);")
        for position, d in enumerate(split):
            self._group_range(d, group, last=position == len(split) - 1)

    def _group_range(self, d: int, group: str, last: bool) -> None:
        state, size = self.state, self.schedule.group[d]
        count = state.c(self.facts.groups(d))
        number = group if last else f"{group} % ({count})"
        parts = self.results.parts or {}
        if d in parts:
            state.lines.add(f"const {state.integer} {parts[d]} = {number};")
            number = parts[d]
        first = state.variable(d, "first")
        state.lines.add(f"const {state.integer} {first.name} = {number} * {size};")
        if not last:
            state.lines.add(f"{group} /= {count};")
        end = plus(first, size)
        if not self.facts.is_multiple(d, size):
            end = state.constant(state.variable(d, "end"), minimum(end, state.hom.extents[d]))
        state.low[d], state.high[d] = first, end

    def _work_items(self) -> None:
        """Declare the work-item's number along each dimension."""
        along = [d for d in reversed(self.schedule.item_order) if self.schedule.items[d] > 1]
        if not along:
            return
        state, before = self.state, 1
        state.item_number = state.namer.fresh("item")
        state.lines.add(f"const int {state.item_number} = get_local_id(0);")
        for position, d in enumerate(along):
            count = self.schedule.items[d]
            number = state.item_number if before == 1 else f"{state.item_number} / {before}"
            number += f" % {count}" if position < len(along) - 1 else ""
            variable = state.variable(d, "item")
            state.lines.add(f"const int {variable.name} = {number};")
            state.item[d], state.item_stride[d] = variable.name, before
            before *= count

    # Cache tiles

    def _cache_tiles(self, tiled: Sequence[int], inside: Callable[[], None]) -> None:
        """Open the loops over cache tiles of some dimensions."""
        if not tiled:
            inside()
            return
        d, state = tiled[0], self.state
        size, low, high = self.schedule.local[d], state.low[d], state.high[d]
        start = state.variable(d, "tile")
        head = f"for ({state.integer} {start.name} = {state.c(low)}; {start.name} < {state.c(high)}; "
        with state.lines.block(f"{head}{start.name} += {size})"):
            end = plus(start, size)
            covered = self.facts.covered(d)
            if not (self.facts.is_multiple(d, size) and covered is not None and covered % size == 0):
                end = state.constant(state.variable(d, "stop"), minimum(end, high))
            state.low[d], state.high[d] = start, end
            self._cache_tiles(tiled[1:], inside)
            state.low[d], state.high[d] = low, high

    def _cache_tile(self) -> None:
        """Write what happens in a cache tile: copies, then the loops over register tiles."""
        self._copy()
        order = [d for d in self.schedule.private_order if d in self.facts.kept]
        self._register_tiles(order, main=True)
        self._after_copies()

    def _copy(self) -> None:
        state = self.state
        state.points.copies = {k: located(plan, array, state) for k, (plan, array) in self.plans.items()}
        for plan, array in self.plans.values():
            write_copy(state, plan, array)
        if self.plans and self.facts.total_items > 1:
            state.lines.add(BARRIER_OF_ALL_MEMORY if self._copies_what_is_written() else BARRIER)

    def _copies_what_is_written(self) -> bool:
        """Return whether a work-item may store where another one has read for a copy."""
        hom = self.state.hom
        return any(hom.inputs[k].buffer in self.state.points.written for k in self.plans)

    def _after_copies(self) -> None:
        if self.plans and self.facts.total_items > 1:
            self.state.lines.add(BARRIER)

    def _persistent(self) -> None:
        """Write cache tiles of the reduction inside one register tile per work-item."""
        reduced = [d for d in self.facts.tiled_order if d in self.facts.reduced]
        kept = [d for d in self.facts.tiled_order if d in self.facts.kept]

        def tile() -> None:
            for d in self.facts.kept:
                self._uniform_axis(d, self.state.low[d])
            self._persistent_tile(reduced)

        self._cache_tiles(kept, tile)

    def _persistent_tile(self, reduced: list[int]) -> None:
        state, combining = self.state, self.state.combining
        assert combining is not None
        with state.points.scope(state.lines, state.known_names()):
            totals = self.tile.declare(combining)

            def step() -> None:
                self._copy()
                self._panels(aligned=True)
                with state.points.scope(state.lines, state.known_names()):
                    self.tile.reduce(combining, totals)
                self._after_copies()

            self._cache_tiles(reduced, step)
            self._results(totals)

    def _results(self, totals: Totals) -> None:
        combining = self.state.combining
        assert combining is not None
        with self.state.points.scope(self.state.lines):
            self.tile.results(combining, totals)

    # Register tiles

    def _register_tiles(self, dimensions: list[int], main: bool) -> None:
        """Open the loops over register tiles; the rest of a dimension comes after its whole tiles.

        ``main``: every dimension so far has a whole tile.
        """
        if not dimensions:
            self._panels(aligned=main)
            self._register_tile()
            return
        d, state, facts = dimensions[0], self.state, self.facts

        def inside(still: bool = main) -> None:
            self._register_tiles(dimensions[1:], still)

        if facts.uniform:
            self._uniform_loop(d, inside)
        elif self._is_one_tile(d):
            state.axes[d] = Axis(state.low[d], self._exact(d, facts.extent(d) or 0))
            inside()
        elif facts.divides(d, facts.tile(d)):
            self._loop(d, inside)
        else:
            with state.lines.block():
                self._loops_with_rest(d, inside, main)

    def _panels(self, aligned: bool) -> None:
        points = self.state.points
        points.aligned = aligned
        points.panel_starts = {d: a.base for d, a in self.state.axes.items() if self._is_compact(d, a)}

    def _is_compact(self, d: int, axis: Axis) -> bool:
        """Whether a register tile's points are neighbours."""
        strided = self.schedule.strided[d] and self.schedule.items[d] > 1
        return not strided and all(isinstance(spot.offset, Number) for spot in axis.spots)

    def _is_one_tile(self, d: int) -> bool:
        """Whether a register tile holds a whole dimension."""
        n = self.facts.extent(d)
        undivided = not self.schedule.group[d] and not self.facts.is_tiled(d)
        return n is not None and n <= self.facts.tile(d) and undivided

    def _exact(self, d: int, points: int) -> tuple[Spot, ...]:
        """Return spots that cover so many points: vectors, the rest in narrower and narrower ones."""
        spots, at, width = [], 0, self.facts.width(d)
        while at < points:
            while width > points - at:
                width //= 2
            spots.append(Spot(Number(at), at, width))
            at += width
        return tuple(spots)

    def _loop(self, d: int, inside: Callable[[], None]) -> None:
        """Write the loop over the register tiles of a dimension that has whole ones only."""
        state, size = self.state, self.facts.tile(d)
        i, low, high = state.c(state.position(d)), state.c(state.low[d]), state.c(state.high[d])
        state.axes[d] = Axis(state.position(d), self._exact(d, size))
        with state.lines.block(f"for ({state.integer} {i} = {low}; {i} < {high}; {i} += {size})"):
            inside()

    def _loops_with_rest(self, d: int, inside: Callable[[bool], None], main: bool) -> None:
        """Write the loop over whole register tiles, then what is left."""
        state, size, n = self.state, self.facts.tile(d), self.facts.extent(d)
        i = state.c(state.position(d))
        state.lines.add(f"{state.integer} {i} = {state.c(state.low[d])};")
        if n is not None:
            if n >= size:
                self._continue(d, size, self._exact(d, size), lambda: inside(main))
            with state.lines.block(f"if ({i} < {state.c(state.high[d])})"):
                state.axes[d] = Axis(state.position(d), self._exact(d, n % size))
                inside(main)
            return
        if main:
            self._continue(d, size, self._exact(d, size), lambda: inside(True))
        if self.facts.width(d) > 1:
            whole = main and size == self.facts.width(d)
            for width in (1,) if whole else (self.facts.width(d), 1):
                self._continue(d, width, (Spot(ZERO, 0, width),), lambda: inside(False))
        else:
            with state.lines.block(f"for (; {i} < {state.c(state.high[d])}; {i} += {size})"):
                self._clamp(d, state.position(d), size, 1, first=1)
                inside(False)

    def _continue(self, d: int, step: int, spots: tuple[Spot, ...], inside: Callable[[], None]) -> None:
        """Go on with tiles of ``step`` points as far as they fit."""
        state = self.state
        i, high = state.c(state.position(d)), state.c(state.high[d])
        state.axes[d] = Axis(state.position(d), spots)
        fits = f"{i} < {high}" if step == 1 else f"{i} + {step} <= {high}"
        with state.lines.block(f"for (; {fits}; {i} += {step})"):
            inside()

    def _clamp(self, d: int, base: IntExpression, count: int, distance: int, first: int) -> None:
        """Take positions from the last point where they stick out; ``first``: the first that may."""
        state = self.state
        spots = [Spot(Number(k * distance), k * distance) for k in range(first)]
        last = plus(plus(state.high[d], base, -1), -1)
        for k in range(first, count):
            offset = state.constant(state.variable(d, str(k)), minimum(Number(k * distance), last))
            there = state.c(plus(base, k * distance))
            spots.append(Spot(offset, k * distance, 1, f"{there} < {state.c(state.high[d])}"))
        state.axes[d] = Axis(base, tuple(spots))

    def _uniform_loop(self, d: int, inside: Callable[[], None]) -> None:
        """Write the loop over a dimension's register tiles that all work-items go through together."""
        step, length, state = self.facts.step(d), self.facts.length(d), self.state
        low, high = state.low[d], state.c(state.high[d])
        if length is not None and length <= step:
            self._uniform_axis(d, low)
            inside()
            return
        start = state.variable(d, "step")
        head = f"for ({state.integer} {start.name} = {state.c(low)}; {start.name} < {high}; "
        with state.lines.block(f"{head}{start.name} += {step})"):
            self._uniform_axis(d, start)
            inside()

    def _uniform_axis(self, d: int, start: IntExpression) -> None:
        """Declare the work-item's position along a dimension."""
        state, facts = self.state, self.facts
        private, items, item = self.schedule.private[d], self.schedule.items[d], state.item.get(d)
        strided = self.schedule.strided[d] and items > 1
        distance, factor = (items, 1) if strided else (facts.width(d), facts.tile(d))
        base = start
        if item is not None:
            base = state.constant(state.position(d), plus(start, Name(item), factor))
        if facts.divides(d, facts.step(d)):
            spots = (Spot(Number(k * distance), k * distance, facts.width(d)) for k in range(private))
            state.axes[d] = Axis(base, tuple(spots))
        else:
            self._clamp(d, base, private, distance, first=0)

    def _register_tile(self) -> None:
        """Write one register tile: totals, reduction, results."""
        state, combining = self.state, self.state.combining
        if combining is None:
            with state.points.scope(state.lines):
                self.tile.write_map()
            return
        names = state.known_names() if self.tile.has_loops() else None
        with state.points.scope(state.lines, names):
            totals = self.tile.declare(combining)
            self.tile.reduce(combining, totals)
            self._results(totals)
