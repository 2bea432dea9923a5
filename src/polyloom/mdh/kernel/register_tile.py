"""One register tile: totals, the loops of the reduction, results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

from polyloom.ir.host import View
from polyloom.mdh.kernel.accumulators import Combining, Total
from polyloom.mdh.kernel.loads import Place, Points
from polyloom.mdh.kernel.state import Axis, Spot, State, conditions, plus
from polyloom.mdh.kernel.stores import load_vector, store_results, store_vector
from polyloom.mdh.print.values import literal, value_type
from polyloom.mdh.schedule.addresses import ZERO
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number

Spots = tuple[int, ...]
"""A spot per kept dimension."""


@dataclass(frozen=True)
class Totals:
    """``vectors``: a total per spot; ``rest``: of the points that fill no vector of a reduced dimension."""

    vectors: dict[Spots, Total]
    rest: dict[Spots, Total]


@dataclass(frozen=True)
class RegisterTile:
    """Writes the register tile that ``state.axes`` describes.

    ``views``: where results go; ``finishing``: whether they are finished, or partial results of a group;
    ``waiting``: where totals wait between cache tiles, a view per output.
    """

    state: State
    views: tuple[View, ...]
    finishing: bool
    waiting: tuple[View, ...] = ()

    @property
    def facts(self) -> TileFacts:
        """The schedule's meaning."""
        return self.state.facts

    @property
    def points(self) -> Points:
        """The writer of loads and scalar functions."""
        return self.state.points

    def spots(self) -> list[Spots]:
        """Return the spots of the tile in unrolled order."""
        kept = self.facts.kept
        order = [d for d in self.facts.schedule.unrolled_order if d in kept]
        ranges = [range(len(self.state.axes[d].spots)) for d in order]
        found = (dict(zip(order, numbers, strict=True)) for numbers in product(*ranges))
        return [tuple(at[d] for d in kept) for at in found]

    def width(self, spots: Spots) -> int:
        """Return how many results a spot has."""
        vector = self.facts.schedule.vector
        if vector is None or vector not in self.facts.kept:
            return 1
        return self._spot(vector, spots).width

    def _spot(self, d: int, spots: Spots) -> Spot:
        return self.state.axes[d].spots[spots[self.facts.kept.index(d)]]

    def place(self, spots: Spots, reduced: dict[int, IntExpression], width: int) -> Place:
        """Return the place of a spot and a point of the reduction."""
        positions: list[IntExpression] = [ZERO] * len(self.state.hom.extents)
        for d in self.facts.kept:
            positions[d] = plus(self.state.axes[d].base, self._spot(d, spots).offset)
        for d, position in reduced.items():
            positions[d] = position
        return Place(tuple(positions), width, self.facts.schedule.vector if width > 1 else None)

    def kept_place(self, spots: Spots) -> Place:
        """Return the place of a spot's results."""
        return self.place(spots, {}, self.width(spots))

    def inside(self, spots: Spots) -> str | None:
        """Return the condition under which a spot exists."""
        return conditions([self._spot(d, spots).inside for d in self.facts.kept])

    # A map: no reduction

    def write_map(self) -> None:
        """Write a tile without reduction: all loads, then all stores."""
        values = [(spots, *self._terms(spots)) for spots in self.spots()]
        for spots, names, condition in values:
            place = self.kept_place(spots)
            around, stored = (condition, None) if self._reads_what_is_written() else (None, condition)
            with self._where(around):
                finished = self._finished(place, names)
                store_results(self.state, self.views, place, finished, stored)

    def _reads_what_is_written(self) -> bool:
        """Return whether a read of a place outside may meet the store of the work-item whose place it is."""
        hom = self.state.hom
        return self.facts.total_items > 1 and any(v.buffer in self.points.written for v in hom.inputs)

    def _terms(self, spots: Spots) -> tuple[tuple[str, ...], str | None]:
        """Return variables that hold the terms, and the condition under which they are stored."""
        place, hom = self.kept_place(spots), self.state.hom
        guard = conditions([self.inside(spots), self.state.condition(hom.guard, place)])
        names = tuple(
            self.state.namer.fresh(f"{self.state.signature.names[v.buffer]}_value") for v in hom.outputs
        )
        kinds = [value_type(t.type, place.width) for t in hom.terms]
        if guard is None or (hom.guard is None and not self._reads_what_is_written()):
            texts = [self.points.value(t, place) for t in hom.terms]
            declared = zip(kinds, names, texts, strict=True)
            self.state.lines.add(*(f"const {kind} {name} = {text};" for kind, name, text in declared))
            return names, guard
        zeros = [literal(0, t.type, place.width) for t in hom.terms]
        declared = zip(kinds, names, zeros, strict=True)
        self.state.lines.add(*(f"{kind} {name} = {zero};" for kind, name, zero in declared))
        with self.state.lines.block(f"if ({guard})"), self.points.scope(self.state.lines):
            texts = [self.points.value(t, place) for t in hom.terms]
            self.state.lines.add(*(f"{name} = {text};" for name, text in zip(names, texts, strict=True)))
        return names, guard

    # A reduction

    def declare(self, combining: Combining) -> Totals:
        """Declare the totals of all spots."""
        lines = self.state.lines
        vectors, rest = {}, {}
        for spots in self.spots():
            suffix = "".join(f"_{k}" for k in spots)
            width = self.facts.schedule.width if self.facts.vector_is_reduced else self.width(spots)
            vectors[spots] = combining.declare(lines, suffix, width)
            if self.facts.vector_is_reduced and self._has_rest():
                rest[spots] = combining.declare(lines, f"{suffix}_rest", 1)
        return Totals(vectors, rest)

    def _has_rest(self) -> bool:
        """Whether points of a reduced dimension may be left that fill no vector."""
        vector = self.facts.schedule.vector
        assert vector is not None
        return not self.facts.divides(vector, self.facts.schedule.width)

    def reduce(self, combining: Combining, totals: Totals) -> None:
        """Write the loops of the reduction over the cache tile at hand."""
        order = [d for d in self.facts.schedule.private_order if d in self.facts.reduced]
        self._loops(combining, totals.vectors, order, {}, rest=False)
        if totals.rest:
            self._loops(combining, totals.rest, order, {}, rest=True)

    def has_loops(self) -> bool:
        """Whether the reduction has loops: values that do not depend on them are loaded before."""
        return any(self._unrolled(d) is None for d in self.facts.reduced)

    def _unrolled(self, d: int) -> int | None:
        """Return the length of a reduced dimension that is unrolled whole."""
        n = self.facts.extent(d)
        whole = not self.facts.schedule.group[d] and not self.facts.is_tiled(d) and d not in self.state.item
        return n if n is not None and whole and n <= self.facts.tile(d) and self._fits(d, n) else None

    def _fits(self, d: int, n: int) -> bool:
        return n % self.facts.width(d) == 0

    def _loops(
        self,
        combining: Combining,
        totals: dict[Spots, Total],
        order: Sequence[int],
        axes: dict[int, Axis],
        rest: bool,
    ) -> None:
        if not order:
            self._step(combining, totals, axes, rest)
            return
        d = order[0]

        def inside(axis: Axis) -> None:
            self._loops(combining, totals, order[1:], {**axes, d: axis}, rest)

        if rest and d == self.facts.schedule.vector:
            self._rest_loop(d, inside)
        elif (n := self._unrolled(d)) is not None:
            width = self.facts.width(d)
            inside(Axis(self.state.low[d], tuple(Spot(Number(k), k, width) for k in range(0, n, width))))
        else:
            self._reduction_loop(d, inside)

    def _reduction_loop(self, d: int, inside: Callable[[Axis], None]) -> None:
        """Write a loop that takes ``private[d]`` steps at a time, and one for what is left."""
        state, width = self.state, self.facts.width(d)
        low, high, distance = self._share(d)
        unroll = self.facts.schedule.private[d]
        k, integer = state.c(state.position(d)), state.integer
        spots = tuple(Spot(Number(n * distance), n * distance, width) for n in range(unroll))
        whole = self.facts.divides(d, unroll * width) and distance == width
        reach = (unroll - 1) * distance + width
        if whole or reach == 1:
            step = unroll * distance
            with state.lines.block(f"for ({integer} {k} = {low}; {k} < {high}; {k} += {step})"):
                self._with_scope(lambda: inside(Axis(state.position(d), spots)))
            return
        with state.lines.block():
            state.lines.add(f"{integer} {k} = {low};")
            with state.lines.block(f"for (; {k} + {reach} <= {high}; {k} += {unroll * distance})"):
                self._with_scope(lambda: inside(Axis(state.position(d), spots)))
            if unroll > 1 and not self._rest_is_empty(d, unroll * width, distance):
                fits = f"{k} < {high}" if width == 1 else f"{k} + {width} <= {high}"
                with state.lines.block(f"for (; {fits}; {k} += {distance})"):
                    self._with_scope(lambda: inside(Axis(state.position(d), (Spot(ZERO, 0, width),))))

    def _rest_is_empty(self, d: int, step: int, distance: int) -> bool:
        n = self.facts.extent(d)
        width = self.facts.width(d)
        length = self.facts.length(d)
        if n is None or length is None or distance != width or length % step:
            return False
        return n % step < width

    def _with_scope(self, inside: Callable[[], None]) -> None:
        with self.points.scope(self.state.lines):
            inside()

    def _share(self, d: int) -> tuple[str, str, int]:
        """Return where a work-item's points of a reduced dimension begin and end, and their distance."""
        state, width = self.state, self.facts.width(d)
        low, high = state.low[d], state.high[d]
        if d not in state.item:
            return state.c(low), state.c(high), width
        item, items = state.item[d], self.facts.schedule.items[d]
        combiner = self.facts.combiner
        if combiner is None or combiner.commutative:
            return state.c(plus(low, Name(item), width)), state.c(high), items * width
        each = f"(({state.c(high)} - ({state.c(low)}) + {items - 1}) / {items})"
        begin = f"{state.c(low)} + {item} * {each}"
        return begin, f"lesser({begin} + {each}, {state.c(high)})", width

    def _rest_loop(self, d: int, inside: Callable[[Axis], None]) -> None:
        """Write the loop over the points behind the last whole vector."""
        state, width = self.state, self.facts.width(d)
        low, high, k = state.c(state.low[d]), state.c(state.high[d]), state.c(state.position(d))
        count = high if low == "0" else f"{high} - ({low})"
        whole = f"({count}) / {width} * {width}"
        start = whole if low == "0" else f"{low} + {whole}"
        with state.lines.block(f"for ({state.integer} {k} = {start}; {k} < {high}; {k}++)"):
            self._with_scope(lambda: inside(Axis(state.position(d), (Spot(ZERO, 0),))))

    def _step(
        self, combining: Combining, totals: dict[Spots, Total], axes: dict[int, Axis], rest: bool
    ) -> None:
        """Write the points of the register tile at one step of the reduction."""
        for spots, reduced in self._ordered(axes):
            width = self.width(spots)
            if self.facts.vector_is_reduced:
                width = 1 if rest else self.facts.schedule.width
            positions = {d: plus(axes[d].base, spot.offset) for d, spot in reduced.items()}
            place = self.place(spots, positions, width)
            guard = self.state.condition(self.state.hom.guard, place)
            if guard is None:
                combining.add_point(self.state.lines, totals[spots], place)
                continue
            with self.state.lines.block(f"if ({guard})"), self.points.scope(self.state.lines):
                combining.add_point(self.state.lines, totals[spots], place)

    def _ordered(self, axes: dict[int, Axis]) -> list[tuple[Spots, dict[int, Spot]]]:
        """Return spots and points of the reduction in unrolled order, or as an input's elements lie."""
        kept, every = self.facts.kept, {**self.state.axes, **axes}
        order = [d for d in self.facts.schedule.unrolled_order if d in every]
        found = []
        for numbers in product(*(range(len(every[d].spots)) for d in order)):
            at = dict(zip(order, numbers, strict=True))
            found.append((tuple(at[d] for d in kept), {d: axes[d].spots[at[d]] for d in axes}))
        follow = self.facts.schedule.follow
        access = None if follow is None else self.points.accesses[follow]
        if access is None:
            return found

        def key(each: tuple[Spots, dict[int, Spot]]) -> tuple[int, ...]:
            nominal = {d: self._spot(d, each[0]).nominal for d in kept}
            nominal |= {d: spot.nominal for d, spot in each[1].items()}
            return tuple(sum(step[d] * n for d, n in nominal.items()) for step in access.steps)

        return sorted(found, key=key)

    # Results

    def results(self, combining: Combining, totals: Totals) -> None:
        """Bring totals together across vectors, cache tiles and work-items; finish and store them."""
        with self.points.without_copies():
            self._results(combining, totals)

    def _results(self, combining: Combining, totals: Totals) -> None:
        joined = {spots: self._joined(combining, totals, spots) for spots in self.spots()}
        if self.waiting:
            self._wait_or_finish(combining, joined)
            return
        if any(d in self.state.item for d in self.facts.reduced):
            self._combine_items(combining, joined)
            with self.state.lines.block(f"if ({self._leads()})"):
                self._finish(combining, joined)
            return
        self._finish(combining, joined)

    def _joined(self, combining: Combining, totals: Totals, spots: Spots) -> Total:
        total = totals.vectors[spots]
        if not self.facts.vector_is_reduced:
            return total
        scalar = combining.across(self.state.lines, total, "".join(f"_{k}" for k in spots))
        if spots in totals.rest:
            if scalar.started is None:
                combining.merge(self.state.lines, scalar, totals.rest[spots])
            else:
                return self._either(combining, scalar, totals.rest[spots])
        return scalar

    def _either(self, combining: Combining, first: Total, second: Total) -> Total:
        """Combine two totals of which either may be nothing."""
        combining.merge(self.state.lines, first, second)
        return first

    def _finish(self, combining: Combining, joined: dict[Spots, Total]) -> None:
        for spots, total in joined.items():
            place = self.kept_place(spots)
            if not self.finishing or self._is_plain():
                condition = conditions([self.inside(spots), total.started])
                store_results(self.state, self.views, place, total.values, condition)
            else:
                self._finish_from_memory(combining, total, place, self.inside(spots))

    def _finish_from_memory(
        self, combining: Combining, total: Total, place: Place, inside: str | None
    ) -> None:
        """Finish with values that are read only where the result is this work-item's own.

        Outside, the place is another work-item's, which may be writing what would be read.
        """
        values, condition = total.values, total.started
        head = "" if inside is None else f"if ({inside})"
        with self.state.lines.block(head), self.points.scope(self.state.lines):
            if any(e is not None for e in self.state.hom.initial):
                values, condition = self._with_initial(combining, total, place), None
            finished = self._finished(place, values)
            store_results(self.state, self.views, place, finished, condition)

    @contextmanager
    def _where(self, condition: str | None) -> Iterator[None]:
        """Put what is written inside under a condition, if there is one; loads stay with it."""
        if condition is None:
            yield
        else:
            with self.state.lines.block(f"if ({condition})"), self.points.scope(self.state.lines):
                yield

    def _is_plain(self) -> bool:
        hom = self.state.hom
        return all(e is None for e in (*hom.initial, *hom.finish))

    def _with_initial(self, combining: Combining, total: Total, place: Place) -> tuple[str, ...]:
        """Return the totals with the initial values on their left."""
        hom, lines, namer = self.state.hom, self.state.lines, self.state.namer
        names = []
        for view, e, result, neutral in zip(
            hom.outputs, hom.initial, combining.combiner.results, combining.combiner.neutral, strict=True
        ):
            variable = namer.fresh(f"{self.state.signature.names.get(view.buffer, view.buffer)}_start")
            value = literal(0 if neutral is None else neutral, result.type, place.width)
            value = value if e is None else self.points.value(e, place)
            lines.add(f"{value_type(result.type, place.width)} {variable} = {value};")
            names.append(variable)
        combining.merge(lines, Total(tuple(names), place.width, None), total)
        return tuple(names)

    def _finished(self, place: Place, values: Sequence[str]) -> tuple[str, ...]:
        """Return the finished values, in variables where they are no plain totals."""
        found = []
        for view, e, value in zip(self.state.hom.outputs, self.state.hom.finish, values, strict=True):
            if e is None or not self.finishing:
                found.append(value)
                continue
            text = self.points.value(e, place, values)
            variable = self.state.namer.fresh(f"{self.state.signature.names[view.buffer]}_result")
            self.state.lines.add(f"const {value_type(e.type, place.width)} {variable} = {text};")
            found.append(variable)
        return tuple(found)

    # Totals that wait in memory

    def _wait_or_finish(self, combining: Combining, joined: dict[Spots, Total]) -> None:
        """Combine with what waits from earlier cache tiles; the last one finishes, the others wait."""
        state, tiled = self.state, [d for d in self.facts.tiled_order if d in self.facts.reduced]
        whole = {d: self.whole[d] for d in tiled}
        first = " && ".join(f"{state.c(state.low[d])} == {state.c(whole[d][0])}" for d in tiled)
        last = " && ".join(f"{state.c(state.high[d])} == {state.c(whole[d][1])}" for d in tiled)
        with state.lines.block(f"if (!({first}))"):
            for spots, total in joined.items():
                with self._where(self.inside(spots)):
                    self._take_up(combining, total, self.kept_place(spots))
        with state.lines.block(f"if ({last})"):
            self._finish(combining, joined)
        with state.lines.block("else"):
            for spots, total in joined.items():
                with self._where(self.inside(spots)):
                    self._put_down(self.kept_place(spots), total.values)

    @property
    def whole(self) -> dict[int, tuple[IntExpression, IntExpression]]:
        """What the work-group covers of each dimension."""
        return self.state.group_ranges

    def _take_up(self, combining: Combining, total: Total, place: Place) -> None:
        """Put what waits in memory on the left of a total."""
        state, names = self.state, []
        for view, result in zip(self.waiting, combining.combiner.results, strict=True):
            variable = state.namer.fresh(f"{view.buffer}_before")
            text = self._waiting_value(view, place)
            state.lines.add(f"{value_type(result.type, place.width)} {variable} = {text};")
            names.append(variable)
        before = Total(tuple(names), place.width, None)
        combining.merge(state.lines, before, total)
        state.lines.add(*(f"{v} = {b};" for v, b in zip(total.values, names, strict=True)))
        if total.started is not None:
            state.lines.add(f"{total.started} = 1;")

    def _waiting_value(self, view: View, place: Place) -> str:
        return load_vector(self.state, view, place)

    def _put_down(self, place: Place, values: tuple[str, ...]) -> None:
        for view, value in zip(self.waiting, values, strict=True):
            store_vector(self.state, view, place, value)

    # Work-items that share a reduction

    def _leads(self) -> str:
        """Return the condition under which a work-item stores what its neighbours computed with it."""
        shared = [self.state.item[d] for d in self.facts.reduced if d in self.state.item]
        return " && ".join(f"{item} == 0" for item in shared)

    def _combine_items(self, combining: Combining, joined: dict[Spots, Total]) -> None:
        """Combine the totals of work-items, neighbours first, so that operands keep their order."""
        for d in reversed(self.facts.reduced):
            if d in self.state.item:
                self._combine_along(combining, joined, d)

    def _combine_along(self, combining: Combining, joined: dict[Spots, Total], d: int) -> None:
        state, item, items = self.state, self.state.item[d], self.facts.schedule.items[d]
        arrays = {spots: self._arrays(combining, total) for spots, total in joined.items()}
        apart = state.namer.fresh("apart")
        with state.lines.block(f"for (int {apart} = 1; {apart} < {items}; {apart} *= 2)"):
            state.lines.add("barrier(CLK_LOCAL_MEM_FENCE);")
            for spots, total in joined.items():
                self._publish(arrays[spots], total)
            state.lines.add("barrier(CLK_LOCAL_MEM_FENCE);")
            with state.lines.block(f"if ({item} % (2 * {apart}) == 0 && {item} + {apart} < {items})"):
                other = f"{state.item_number} + {apart} * {state.item_stride[d]}"
                for spots, total in joined.items():
                    self._merge_from(combining, total, arrays[spots], other)
        state.lines.add("barrier(CLK_LOCAL_MEM_FENCE);")

    def _arrays(self, combining: Combining, total: Total) -> tuple[str, ...]:
        """Declare local arrays with an element per work-item: one per output, and one for the flag."""
        items, names = self.facts.total_items, []
        kinds = [value_type(r.type, total.width) for r in combining.combiner.results]
        for kind in [*kinds, *(["int"] if total.started is not None else [])]:
            array = self.state.namer.fresh("shared_0")
            self.state.top.add(f"__local {kind} {array}[{items}];")
            names.append(array)
        return tuple(names)

    def _publish(self, arrays: tuple[str, ...], total: Total) -> None:
        values = [*total.values, *([total.started] if total.started is not None else [])]
        number = self.state.item_number
        self.state.lines.add(*(f"{a}[{number}] = {v};" for a, v in zip(arrays, values, strict=True)))

    def _merge_from(self, combining: Combining, total: Total, arrays: tuple[str, ...], other: str) -> None:
        values = [f"{array}[{other}]" for array in arrays]
        if total.started is None:
            combining.add(self.state.lines, total, values)
            return
        with self.state.lines.block(f"if ({values[-1]})"):
            combining.add(self.state.lines, total, values[:-1])
