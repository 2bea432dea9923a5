"""The instances of a task in coordinates of their own, and what Section 5 of the paper computes of them.

Source: dtg_codegen, Sec. 5.1-5.4, eqs. (13)-(43).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from polyloom.ir.host import View
from polyloom.ir.relations import access_relation
from polyloom.polyhedra.binding import PE_PARAMETERS, parameter_names, project_out_parameters
from polyloom.polyhedra.bounds import (
    elementwise_maximum,
    elementwise_minimum,
    extent_between,
    is_dense_box,
)
from polyloom.polyhedra.box_hull import BoxHull, box_hull
from polyloom.polyhedra.enumeration import SizeEnumeration, enumerate_sizes
from polyloom.polyhedra.functions import as_function, compose
from polyloom.wafer.dataflow.local_arrays import Columns, LocalArray, columns_of
from polyloom.wafer.dataflow.tasks import ComputeTask
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR


@dataclass(frozen=True, eq=False)
class Box:
    """Element-wise minimum, maximum and size of a set, as parametric points, and whether it is dense."""

    minimum: isl.Set
    maximum: isl.Set
    size: isl.Set
    dense: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Operand:
    """An access of a task: ``access`` (25), ``compressed`` (26), ``local`` (37) (39) by ``map_before``."""

    position: int
    tensor: str
    array: str
    access: isl.MultiAff
    compressed: isl.MultiAff
    local: isl.MultiAff

    @cached_property
    def columns(self) -> Columns:
        """Of ``compressed``: asked for again for each layout of an array and each order of a nest."""
        return columns_of(self.compressed)


@dataclass(frozen=True, eq=False)
class Extra:
    """The instances that the box hull adds (36), and what they and the proper ones touch (38) (40) (41)."""

    instances: isl.Set
    reads: dict[str, isl.Set]
    writes: dict[str, isl.Set]
    proper_writes: dict[str, isl.Set]


@dataclass(frozen=True, eq=False, kw_only=True)
class Arrangement:
    """``order``: ``{ [i0, ...] -> S[...] }``, affine, one-to-one; ``instances``: the points ``[i0, ...]``."""

    order: isl.MultiAff
    instances: isl.Set
    box: Box
    operands: tuple[Operand, ...]
    hull: BoxHull | None
    extra: Extra | None
    enumeration: SizeEnumeration | None


def arrange(
    task: ComputeTask,
    order: isl.MultiAff,
    instances: isl.Set,
    arrays: Mapping[str, LocalArray],
    *,
    purely_affine: bool,
) -> Arrangement:
    """Return everything that the decision on a SIMD instruction needs, for one choice of coordinates."""
    operands = tuple(_operands(task, order, arrays))
    box = box_of(instances)
    hull = box_hull(instances, purely_affine=purely_affine)
    extra = None if hull is None else _extra(instances, hull, operands)
    enumeration = enumerate_sizes(box.size, task.index_names, PE_PARAMETERS)
    return Arrangement(
        order=order,
        instances=instances,
        box=box,
        operands=operands,
        hull=hull,
        extra=extra,
        enumeration=enumeration,
    )


def box_of(points: isl.Set) -> Box:
    """Return the smallest box around the points at each value of the parameters (13) (14) (16)."""
    minimum, maximum = elementwise_minimum(points), elementwise_maximum(points)
    size = extent_between(minimum, maximum).coalesce()
    return Box(minimum, maximum, size, is_dense_box(points, minimum, maximum))


def _operands(task: ComputeTask, order: isl.MultiAff, arrays: Mapping[str, LocalArray]) -> Iterator[Operand]:
    accesses: list[tuple[int, View]] = [(ACCUMULATOR, task.statement.write), *task.operand_reads()]
    for position, access in accesses:
        array = arrays[access.buffer]
        function = as_function(access_relation(task.statement, access))
        compressed = compose(order, function)
        local = compose(compressed, array.map_before)
        yield Operand(
            position=position,
            tensor=access.buffer,
            array=array.name,
            access=function,
            compressed=compressed,
            local=local,
        )


def _extra(compressed: isl.Set, hull: BoxHull, operands: tuple[Operand, ...]) -> Extra:
    known = compressed.params()
    box = hull.as_set().intersect_params(known)  # eq. (35)
    instances = box.subtract(compressed).coalesce()  # eq. (36)
    writes = {o.array: _touched(instances, o) for o in operands if o.position == ACCUMULATOR}
    proper = {o.array: _touched(compressed, o) for o in operands if o.position == ACCUMULATOR}
    reads: dict[str, isl.Set] = {}
    for operand in operands:
        if operand.position != ACCUMULATOR:
            touched = instances.apply(isl.Map.from_multi_aff(operand.local))  # eq. (38)
            known_reads = reads.get(operand.array)
            reads[operand.array] = touched if known_reads is None else touched.union(known_reads)
    return Extra(instances, reads, writes, proper)


def _touched(instances: isl.Set, operand: Operand) -> isl.Set:
    """Return the local elements that instances access over all index values (40) (41)."""
    touched = instances.apply(isl.Map.from_multi_aff(operand.local))
    names = [n for n in parameter_names(touched) if n not in PE_PARAMETERS]
    return project_out_parameters(touched, names).coalesce()
