"""A static control part as a host program of MDHs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import islpy as isl

from polyloom.diagnostics import Diagnostic
from polyloom.ir.host import HostProgram
from polyloom.scop.buffers import buffers, parameters
from polyloom.scop.model import Scop
from polyloom.scop.nests import nest


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
    return Transformation(serial_program(scop))


def serial_program(scop: Scop) -> HostProgram:
    """Return the whole part as one sequential program: always right, never parallel."""
    schedule = scop.schedule.intersect_domain(instances(scop))
    body = (nest(scop.name, scop.statements, schedule, scop.context),) if scop.statements else ()
    return HostProgram(scop.name, parameters(scop), buffers(scop, {}), body)


def instances(scop: Scop) -> isl.UnionSet:
    """Return all instances of all statements where the context holds."""
    result = isl.UnionSet.empty(scop.context.get_space())
    for statement in scop.statements:
        result = result.union(isl.UnionSet.from_set(statement.domain))
    return result.intersect_params(scop.context)
