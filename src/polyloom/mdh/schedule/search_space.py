"""The legal schedules of an md_hom on a device, described by how one is drawn: never enumerated.

Each choice is made among what earlier choices leave (``_Draft``), so that most drafts are valid; the few that
are not, by a limit that couples all dimensions, are drawn again. ``choice`` and the tuner search here.

Not in the papers: md_poly's tuner enumerates constrained ranges (docs/tuning.md says why that does not do).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, prod
from random import Random
from typing import Any

from polyloom.ir.expressions import walk
from polyloom.ir.host import HostProgram, MdHom
from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.schedule.addresses import Access, Buffers
from polyloom.mdh.schedule.cost.compiled_loops import compiled_vectors, plain_loops
from polyloom.mdh.schedule.cost.cost_model import Prediction, prediction, unbeaten_seconds
from polyloom.mdh.schedule.cost.loop_sizes import Reads, likely
from polyloom.mdh.schedule.designs import designs
from polyloom.mdh.schedule.gpu_designs import gpu_designs
from polyloom.mdh.schedule.legality import LARGEST_TILE, is_legal, most_lanes
from polyloom.mdh.schedule.matrix_designs import MatrixForms, matrix_forms
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule, plain_schedule
from polyloom.mdh.schedule.tiling import TileFacts, parts_vectors

_TILES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
_UNROLLS = (1, 1, 1, 2, 4, 8)


def space_of(
    hom: MdHom, program: HostProgram, device: DeviceModel, others: tuple[MdHom, ...] = ()
) -> ScheduleSpace:
    """Return the schedules of an md_hom of ``program`` that ``others`` may have, too."""
    usable = device.rounding(strict=program.strict)
    return ScheduleSpace(hom=hom, buffers=program.by_name, device=usable, others=others)


@dataclass(frozen=True, eq=False, kw_only=True)
class ScheduleSpace:
    """The schedules of one md_hom on one device. Every schedule that it gives is valid.

    ``others``: the md_hom in other forms, as with extents that change from launch to launch, for which
    schedules must be legal, too.
    """

    hom: MdHom
    buffers: Buffers
    device: DeviceModel
    split: bool = True
    others: tuple[MdHom, ...] = ()
    _facts: dict[Schedule, TileFacts] = field(default_factory=dict)
    _valid: dict[Schedule, bool] = field(default_factory=dict)
    _expected: dict[Schedule, Prediction] = field(default_factory=dict)
    _predictions: dict[Schedule, float] = field(default_factory=dict)

    def facts(self, schedule: Schedule) -> TileFacts:
        """Return what a schedule means."""
        return self.plain_facts.under(schedule)

    def _known_facts(self, schedule: Schedule) -> TileFacts:
        if schedule not in self._facts:
            self._facts[schedule] = self.facts(schedule)
        return self._facts[schedule]

    @cached_property
    def plain_facts(self) -> TileFacts:
        """What holds whatever the schedule decides."""
        return TileFacts(self.hom, self.plain)

    @cached_property
    def _others(self) -> tuple[TileFacts, ...]:
        return tuple(TileFacts(other, self.plain) for other in self.others)

    @cached_property
    def _extents(self) -> tuple[int, ...]:
        found = map(self.plain_facts.extent, range(len(self.hom.extents)))
        pairs = zip(found, self.hom.extents, strict=True)
        return tuple(likely(extent) if n is None else n for n, extent in pairs)

    @property
    def known(self) -> Collection[Schedule]:
        """The schedules that somebody has asked about."""
        return self._facts.keys()

    def is_valid(self, schedule: Schedule) -> bool:
        """Whether the md_hom may have a schedule here."""
        if schedule not in self._valid:
            self._valid[schedule] = self._can_be(schedule)
        return self._valid[schedule]

    def _can_be(self, schedule: Schedule) -> bool:
        facts = self._known_facts(schedule)
        if not self.split and facts.split:
            return False
        every = (facts, *(other.under(schedule) for other in self._others))
        return all(is_legal(each, self.buffers, self.device) for each in every)

    def text(self, schedule: Schedule) -> str:
        """Return the canonical JSON text."""
        return schedule.text()

    def predicted(self, schedule: Schedule) -> float:
        """Return the seconds that the cost model expects."""
        if schedule not in self._predictions:
            self._predictions[schedule] = self._prediction(schedule).seconds
        return self._predictions[schedule]

    def at_least(self, schedule: Schedule) -> float:
        """Return seconds below what the cost model expects, which are known sooner."""
        return self._prediction(schedule).least_seconds

    def _prediction(self, schedule: Schedule) -> Prediction:
        if schedule not in self._expected:
            self._expected[schedule] = prediction(self._known_facts(schedule), self.reads, self.device)
        return self._expected[schedule]

    @cached_property
    def unbeaten(self) -> float:
        """Seconds that no schedule is expected to go below."""
        return unbeaten_seconds(self.plain_facts, self.reads, self.device)

    @cached_property
    def plain(self) -> Schedule:
        """The schedule without any decision."""
        return plain_schedule(len(self.hom.extents), len(self.hom.inputs))

    def designs(self) -> Iterator[Schedule]:
        """Yield the legal schedules of the usual forms."""
        made: Iterable[Schedule]
        if self.on_gpu:
            if self.matrix_forms is not None:
                yield from filter(self.is_valid, self.matrix_forms.usual())
            made = gpu_designs(self.plain, self.plain_facts, self.reads, self.device)
        else:
            made = designs(self.plain, self.plain_facts, self.reads, self.width, self.device)
        yield from filter(self.is_valid, made)

    @cached_property
    def plain_loops(self) -> tuple[Schedule, ...]:
        """The legal schedules without decisions of which the C compiler makes vectors, for open sizes."""
        made = () if self.on_gpu else plain_loops(self.plain_facts, self.device)
        return tuple(s for s in made if self.is_valid(s) and self._is_compiled(s))

    def _is_compiled(self, schedule: Schedule) -> bool:
        return compiled_vectors(self._known_facts(schedule), self.reads, self.device) is not None

    @cached_property
    def matrix_forms(self) -> MatrixForms | None:
        """The forms of schedules for matrix units; None where there are no such units, or no such product."""
        return matrix_forms(self.plain, self.plain_facts, self.buffers, self.device)

    def sample(self, rng: Random) -> Schedule:
        """Return a random schedule."""
        for _ in range(20):
            schedule = self._drawn(rng)
            if self.is_valid(schedule):
                return schedule
        return self.plain

    def _drawn(self, rng: Random) -> Schedule:
        """Draw a schedule, every other one for matrix units where there are such."""
        if self.matrix_forms is not None and rng.random() < 0.5:
            return self.matrix_forms.sample(rng)
        return _Draft(self, rng).schedule()

    def neighbours(self, schedule: Schedule, rng: Random) -> Sequence[Schedule]:
        """Return some schedules that differ from one in one decision, or in two that belong together."""
        found = (self._changed(schedule, rng) for _ in range(24))
        fresh = dict.fromkeys(s for s in found if s != schedule and self.is_valid(s))
        return list(fresh)[:12]

    def _changed(self, schedule: Schedule, rng: Random) -> Schedule:
        if schedule.matrix and self.matrix_forms is not None:
            return self.matrix_forms.sample(rng)
        draft = _Draft(self, rng)
        change = rng.choice((*_CHANGES, _Draft.with_stages) if self.on_gpu else _CHANGES)
        return draft.settled(change(draft, schedule))

    # What the md_hom allows

    @cached_property
    def reads(self) -> Reads:
        """What the md_hom reads and writes."""
        return Reads(self.hom, self.buffers)

    @cached_property
    def inner_arrays(self) -> tuple[int, ...]:
        """The inputs of known address, no scalars, that are read at every point."""
        inputs = self.reads.inputs
        return tuple(k for k in sorted(self.reads.inner) if (a := inputs[k]) is not None and a.steps)

    @cached_property
    def width(self) -> int:
        """Elements of a vector register."""
        views = (*self.hom.inputs, *self.hom.outputs)
        size = max(self.buffers[view.buffer].type.size for view in views)
        most = 16
        if not any(part.type.is_float for term in self.hom.terms for part in walk(term)):
            size, most = max(size, self.reads.widest), most_lanes(self.device)
        return max(1, min(most, self.device.vector_bytes // max(size, 1)))

    @cached_property
    def on_gpu(self) -> bool:
        """Whether groups of work-items are wanted."""
        return self.device.kind is DeviceKind.GPU

    @cached_property
    def vector_choices(self) -> tuple[int | None, ...]:
        """The dimensions that vectors may run along, the better ones more often."""
        facts = self.plain_facts
        found: list[int | None] = [None]
        for d in (*facts.kept, *facts.reduced):
            if self.extent(d) < 2 or parts_vectors(facts, d):
                continue
            if d in facts.reduced and not (facts.combiner is None or facts.combiner.commutative):
                continue
            found += [d] * self._fitness(facts, d)
        return tuple(found)

    def _fitness(self, facts: TileFacts, d: int) -> int:
        """Return how well vectors run along a dimension: by how many arrays have neighbours there."""
        inputs = [self.reads.inputs[k] for k in sorted(self.reads.inner)]
        views = [*inputs, *(self.reads.outputs if d in facts.kept else [])]
        good = all(a is not None and (a.is_unit(d) or a.is_fixed(d)) for a in views)
        fair = sum(1 for a in views if a is not None and a.is_unit(d))
        return 8 if good and fair else 2 if fair else 1

    def extent(self, d: int) -> int:
        """Return an extent; a usual one where it is known only at launch."""
        return self._extents[d]


@dataclass
class _Draft:
    """One schedule in the making."""

    space: ScheduleSpace
    rng: Random

    @property
    def dimensions(self) -> range:
        return range(len(self.space.hom.extents))

    @cached_property
    def kept(self) -> tuple[int, ...]:
        return self.space.plain_facts.kept

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        return self.space.plain_facts.reduced

    def schedule(self) -> Schedule:
        """Return a schedule that is valid but for limits that couple dimensions."""
        schedule = self.with_vector(self.space.plain)
        schedule = self.with_orders(schedule)
        schedule = self.with_tile(schedule)
        schedule = self.with_unroll(schedule)
        schedule = self.with_items(schedule)
        if self.rng.random() < (0.8 if self._scattered(schedule) else 0.4):
            schedule = self.with_copies(schedule)
        if self.rng.random() < 0.3:
            schedule = self.with_local(schedule)
        schedule = self.with_groups(schedule)
        schedule = self.with_follow(schedule)
        schedule = self.with_stages(schedule)
        return self.with_streaming(schedule)

    def with_vector(self, schedule: Schedule) -> Schedule:
        """Choose the dimension of vectors and their width."""
        d = self.rng.choice(self.space.vector_choices)
        width = self.space.width
        if self.rng.random() < 0.15:
            width = self.rng.choice([w for w in (2, 4, 8, 16) if w <= max(2, 2 * width)])
        while d is not None and width > 1 and width > self.space.extent(d):
            width //= 2
        if d is None or width < 2:
            return replace(schedule, vector=None, width=1)
        strided = tuple(s and k != d for k, s in enumerate(schedule.strided))
        return replace(schedule, vector=d, width=width, strided=strided)

    def with_orders(self, schedule: Schedule) -> Schedule:
        """Shuffle the loops; the grid stays in order half of the time."""
        every = list(self.dimensions)

        def shuffled() -> tuple[int, ...]:
            return tuple(self.rng.sample(every, len(every)))

        private, unrolled = shuffled(), shuffled()
        combiner = self.space.plain_facts.combiner
        if combiner is not None and not combiner.commutative:
            private, unrolled = tuple(every), tuple(every)
        elif self.rng.random() < 0.5:
            reduced = [d for d in every if d in self.reduced]
            private = (*(d for d in private if d in self.kept), *reduced)
        local = shuffled() if self.rng.random() < 0.5 else tuple(every)
        grid = shuffled() if self.rng.random() < 0.5 else tuple(every)
        return replace(
            schedule,
            private_order=private,
            unrolled_order=unrolled,
            local_order=local,
            group_order=grid,
        )

    def counted(self, schedule: Schedule, d: int) -> int:
        """Return how many vectors a dimension has."""
        return max(1, ceil(self.space.extent(d) / self.space.facts(schedule).width(d)))

    def with_tile(self, schedule: Schedule) -> Schedule:
        """Choose the register tile: as many results as registers hold, spread over kept dimensions."""
        private = list(schedule.private)
        room = self.rng.choice((1, 4, 8, 12, 16, 20, 24, 24, 28) if self._is_known else (1, 2, 4, 8, 16))
        for d in self.rng.sample(self.kept, len(self.kept)):
            private[d] = self._tile_size(self.counted(schedule, d), room)
            room = max(1, room // private[d])
        return replace(schedule, private=tuple(private))

    @property
    def _is_known(self) -> bool:
        """Whether all extents are numbers: else all shapes of a tile are written out, so tiles are small."""
        facts = self.space.plain_facts
        return all(facts.extent(d) is not None for d in self.dimensions)

    def _tile_size(self, count: int, room: int) -> int:
        sizes = [n for n in _TILES if n <= min(count, room)]
        whole = [n for n in sizes if count % n == 0]
        return self.rng.choice(whole if self.rng.random() < 0.5 else sizes) if sizes else 1

    def with_unroll(self, schedule: Schedule) -> Schedule:
        """Choose how often the loops of the reduction are unrolled: short ones whole."""
        private = list(schedule.private)
        room = max(1, (512 if self._is_known else 48) // prod(private))
        for d in self.rng.sample(self.reduced, len(self.reduced)):
            count = self.counted(schedule, d)
            whole = count <= 8 and self.rng.random() < 0.6
            size = count if whole else self.rng.choice([u for u in _UNROLLS if u <= max(1, count)])
            private[d] = min(size, room)
            room = max(1, room // private[d])
        return replace(schedule, private=tuple(private))

    def with_items(self, schedule: Schedule) -> Schedule:
        """Choose work-items: one on CPUs, a warp or more on GPUs."""
        items, strided = [1] * len(self.dimensions), [False] * len(self.dimensions)
        if self.space.on_gpu:
            room = self.rng.choice((32, 64, 128, 256))
            order = self._by_neighbours()
            for d in order:
                size = min(room, self._power(self.space.extent(d) // max(1, self._step(schedule, d))))
                items[d] = self.rng.choice([2**k for k in range(size.bit_length()) if 2**k <= size] or [1])
                items[d] = items[d] if d in self.kept or self.rng.random() < 0.3 else 1
                strided[d] = d != schedule.vector and self.rng.random() < 0.5
                room = max(1, room // items[d])
            item_order = tuple(reversed(order))
            return replace(schedule, items=tuple(items), strided=tuple(strided), item_order=item_order)
        return replace(schedule, items=tuple(items), strided=tuple(strided))

    def _by_neighbours(self) -> list[int]:
        """Return the dimensions, those first along which arrays have neighbours."""
        views = [a for a in self._views() if a is not None]
        return sorted(self.dimensions, key=lambda d: (-sum(a.is_unit(d) for a in views), self.rng.random()))

    def _views(self) -> list[Access | None]:
        return [*self.space.reads.outputs, *self.space.reads.inputs]

    @staticmethod
    def _power(n: int) -> int:
        return 1 << (max(n, 1).bit_length() - 1)

    def _step(self, schedule: Schedule, d: int) -> int:
        return self.space.facts(schedule).step(d)

    def with_local(self, schedule: Schedule) -> Schedule:
        """Choose cache tiles: multiples of register tiles."""
        local = list(schedule.local)
        for d in self.dimensions:
            step = self._step(schedule, d)
            local[d] = self.rng.choice((0, 0, 0, *(step * 2**k for k in range(8))))
            local[d] = 0 if local[d] >= self.space.extent(d) else local[d]
        return self._fitting_groups(replace(schedule, local=tuple(local)))

    def with_copies(self, schedule: Schedule) -> Schedule:
        """Copy an input: its dimensions get cache tiles of a known size."""
        usable = self.space.inner_arrays
        if not usable or self.space.hom.guard is not None:
            return schedule
        scattered = self._scattered(schedule)
        k = self.rng.choice(scattered if scattered and self.rng.random() < 0.7 else usable)
        inputs, local = list(schedule.inputs), list(schedule.local)
        if inputs[k].memory is Memory.LOCAL and self.rng.random() < 0.5:
            inputs[k] = Caching()
            return replace(schedule, inputs=tuple(inputs))
        access = self.space.reads.inputs[k]
        assert access is not None
        inputs[k] = self._caching(schedule, access)
        schedule = replace(schedule, streaming=False)
        for d in self.dimensions:
            if access.uses(d):
                local[d] = self._copied_length(schedule, d)
        return self._fitting_groups(replace(schedule, inputs=tuple(inputs), local=tuple(local)))

    def _scattered(self, schedule: Schedule) -> list[int]:
        """Return the inputs whose elements in a vector are no neighbours in memory."""
        d, found = schedule.vector, list[int]()
        for k in self.space.inner_arrays:
            access = self.space.reads.inputs[k]
            if d is not None and access is not None and access.uses(d) and not access.is_unit(d):
                found.append(k)
        return found

    def _copied_length(self, schedule: Schedule, d: int) -> int:
        step, known = self._step(schedule, d), self.space.plain_facts.extent(d) is not None
        if d in self.reduced and known and self.rng.random() < 0.6:
            return 0
        return step * self.rng.choice((1, 1, 2, 4, 8) if d in self.kept else (16, 32, 64, 128, 256))

    def _caching(self, schedule: Schedule, access: Access) -> Caching:
        """Choose the copy's layout: neighbours along the vectors come last."""
        count, vector = len(access.steps), schedule.vector
        axes = list(range(count))
        along = [axis for axis in axes if vector is not None and access.steps[axis][vector] == 1]
        if along:
            axes.remove(along[0])
            axes.append(along[0])
        elif self.rng.random() < 0.3:
            self.rng.shuffle(axes)
        order = () if axes == list(range(count)) else tuple(axes)
        return Caching(Memory.LOCAL, order, self.rng.choice((0, 0, 16, 1)), self.rng.random() < 0.4)

    def with_groups(self, schedule: Schedule) -> Schedule:
        """Choose what a work-group covers: enough groups for all units, not too many."""
        group = [0] * len(self.dimensions)
        units = max(1, self.space.device.compute_units)
        wanted = units * self.rng.choice((4, 16, 64) if self.space.on_gpu else (1, 2, 4, 8, 16, 32))
        for d in self.rng.sample(self.kept, len(self.kept)):
            group[d] = self._group_size(schedule, d, wanted)
            count = ceil(self.space.extent(d) / group[d]) if group[d] else 1
            wanted = max(1, ceil(wanted / count))
        if self.reduced and self.space.split and (wanted > 1 or self.rng.random() < 0.05):
            d = self.rng.choice(self.reduced)
            if self.rng.random() < 0.6:
                group[d] = self._group_size(schedule, d, wanted)
        return replace(schedule, group=tuple(group))

    def _unit(self, schedule: Schedule, d: int) -> int:
        """Return what work-groups are multiples of."""
        return schedule.local[d] or self._step(schedule, d)

    def _group_size(self, schedule: Schedule, d: int, wanted: int) -> int:
        unit, n = self._unit(schedule, d), self.space.extent(d)
        count = self.rng.choice((1, wanted, wanted, max(1, wanted // 2), 2 * wanted))
        if count <= 1 or unit >= n:
            return 0
        return max(1, round(n / count / unit)) * unit

    def _fitting_groups(self, schedule: Schedule) -> Schedule:
        """Round work-groups to multiples of the cache tiles."""
        group = list(schedule.group)
        for d in self.dimensions:
            unit = self._unit(schedule, d)
            group[d] = ceil(group[d] / unit) * unit if group[d] else 0
        return replace(schedule, group=tuple(group))

    def with_follow(self, schedule: Schedule) -> Schedule:
        """Let an input lead the unrolled points, where several of them read one element."""
        combiner = self.space.plain_facts.combiner
        usable = self.space.inner_arrays
        if combiner is None or not combiner.commutative or not usable or self.rng.random() < 0.6:
            return replace(schedule, follow=None)
        return replace(schedule, follow=self.rng.choice(usable))

    def with_streaming(self, schedule: Schedule) -> Schedule:
        """Let results bypass the caches: only where they are large; C decides it without schedules."""
        size = prod(self.space.extent(d) for d in self.kept) * 4
        large = bool(self.space.device.caches) and size > max(self.space.device.caches) // 2
        usable = large and not schedule.has_copies and self.space.device.streams_by_schedule
        return replace(schedule, streaming=usable and self.rng.random() < 0.5)

    def with_stages(self, schedule: Schedule) -> Schedule:
        """Load copies one cache tile ahead half of the time, on GPUs: a CPU fetches ahead by itself."""
        ahead = self.space.on_gpu and self.rng.random() < 0.5
        return self.settled(replace(schedule, stages=2 if ahead else 1))

    def settled(self, schedule: Schedule) -> Schedule:
        """Return a schedule with one stage where there are no copies that change."""
        staged = schedule.stages > 1 and not self.space.facts(schedule).staged
        return replace(schedule, stages=1) if staged else schedule

    # Small changes

    def one_tile(self, schedule: Schedule) -> Schedule:
        """Change the register tile along one dimension; cache tiles and groups follow."""
        d = self.rng.choice(list(self.dimensions))
        count = self.counted(schedule, d)
        size = schedule.private[d]
        choice = [
            1,
            max(1, size - 1),
            size + 1,
            max(1, size // 2),
            size * 2,
            *([count] if count <= 8 else []),
            self.rng.choice([n for n in _TILES if count % n == 0]),
        ]
        private = list(schedule.private)
        private[d] = min(self.rng.choice(choice), count, LARGEST_TILE)
        return self._refit(schedule, replace(schedule, private=tuple(private)))

    def other_tile(self, schedule: Schedule) -> Schedule:
        """Draw the register tile anew."""
        return self._refit(schedule, self.with_tile(schedule))

    def two_tiles(self, schedule: Schedule) -> Schedule:
        """Make the register tile longer along one dimension and shorter along another."""
        return self.one_tile(self.one_tile(schedule))

    def _refit(self, before: Schedule, schedule: Schedule) -> Schedule:
        """Keep cache tiles and groups about as large as they were, as multiples of the new register tiles."""
        local, group = list(schedule.local), list(schedule.group)
        for d in self.kept:
            step = self._step(schedule, d)
            local[d] = max(1, round(local[d] / step)) * step if local[d] else 0
            unit = local[d] or step
            group[d] = max(1, round(group[d] / unit)) * unit if group[d] else 0
        return replace(schedule, local=tuple(local), group=tuple(group))

    def one_group(self, schedule: Schedule) -> Schedule:
        """Make work-groups larger or smaller along one dimension."""
        d = self.rng.choice(list(self.kept) or list(self.dimensions))
        if self.reduced and self.rng.random() < 0.1:
            d = self.rng.choice(self.reduced)
        unit, group = self._unit(schedule, d), list(schedule.group)
        size = group[d] or self.space.extent(d)
        count = self.rng.choice((size // 2, size // 4, size * 2, unit, 0))
        group[d] = max(1, ceil(count / unit)) * unit if count else 0
        group[d] = 0 if group[d] >= self.space.extent(d) else group[d]
        return replace(schedule, group=tuple(group))

    def one_local(self, schedule: Schedule) -> Schedule:
        """Change the cache tile along one dimension."""
        d = self.rng.choice(list(self.dimensions))
        step, local = self._step(schedule, d), list(schedule.local)
        size = local[d]
        local[d] = self.rng.choice(
            (0, step, 2 * size, max(1, size // 2 // step) * step if size else 8 * step)
        )
        return self._fitting_groups(replace(schedule, local=tuple(local)))

    def one_layout(self, schedule: Schedule) -> Schedule:
        """Change padding or panels of a copy."""
        copied = [k for k, c in enumerate(schedule.inputs) if c.memory is Memory.LOCAL]
        if not copied:
            return self.with_copies(schedule)
        k, inputs = self.rng.choice(copied), list(schedule.inputs)
        if self.rng.random() < 0.5:
            inputs[k] = replace(inputs[k], panel=not inputs[k].panel)
        else:
            inputs[k] = replace(inputs[k], padding=self.rng.choice((0, 1, 16)))
        return replace(schedule, inputs=tuple(inputs))

    def other_vector(self, schedule: Schedule) -> Schedule:
        """Let vectors run along another dimension."""
        return self._refit(schedule, self.with_vector(schedule))

    def other_order(self, schedule: Schedule) -> Schedule:
        """Swap two loops of one level."""
        level = self.rng.choice(("private_order", "unrolled_order", "local_order", "group_order"))
        order = list(getattr(schedule, level))
        if len(order) < 2:
            return schedule
        a, b = self.rng.sample(range(len(order)), 2)
        order[a], order[b] = order[b], order[a]
        changed: dict[str, Any] = {level: tuple(order)}
        return replace(schedule, **changed)

    def other_items(self, schedule: Schedule) -> Schedule:
        """Draw work-items anew."""
        return self._refit(schedule, self.with_items(schedule)) if self.space.on_gpu else schedule


_CHANGES = (
    _Draft.one_tile,
    _Draft.one_tile,
    _Draft.two_tiles,
    _Draft.two_tiles,
    _Draft.other_tile,
    _Draft.one_group,
    _Draft.one_group,
    _Draft.one_local,
    _Draft.one_layout,
    _Draft.with_copies,
    _Draft.with_unroll,
    _Draft.with_follow,
    _Draft.with_streaming,
    _Draft.other_vector,
    _Draft.other_order,
    _Draft.other_order,
    _Draft.other_items,
)
