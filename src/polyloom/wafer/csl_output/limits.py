"""What of a machine a CSL program may use beside the vendor's memcpy, and which numbers name it.

Source: wafer-target.md, 1.3 and 2.4 (facts of SDK 2.10's documentation).
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.diagnostics import Diagnostic, Unsupported, error, remark
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.array_layout.fabric_use import fabric_uses
from polyloom.wafer.machine.model import Machine, load_machine

MACHINES = {"wse2": "cs2", "wse3": "cs3"}
"""The machine of each architecture that cslc knows."""

COLORS = 21
"""Colors 21 to 23 are memcpy's."""

FIRST_QUEUE = 2
"""Queues 0 and 1 are memcpy's."""

LAST_INPUT_QUEUE = 7
"""Input queues count down from here, output queues up: an operation beside the main thread runs on the
microthread of its queue, so that the two should differ."""

FIRST_CONTROL_TASK = 32
"""A control task's number is this and the color of its stream."""

_TASKS = {"wse2": (*range(21), 24, 25, 26), "wse3": (*range(8, 27),)}
"""Numbers of tasks that are not memcpy's; below 8 WSE-3 has its input queues' data tasks."""


def machine_for(arch: str) -> Machine:
    """Return what a program for ``wse2`` or ``wse3`` has of its machine."""
    return beside_memcpy(load_machine(MACHINES[arch]))


def beside_memcpy(machine: Machine) -> Machine:
    """Return a machine with what memcpy leaves of it; a wavelet holds one element, as at memcpy's ports."""
    return replace(
        machine,
        name=f"{machine.name}, beside memcpy,",
        colors=COLORS,
        input_queues=machine.input_queues[: FIRST_QUEUE - 1 : -1],
        output_queues=machine.output_queues[FIRST_QUEUE:],
        wavelet_elements=1,
        switched_colors=0,
        filters=0,
    )


def input_queue(number: int) -> int:
    """Return the number in CSL of an input queue of ours, from 0 on."""
    return LAST_INPUT_QUEUE - number


def output_queue(number: int) -> int:
    """Return the number in CSL of an output queue of ours, from 0 on."""
    return FIRST_QUEUE + number


def local_tasks(count: int, arch: str, data_colors: frozenset[int], program: str) -> tuple[int, ...]:
    """Return numbers for local tasks; on WSE-2 none is a color whose wavelets start tasks.

    Errors: ``csl-tasks``.
    """
    free = [number for number in reversed(_TASKS[arch]) if arch == "wse3" or number not in data_colors]
    if count > len(free):
        message = f"`{program}` has {count} local tasks, and CSL leaves {len(free)} numbers for them"
        helps = ["a map whose PEs have fewer tensors to pass on needs fewer tasks"]
        raise Unsupported(error("csl-tasks", message, helps=helps))
    return tuple(sorted(free[:count]))


def single_elements(analysis: LayerAnalysis, arch: str) -> tuple[Diagnostic, ...]:
    """Return a remark if dense tensors could travel in pairs of elements, which these projects do not do."""
    options = replace(analysis.options, machine=load_machine(MACHINES[arch]))
    names = sorted({use.tensor for use in fabric_uses(analysis.graph, analysis.arrays, options, 1)})
    if not names:
        return ()
    listed = ", ".join(f"`{name}`" for name in names)
    message = f"elements of {listed} travel one in a wavelet"
    notes = [
        "the C of `--target wafer` sends two of 16 bits where that is faster; CSL as written here sends one"
    ]
    return (remark("csl-single-elements", message, notes=notes),)
