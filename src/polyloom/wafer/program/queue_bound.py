"""Queues that some PEs take whatever else is decided, known before anything is decided of their programs.

A PE has a queue for each stream that it receives, for each chain that it sends to and for each that it adds
to, and for each neighbour that moves come from or go to. Sets of PEs that meet are looked for from each set
on, so that more queues may be needed than are found here, never fewer.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from polyloom.polyhedra.effort import naming
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.dataflow.transfers import MEMORY, Move
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.program.resources import INPUTS, OUTPUTS, Amount, RoleResources, check_fits

Takers = Mapping[str, isl.Set]
"""The PEs ``{ PE[x, y] }`` that have a queue, by its name."""


def check_least_queues(graph: TaskGraph, border: Border, machine: Machine) -> None:
    """Refuse a layer of which some PEs need more queues than there are.

    Errors: ``wafer-queues``, as of ``check_fits``.
    """
    with naming("the queues that PEs need"):
        for what, takers, limit in (
            (OUTPUTS, _outputs(graph), len(machine.output_queues)),
            (INPUTS, _inputs(graph), len(machine.input_queues)),
        ):
            if len(takers) > limit:
                names, pes = most_meeting(takers)
                taken = RoleResources(
                    role="",
                    pes=border.to_given(pes).coalesce(),
                    amounts=(Amount(what, len(names), limit, tuple(names)),),
                    configurations=0,
                    loaded=(),
                )
                check_fits(graph.mapping, machine, [taken])


def _outputs(graph: TaskGraph) -> Takers:
    found: dict[str, isl.Set] = {}
    for result in graph.results:
        for chain in result.chains:
            senders = chain.contributors if chain.leaves else chain.contributors.subtract(chain.last)
            _add(found, chain.queue(incoming=False), senders)
        for move in result.moves:
            for kind in move.kinds:
                for target in kind.targets:
                    if target != MEMORY:
                        _add(found, move.queue(target, incoming=False), kind.pes)
    return found


def _inputs(graph: TaskGraph) -> Takers:
    found = {f"{stream.name}_in": stream.receivers for stream in graph.streams}
    for result in graph.results:
        for chain in result.chains:
            added = chain.contributors.intersect(chain.own.intersect(chain.upstream).domain())
            _add(found, chain.queue(incoming=True), added)
        for move in result.moves:
            _add_origins(found, move)
    return found


def _add_origins(found: dict[str, isl.Set], move: Move) -> None:
    for kind in move.kinds:
        if kind.origin != MEMORY:
            _add(found, move.queue(kind.origin, incoming=True), kind.pes)


def _add(found: dict[str, isl.Set], name: str, pes: isl.Set) -> None:
    found[name] = found[name].union(pes) if name in found else pes


def most_meeting(takers: Takers) -> tuple[Sequence[str], isl.Set]:
    """Return names whose sets meet, the most that are found, and where they do."""
    return max((_meeting(takers, first) for first in takers), key=lambda found: len(found[0]))


def _meeting(takers: Takers, first: str) -> tuple[Sequence[str], isl.Set]:
    names, pes = [first], takers[first]
    for name, others in takers.items():
        common = pes.intersect(others)
        if name != first and not common.is_empty():
            names, pes = [*names, name], common
    return names, pes
