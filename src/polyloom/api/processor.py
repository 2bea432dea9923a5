"""How a program runs on the processor, from Python: the schedule of each node, and the loops of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyloom.ir.host import HostProgram
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.explain.places import places
from polyloom.mdh.explain.reasons import time_tiles_explained
from polyloom.mdh.lowering.pieces.affine import affine_pieces
from polyloom.mdh.lowering.sweeps.fusion import CHANGES, sweeps_explained
from polyloom.mdh.lowering.time_tiles.choose import with_time_tiles
from polyloom.mdh.lowering.time_tiles.wavefronts import with_wavefronts
from polyloom.mdh.runtime.arguments import known_parameters
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tree.text import function_text
from polyloom.mdh.tuning.choose import Choice
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter

if TYPE_CHECKING:
    from polyloom.report.schedule_view import Scheduled


@dataclass(frozen=True, eq=False)
class NativeExplanation:
    """The loops of a program for given sizes, and where the schedule of each md_hom comes from.

    ``sweeps``: which md_homs are fused, and which are not and why.
    """

    device: str
    parameters: Mapping[str, int]
    choices: Mapping[str, Choice[Schedule]]
    tree: Function
    sweeps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<NativeExplanation of {self.tree.name}; print it>"

    def __str__(self) -> str:
        """Return what ``polyloom explain --device native`` prints."""
        from polyloom.report.processor_view import text

        return text(self.tree, self.device, self.parameters, self.choices, self.sweeps)

    def json(self) -> dict[str, Any]:
        """Return the document of ``explain --device native --json``."""
        nodes = [
            {"name": name, "origin": choice.origin.value, "schedule": choice.schedule.json()}
            for name, choice in self.choices.items()
        ]
        known = {"device": self.device, "function": self.tree.name, "parameters": dict(self.parameters)}
        return {**known, "md_homs": nodes, "sweeps": list(self.sweeps), "tree": function_text(self.tree)}


def explain_native(program: CompiledProgram, given: Mapping[str, Any] | None = None) -> NativeExplanation:
    """Say how a program runs on the processor, without building it; ``given``: its parameters.

    Errors: ``explain-device``; ``parameter-...``.
    """
    parameters = known_parameters(program.program, {**program.constants, **(given or {})})
    tree = program.tree(parameters)
    choices = program.emitter.choices if isinstance(program.emitter, TunedEmitter) else {}
    sweeps = fused_explained(specialise(program.program, parameters), program.device)
    return NativeExplanation(program.device.id, parameters, dict(choices), tree, sweeps)


def fused_explained(special: HostProgram, device: DeviceModel) -> tuple[str, ...]:
    """Return what of a program of known sizes is in tiles across time or fused, and why the rest is not."""
    special = affine_pieces(special)
    tiled = with_time_tiles(special, device).program
    sweeps = sweeps_explained(tiled, device)
    if tiled != special:
        sweeps = tuple(text for text in sweeps if not text.endswith(CHANGES))
    in_waves = with_wavefronts(tiled, device) != tiled
    waves = ("sequential loops run as waves of tiles, below",) if in_waves else ()
    return (*time_tiles_explained(special, device), *waves, *sweeps)


def scheduled(program: CompiledProgram, given: Mapping[str, Any]) -> Scheduled:
    """Return where the loops of a program are on the processor; errors as ``explain_native``."""
    from polyloom.report.schedule_view import Scheduled

    parameters = known_parameters(program.program, {**program.constants, **given})
    tree = program.tree(parameters)
    special = specialise(program.program, parameters)
    reasons = fused_explained(special, program.device)
    return Scheduled(program.device.id, parameters, places(special, tree.body), reasons)
