"""How a program runs on the processor, from Python: the schedule of each node, and the loops of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.lowering.sweeps.fusion import CHANGES, sweeps_explained
from polyloom.mdh.lowering.time_tiles.choose import with_time_tiles
from polyloom.mdh.runtime.arguments import known_parameters
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.tree.nodes import Function
from polyloom.mdh.tree.text import function_text
from polyloom.mdh.tuning.choose import Choice
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter


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
    special = specialise(program.program, parameters)
    tiled = with_time_tiles(special, program.device).program
    sweeps = sweeps_explained(tiled, program.device)
    if tiled != special:
        inside = (text for text in sweeps if not text.endswith(CHANGES))
        sweeps = ("time loops run in tiles across time, below", *inside)
    return NativeExplanation(program.device.id, parameters, dict(choices), tree, sweeps)
