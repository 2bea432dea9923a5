"""A static control part as a host program of MDHs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import reduce

import islpy as isl

from polyloom.diagnostics import Diagnostic
from polyloom.ir.host import HostProgram
from polyloom.scop.arrange import arrange
from polyloom.scop.buffers import buffers, parameters
from polyloom.scop.dependences import Dependences, Kind, dependences
from polyloom.scop.emit import Emitter
from polyloom.scop.hyperplanes import Edge, edge
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.nests import nest
from polyloom.scop.updates import Update, update_of


class ReductionMode(Enum):
    """Where combine operators other than ``++`` come from."""

    DETECT = "detect"
    """Recognised in the source, and stated."""
    STATED = "stated"
    """Only from ``#pragma mdh parallel``: md_poly's solution 2."""
    IGNORE = "ignore"
    """None: md_poly's solution 1, as PPCG does."""


@dataclass(frozen=True, eq=False)
class Transformation:
    """The host program, and remarks on what stayed sequential."""

    program: HostProgram
    remarks: tuple[Diagnostic, ...] = ()


def host_program(scop: Scop, mode: ReductionMode = ReductionMode.DETECT) -> Transformation:
    """Return the host program of a static control part; every one has one."""
    if not scop.statements:
        return Transformation(serial_program(scop))
    updates = _updates(scop, mode)
    found = dependences(scop, updates)
    held = buffers(scop, found.exposed)
    emitter = Emitter(scop, updates, {b.name: b for b in held})
    body = emitter.nodes(arrange(in_order(scop), edges_of(found)))
    return Transformation(HostProgram(scop.name, parameters(scop), (*held, *emitter.locals), body))


def _updates(scop: Scop, mode: ReductionMode) -> dict[str, Update]:
    if mode is ReductionMode.IGNORE:
        return {}
    found = ((s.name, update_of(s)) for s in scop.statements)
    return {name: update for name, update in found if update is not None}


def edges_of(found: Dependences) -> list[Edge]:
    """Return what a schedule must respect."""
    groups: dict[tuple[str, str, str, bool], list[isl.Map]] = {}
    for d in found.edges:
        if d.relaxed is None:
            key = (d.source, d.sink, d.array, d.kind is Kind.ANTI)
            groups.setdefault(key, []).append(d.relation)
    return [edge(*key, reduce(isl.Map.union, maps).coalesce()) for key, maps in groups.items()]


def in_order(scop: Scop) -> tuple[ScopStatement, ...]:
    """Return the statements in the order of the source."""
    return scop.statements


def serial_program(scop: Scop) -> HostProgram:
    """Return the whole part as one sequential program: always right, never parallel."""
    schedule = scop.schedule.intersect_domain(instances(scop))
    body = (nest(scop.name, scop.statements, schedule, scop.context),) if scop.statements else ()
    exposed = dependences(scop, {}).exposed
    return HostProgram(scop.name, parameters(scop), buffers(scop, exposed), body)


def instances(scop: Scop) -> isl.UnionSet:
    """Return all instances of all statements where the context holds."""
    result = isl.UnionSet.empty(scop.context.get_space())
    for statement in scop.statements:
        result = result.union(isl.UnionSet.from_set(statement.domain))
    return result.intersect_params(scop.context)
