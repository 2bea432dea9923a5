"""From an md_hom and a schedule to OpenCL kernels: the one way in.

md_homs of ``++`` and one point-wise operator become tiles (``kernel/tiles``); where groups share a reduction,
a second kernel combines what they leave, and it is an md_hom again. Everything else runs as a plain nest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from polyloom.ir.host import (
    Buffer,
    HostProgram,
    Index,
    MdHom,
    Order,
    Role,
    View,
)
from polyloom.ir.naming import fresh, fresh_all
from polyloom.ir.types import ElementType
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.kernel.arguments import Signature, kernel_name, signature_of
from polyloom.mdh.kernel.launch import Kernel, Launch, Temporary
from polyloom.mdh.kernel.nest import emit_nest
from polyloom.mdh.kernel.tiles import Results, tile_kernel
from polyloom.mdh.lowering.chunked_scans import emit_chunks
from polyloom.mdh.lowering.partial_results import combination, parts_only
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.mdh.print.names import c_names
from polyloom.mdh.schedule.addresses import Buffers, names_used, reduced_dimensions
from polyloom.mdh.schedule.legality import problems
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, product_of, replace_name

Scheduler = Callable[[MdHom, Buffers, DeviceModel], Schedule]
"""Chooses the schedule of an md_hom that lowering makes itself: one that needs no second kernel."""


class IllegalSchedule(ValueError):
    """The md_hom may not have the schedule; the text says why."""


def emit_md_hom(
    hom: MdHom, program: HostProgram, device: DeviceModel, schedule: Schedule | None, scheduler: Scheduler
) -> Launch:
    """Return the kernels of an md_hom of ``program`` under a schedule.

    Scans and histograms have none, and are cut into chunks where that is worth it. Everything else, and
    where ``schedule`` is None, becomes a plain nest. ``scheduler`` is asked for the chunks' md_homs, and for
    those that combine partial results. Errors: IllegalSchedule.
    """

    def emit_part(part: MdHom, around: HostProgram) -> Launch:
        own = scheduler(part, around.by_name, device) if has_tiles(part) else None
        return _emitted(part, around, device, own, scheduler)

    if not has_tiles(hom):
        return emit_chunks(hom, program, device, emit_part) or emit_nest(plain_nest(hom), program, device)
    return _emitted(hom, program, device, schedule, scheduler)


def _emitted(
    hom: MdHom, program: HostProgram, device: DeviceModel, schedule: Schedule | None, scheduler: Scheduler
) -> Launch:
    """Return tiles under a schedule, and a plain nest where there is none."""
    if schedule is None:
        return emit_nest(plain_nest(hom), program, device)
    buffers = program.by_name
    if found := problems(TileFacts(hom, schedule), buffers, device):
        raise IllegalSchedule("; ".join(found))
    return _Emission(distinct_iterators(hom, buffers), buffers, device, scheduler).launch(schedule)


def has_tiles(hom: MdHom) -> bool:
    """Whether an md_hom has schedules: ``++`` and one point-wise operator, its outputs where ``++`` says."""
    if any(o.order not in (Order.CONCATENATE, Order.POINTWISE) for o in hom.combine):
        return False
    reduced = reduced_dimensions(hom)
    combiners = {operator for d in reduced if (operator := hom.combine[d].combiner) is not None}
    if len(combiners) > 1 or not all(c.associative for c in combiners) or not hom.extents:
        return False
    indices = [index for view in hom.outputs for index in view.indices]
    return all(isinstance(i, Index) and not any(i.coefficients[d] for d in reduced) for i in indices)


def distinct_iterators(hom: MdHom, buffers: Buffers) -> MdHom:
    """Return an md_hom none of whose iterators is called as a buffer or parameter is."""
    taken = {*buffers, *names_used(hom, buffers)}
    if taken.isdisjoint(hom.iterators):
        return hom
    old = [name for name in hom.iterators if name in taken]  # no new name is an old one: see ``_renamed``
    new = dict(zip(old, fresh_all(old, {*taken, *hom.iterators}), strict=True))
    names = tuple(new.get(name, name) for name in hom.iterators)
    return replace(
        hom,
        iterators=names,
        guard=_renamed(hom.guard, new),
        written=_renamed(hom.written, new),
    )


def _renamed(condition: IntExpression | None, new: Mapping[str, str]) -> IntExpression | None:
    """Return a condition with new names for some; none of the new ones is in it."""
    if condition is None:
        return None
    for before, after in new.items():
        condition = replace_name(condition, before, Name(after))
    return condition


@dataclass(frozen=True)
class _Emission:
    """One md_hom on its way to kernels."""

    hom: MdHom
    buffers: Mapping[str, Buffer]
    device: DeviceModel
    scheduler: Scheduler

    def launch(self, schedule: Schedule) -> Launch:
        facts = TileFacts(self.hom, schedule)
        return self._in_parts(facts) if facts.split else self._single(facts)

    def _single(self, facts: TileFacts) -> Launch:
        waiting = self._waiting(facts, (), ())
        views = tuple(view for _, view in waiting.values())
        kernel = self._kernel(facts, self.hom, waiting, Results(self.hom.outputs, waiting=views))
        return Launch((kernel,), _temporaries(waiting))

    def _kernel(
        self,
        facts: TileFacts,
        hom: MdHom,
        temporary: dict[str, tuple[Buffer, View]],
        results: Results,
        suffix: str = "",
    ) -> Kernel:
        buffers = {**self.buffers, **{name: buffer for name, (buffer, _) in temporary.items()}}
        extra = tuple(name for name in temporary)
        defined = tuple((results.parts or {}).values())
        signature = signature_of(hom, buffers, frozenset(temporary), extra, defined)
        name = kernel_name(hom) + suffix
        source = tile_kernel(signature, facts.schedule, name, results)
        return _kernel(signature, facts, name, source)

    def _waiting(
        self, facts: TileFacts, parts: tuple[str, ...], counts: tuple[IntExpression, ...]
    ) -> dict[str, tuple[Buffer, View]]:
        """Return buffers in which totals wait between cache tiles of the reduction, for each part its own."""
        return self._totals("waiting", facts, parts, counts) if facts.waits else {}

    def _totals(
        self, name: str, facts: TileFacts, parts: tuple[str, ...], counts: tuple[IntExpression, ...]
    ) -> dict[str, tuple[Buffer, View]]:
        """Return a temporary for the totals of each output, and the view that writes it."""
        assert facts.combiner is not None
        rank = len(self.hom.extents)
        shape = (*counts, *(self.hom.extents[d] for d in facts.kept))
        offsets = [Index((0,) * rank, Name(part)) for part in parts]
        kept = [Index.unit(d, rank) for d in facts.kept]
        found = {}
        for o, result in enumerate(facts.combiner.results):
            unique = self._unused(f"{name}_{o}")
            kind = ElementType.FLOAT32 if result.type is ElementType.FLOAT16 else result.type
            buffer = Buffer(name=unique, type=kind, shape=shape, role=Role.LOCAL)
            found[unique] = (buffer, View(unique, (*offsets, *kept)))
        return found

    def _unused(self, name: str) -> str:
        return fresh(name, {*self.buffers, *self.hom.iterators})

    # Reductions shared by work-groups

    def _in_parts(self, facts: TileFacts) -> Launch:
        """Return a kernel that leaves a partial result per group, and one that combines them."""
        plain = c_names(self.hom.iterators)
        parts = {d: self._unused(f"{plain[self.hom.iterators[d]]}_part") for d in facts.split}
        counts = tuple(facts.groups(d) for d in facts.split)
        partial = self._totals("partial", facts, tuple(parts.values()), counts)
        waiting = self._waiting(facts, tuple(parts.values()), counts)
        temporary = {**partial, **waiting}
        views = tuple(view for _, view in partial.values())
        hom = parts_only(self.hom, views)
        waits = tuple(view for _, view in waiting.values())
        results = Results(views, finishing=False, parts=parts, waiting=waits)
        first = self._kernel(facts, hom, temporary, results, "_parts")
        rest = combination(facts, tuple(parts.values()), tuple(b for b, _ in partial.values()))
        second = self._second(rest, {b.name: (b, v) for b, v in partial.values()})
        return Launch((first, second), _temporaries(temporary))

    def _second(self, hom: MdHom, temporary: dict[str, tuple[Buffer, View]]) -> Kernel:
        """Return the kernel that combines partial results."""
        buffers = {**self.buffers, **{name: buffer for name, (buffer, _) in temporary.items()}}
        schedule = self.scheduler(hom, buffers, self.device)
        facts = TileFacts(hom, schedule)
        signature = signature_of(hom, buffers, frozenset(temporary))
        source = tile_kernel(signature, schedule, kernel_name(hom), Results(hom.outputs))
        return _kernel(signature, facts, kernel_name(hom), source)


def _kernel(signature: Signature, facts: TileFacts, name: str, source: str) -> Kernel:
    """Return a kernel with its launch: one dimension, work-groups of the schedule's size."""
    items = facts.total_items
    groups = [facts.groups(d) for d in range(len(facts.hom.extents))]
    size = product_of([*groups, Number(items)])
    return Kernel(
        source=source,
        name=name,
        arguments=signature.arguments(),
        global_size=(size,),
        local_size=(Number(items),),
    )


def _temporaries(found: Mapping[str, tuple[Buffer, View]]) -> tuple[Temporary, ...]:
    return tuple(Temporary(b.name, b.type, product_of(b.shape)) for b, _ in found.values())
