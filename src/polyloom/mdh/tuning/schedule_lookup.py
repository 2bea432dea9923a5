"""An emitter that asks the database: tuned schedules where there are any, else the cost model's."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from math import prod
from pathlib import Path

from polyloom.diagnostics import PolyloomError
from polyloom.ir.host import HostProgram, MdHom, Nest, used_buffers
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.canonical_names import emit_canonical
from polyloom.mdh.lowering.kernels.nodes import nest_kernels
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.lower import emit_md_hom
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.lowering.tuning_targets import flattened, tune_targets
from polyloom.mdh.schedule.addresses import known, names_used
from polyloom.mdh.schedule.choice import legal_schedule, one_kernel_schedule
from polyloom.mdh.schedule.schedules import Schedule, schedule_from_text
from polyloom.mdh.schedule.signature import Key, key_of, options_of
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.mdh.tree.nodes import Code
from polyloom.mdh.tuning.adaptation import SeededScheduleSpace, seeded_space
from polyloom.mdh.tuning.choose import Choice, Origin, choose, tuning_results
from polyloom.mdh.tuning.database import size_distance

SEEDS = 2
"""How many schedules of similar md_homs a choice starts from."""


def emit_with_text(hom: MdHom, program: HostProgram, device: DeviceModel, schedule: str) -> Launch:
    """Return the kernels under the schedule of a JSON text. Errors: ValueError."""
    return emit_md_hom(hom, program, device, schedule_from_text(schedule), one_kernel_schedule)


def code_with_text(hom: MdHom, program: HostProgram, device: DeviceModel, schedule: str) -> Code | None:
    """Return the kernel tree under the schedule of a JSON text. Errors: ValueError."""
    return lower_scheduled(program, lambda _, around: schedule_from_text(schedule))(hom)


def _constants(node: MdHom, program: HostProgram) -> tuple[int, ...]:
    """Return which inputs of an md_hom are constants, of which copies are packed when a program is loaded."""
    buffers = program.by_name
    return tuple(k for k, view in enumerate(node.inputs) if buffers[view.buffer].constant)


def _is_small(node: MdHom, launched: MdHom) -> bool:
    """Whether threads do not share an md_hom: ``shared_if_large`` counts points, ``for_a_team`` values."""
    extents = [known(extent) for extent in launched.extents]
    results = 1 if launched is node else len(node.outputs)
    return None not in extents and prod(n for n in extents if n is not None) * results < LEAST_SHARED


class TunedEmitter:
    """Makes the kernels of a node.

    ``path``: the database; None: the user's own. ``choices``: what was chosen for each md_hom, by its name.
    ``shares_kernels``: md_homs that differ in names alone share kernels, for programs without parameters and
    loops.
    """

    def __init__(self, path: Path | None = None, *, shares_kernels: bool = False) -> None:
        self._path = path
        self._shares_kernels = shares_kernels
        self._is_broken = False
        self.choices: dict[str, Choice[Schedule]] = {}
        self._program: HostProgram | None = None
        self._targets: dict[MdHom, MdHom] = {}
        self._known: dict[tuple[Key, Key, int], Choice[Schedule]] = {}

    def __call__(self, node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
        """Return the kernels of a node of ``program``.

        Errors: ``database-...`` where ``path`` is no database.
        """
        if isinstance(node, Nest):
            return nest_kernels(node, program, device)
        if not has_tiles(node):
            return emit_md_hom(node, program, device, None, one_kernel_schedule)
        launched = self._launched(node, program)
        if launched == node:
            node, buffers = flattened(node, program.buffers)
            launched, program = node, replace(program, buffers=buffers)
        schedule = self._legal(node, launched, program, device)

        def emit(hom: MdHom, around: HostProgram) -> Launch:
            return emit_md_hom(hom, around, device, schedule, one_kernel_schedule)

        return emit_canonical(node, program, emit) if self._shares_kernels else emit(node, program)

    def schedule(self, node: MdHom, program: HostProgram, device: DeviceModel) -> Schedule | None:
        """Return the schedule of an md_hom as it stands; None where it has none. Errors: ``database-...``.

        One that threads do not share, for it is small, gets the schedule of one thread: it runs in no groups.
        """
        if not has_tiles(node):
            return None
        launched = self._launched(node, program)
        if device.compute_units == 1 or not _is_small(node, launched):
            return self._legal(node, launched, program, device)
        alone = replace(device, compute_units=1)
        found = self._legal(node, launched, program, alone)
        choice = self.choices[node.name]
        if choice.origin is not Origin.MODEL:
            return found
        whole = replace(found, group=(0,) * len(node.extents))
        found = legal_schedule(whole, node, program.by_name, alone.rounding(strict=program.strict))
        self.choices[node.name] = replace(choice, schedule=found)
        return found

    def _legal(self, node: MdHom, launched: MdHom, program: HostProgram, device: DeviceModel) -> Schedule:
        choice = self._choice(node, launched, program, device)
        self.choices[node.name] = choice
        usable = device.rounding(strict=program.strict)
        return legal_schedule(choice.schedule, node, program.by_name, usable)

    def forget(self) -> None:
        """Ask again at the next call: schedules may have been tuned since."""
        self._known.clear()

    def _choice(
        self, node: MdHom, launched: MdHom, program: HostProgram, device: DeviceModel
    ) -> Choice[Schedule]:
        """Return the schedule of an md_hom: the same for two that differ in names alone."""
        options = options_of(strict=program.strict, constant=_constants(node, program))
        buffers = [program.by_name[name] for name in used_buffers(node)]
        own = key_of(node, buffers, device.id, options)
        like = own if launched is node else key_of(launched, buffers, device.id, options)
        key = own, like, device.compute_units
        if key not in self._known:
            kept_as = key[1] if node == launched else replace(key[1], options=f"{options} {key[0]}")
            seeds = self._seeds(key[1])
            space = seeded_space(launched, program, device, seeds, kept_as=kept_as, node=node)
            self._known[key] = self._chosen(node, program, device, space)
        return self._known[key]

    def _chosen(
        self, node: MdHom, program: HostProgram, device: DeviceModel, space: SeededScheduleSpace
    ) -> Choice[Schedule]:
        """Ask the database. The user's own is not asked again once it was broken or locked for long."""
        try:
            results = None if self._is_broken else tuning_results(self._path)
            with results or nullcontext() as database:
                options = options_of(strict=program.strict)
                return choose(node, program.buffers, device, space, database, options)
        except PolyloomError:
            if self._path is not None or self._is_broken:
                raise
            self._is_broken = True
            return choose(node, program.buffers, device, space, None)

    def _seeds(self, key: Key) -> list[str]:
        """Return what the model chose for the md_homs whose sizes are nearest."""
        found = [
            (size_distance(key.sizes, launched.sizes), choice.schedule.text())
            for (_, launched, _), choice in self._known.items()
            if launched.signature == key.signature and choice.origin is Origin.MODEL
        ]
        return [text for _, text in sorted(found)[:SEEDS]]

    def _launched(self, node: MdHom, program: HostProgram) -> MdHom:
        """Return an md_hom with the sizes of a middle launch, where host iterators decide them."""
        if not names_used(node, program.by_name):
            return node
        if self._program is not program:
            self._program = program
            known = () if program.parameters else tune_targets(program)
            self._targets = {target.node: target.launched for target in known}
        return self._targets.get(node, node)
