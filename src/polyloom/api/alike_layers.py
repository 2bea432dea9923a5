"""Layers that differ in names only: one is compiled, and the others run its code on what they take.

    conv2: c[o, i, j] += W[...] * x[...]     conv5: the same with other names      one program

A network has a few kinds of layers: the 462 of a training step of ResNet-18 are 113. Not in the papers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from polyloom.api.attempts import attempt
from polyloom.api.reading import Path
from polyloom.diagnostics import Diagnostic, InternalFault, PolyloomError, Refusal
from polyloom.ir.conversion.split_layers import Layer
from polyloom.ir.program import Program
from polyloom.polyhedra.effort import limited
from polyloom.wafer.explain.layers import LayerRun
from polyloom.wafer.placement.known_maps import alike_text, chosen_for, names_between, with_names
from polyloom.wafer.simulation.check import check_outputs, checked_batch
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulation.run import simulate_program


@dataclass(frozen=True, eq=False)
class LayerTask:
    """A layer, its map (None: what is chosen for it), what it takes, and the options of ``simulate``."""

    layer: Layer
    source: Path | None
    arrays: Mapping[str, npt.NDArray[Any]]
    options: Mapping[str, Any]


def alike(tasks: Sequence[LayerTask]) -> list[list[LayerTask]]:
    """Return the tasks, those together whose layers are alike and have no map, in the order of the first.

    A layer that is watched is alone: what is shown of it has its own names.
    """
    groups: dict[int | str, list[LayerTask]] = {}
    for number, task in enumerate(tasks):
        alone = task.source is not None or task.options.get("watch") is not None
        groups.setdefault(number if alone else alike_text(task.layer.program), []).append(task)
    return list(groups.values())


def run_like(run: LayerRun, task: LayerTask) -> LayerRun | None:
    """Run what was compiled for a layer on what another one takes that is alike, and check it if asked to.

    None where that is not known: what was compiled was not simulated.
    """
    names = names_between(run.layer.program, task.layer.program)
    found = attempt(lambda: _run_like(run, task, names))
    if isinstance(found, PolyloomError | InternalFault):
        refusal = _renamed(found, names, task.layer.program)
        return LayerRun(layer=task.layer, choice=None, result=None, refusal=refusal, names=names)
    return found


@limited("the code of a layer")
def _run_like(run: LayerRun, task: LayerTask, names: Mapping[str, str]) -> LayerRun | None:
    layer, options = task.layer, task.options
    choice = None if run.choice is None else chosen_for(run.choice, layer.program, names)
    if run.refusal is not None:
        codes = {fault.code.partition("-")[0] for fault in run.refusal.diagnostics}
        if codes & {"simulation", "input"}:
            return None
        refusal = _renamed(run.refusal, names, layer.program)
        return LayerRun(layer=layer, choice=choice, result=None, refusal=refusal, names=names)
    if choice is None or run.result is None:
        return None
    code, program = run.result.program, layer.program
    theirs = {ours: name for name, ours in names.items()}
    arrays = checked_batch(program, choice.mapping, task.arrays, 1)
    found = simulate_program(code, {theirs[name]: array for name, array in arrays.items()})
    outputs = {names[name]: array for name, array in found.outputs.items()}
    verdict = None
    if options["check"]:
        approximate = [names[name] for name in code.analysis.approximate]
        verdict = check_outputs(
            program, choice.mapping, arrays, outputs, 1, exactly=False, approximate=approximate
        )
    limit = replace(found.limit, by=_named(found.limit.by, names))
    result = SimulationResult(
        simulation=replace(found, outputs=outputs, limit=limit),
        machine=run.result.machine,
        simd=run.result.simd,
        check=verdict,
        program=code,
        remarks=tuple(_with_names(remark, names, program) for remark in run.result.remarks),
    )
    return LayerRun(layer=layer, choice=choice, result=result, refusal=None, names=names)


def _renamed(refusal: Refusal, names: Mapping[str, str], program: Program) -> Refusal:
    """Return why a layer was refused as said of another one."""
    faults = [_with_names(each, names, program) for each in refusal.diagnostics]
    if isinstance(refusal, InternalFault):
        return InternalFault(*faults, trace=refusal.trace)
    return type(refusal)(*faults)


def _with_names(message: Diagnostic, names: Mapping[str, str], program: Program) -> Diagnostic:
    """Return what was said of a layer as said of another one, at the place of its first statement."""
    return replace(
        message,
        message=_named(message.message, names),
        span=None if message.span is None else program.statements[0].span,
        notes=tuple(_named(note, names) for note in message.notes),
        helps=tuple(_named(text, names) for text in message.helps),
    )


def _named(text: str, names: Mapping[str, str]) -> str:
    """Return a message with other names: they stand between backquotes."""
    return re.sub(r"`[^`]*`", lambda quoted: with_names(quoted[0], names), text)
